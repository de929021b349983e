package odfpy;

import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.io.IOException;
import java.io.StringReader;
import java.io.StringWriter;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.atomic.AtomicLong;

import org.apache.spark.JobArtifactSet;
import org.apache.spark.ShuffleDependency;
import org.apache.spark.SparkEnv;
import org.apache.spark.TaskContext;
import org.apache.spark.executor.TaskMetrics;
import org.apache.spark.memory.MemoryManager;
import org.apache.spark.memory.TaskMemoryManager;
import org.apache.spark.metrics.MetricsSystem;
import org.apache.spark.rdd.RDD;
import org.apache.spark.scheduler.Task;
import org.apache.spark.serializer.Serializer;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.storage.BlockManager;

import py4j.Gateway;
import py4j.commands.CallCommand;
import py4j.commands.Command;
import py4j.commands.ConstructorCommand;

import scala.reflect.ClassTag;
import scala.reflect.ClassTag$;

/**
 * Calls from Python that travel together, and what Python wants to know of the items of a sequence, in one answer.
 *
 * Janino, which comes with Spark, compiles it when the engine starts. It knows no generics to speak of, and no lambdas.
 */
public final class Calls {
    private final Gateway gateway;
    private final Map commands = new HashMap();

    public Calls(Gateway gateway) {
        this.gateway = gateway;
        add(new CallCommand());
        add(new ConstructorCommand());
    }

    private void add(Command command) {
        command.init(gateway, null);
        commands.put(command.getCommandName(), command);
    }

    /**
     * Run calls one after the other, up to the first that fails.
     *
     * @param calls for each, the name that its result gets, then the command as py4j writes it; no name for the last
     *     one means that its answer is wanted.
     * @return the answer of the last call, or of the one that failed; nothing if none is wanted.
     */
    public String run(String calls) throws IOException {
        BufferedReader reader = new BufferedReader(new StringReader(calls));
        String name;
        while ((name = reader.readLine()) != null) {
            String kind = reader.readLine();
            StringWriter written = new StringWriter();
            BufferedWriter writer = new BufferedWriter(written);
            ((Command) commands.get(kind)).execute(kind, reader, writer);
            writer.flush();
            String answer = lineOf(written);
            if (name.isEmpty() || answer.charAt(1) != 'y') {
                return answer;
            }
            String found = answer.substring(3);
            Object result = gateway.getObject(found);
            if (result == null) {
                throw new IllegalStateException("no object, but " + answer);
            }
            gateway.putObject(name, result);
            gateway.deleteObject(found);
        }
        return "";
    }

    private static String lineOf(StringWriter written) {
        return written.getBuffer().substring(0, written.getBuffer().length() - 1);
    }

    /**
     * Give the items of a sequence names, and tell of each its class, and what a column says of itself.
     *
     * @param sequence a sequence of Scala.
     * @param prefix the names are made of it and of their position.
     * @return texts, each after the number of its characters and a space, four for each item: its class; its name,
     *     which is the item if it is a text; the number that identifies it; and whether it may be null. What does not
     *     apply is empty.
     */
    public String items(Object sequence, String prefix) {
        scala.collection.Seq found = (scala.collection.Seq) sequence;
        StringBuilder told = new StringBuilder();
        for (int at = 0; at < found.size(); at++) {
            Object item = found.apply(at);
            String name = "";
            String number = "";
            String nullable = "";
            if (item instanceof String) {
                name = (String) item;
            } else {
                gateway.putObject(prefix + at, item);
            }
            if (item instanceof AttributeReference || item instanceof Alias) {
                NamedExpression column = (NamedExpression) item;
                name = column.name();
                number = String.valueOf(column.exprId().id());
            }
            if (item instanceof AttributeReference) {
                nullable = String.valueOf(((AttributeReference) item).nullable());
            }
            tell(told, item.getClass().getName());
            tell(told, name);
            tell(told, number);
            tell(told, nullable);
        }
        return told.toString();
    }

    private static void tell(StringBuilder told, String text) {
        told.append(text.codePointCount(0, text.length())).append(' ').append(text);
    }

    /** Compute few rows, as Arrow batches. */
    public Batches rows(RDD batches) throws Throwable {
        if (batches.getNumPartitions() == 0) {
            return new Batches(new Object[0]);
        }
        boolean isOneTask = batches.getNumPartitions() == 1 && !hasShuffle(batches);
        return new Batches(isOneTask ? OneTask.rowsOf(batches) : (Object[]) batches.collect());
    }

    private static boolean hasShuffle(RDD rows) {
        scala.collection.Seq found = rows.dependencies();
        for (int at = 0; at < found.size(); at++) {
            Object dependency = found.apply(at);
            if (dependency instanceof ShuffleDependency || hasShuffle(((org.apache.spark.Dependency) dependency).rdd())) {
                return true;
            }
        }
        return false;
    }

    /** Return how many tasks have run in a thread of their caller. */
    public int tasks() {
        return (int) (OneTask.NEXT.get() - OneTask.FIRST);
    }

    /** Cancel the task that runs in a thread of its caller, if there is one. */
    public void cancel() {
        OneTask.cancel();
    }

    /** Return whether a task runs in a thread of its caller. */
    public boolean isRunning() {
        return OneTask.running != null;
    }

    /** Arrow batches on their way to Python. */
    public static final class Batches {
        private static final int ENOUGH = 1 << 20;

        private final Object[] found;
        private int at;

        Batches(Object[] found) {
            this.found = found;
        }

        /** Return the next batches in Base64, each with a comma before it; the last answer ends with a full stop. */
        public String next() {
            StringBuilder told = new StringBuilder();
            while (at < found.length && told.length() < ENOUGH) {
                told.append(',').append(Base64.getEncoder().encodeToString((byte[]) found[at]));
                found[at++] = null;
            }
            return at < found.length ? told.toString() : told.append('.').toString();
        }
    }
}

/**
 * A task that runs in the thread of whoever wants its rows.
 *
 * For a task of few rows, Spark's scheduler costs more than the task: a job goes through five threads, and its plan is
 * written and read once more on the way to an executor in the same process.
 */
final class OneTask extends Task {
    static volatile OneTask running;

    /** Numbers of tasks, far above those of Spark's scheduler. */
    static final long FIRST = 1L << 40;
    static final AtomicLong NEXT = new AtomicLong(FIRST);

    private static final scala.math.BigDecimal ONE = scala.math.BigDecimal$.MODULE$.apply(1);
    private static final ClassTag METRICS = ClassTag$.MODULE$.apply(TaskMetrics.class);
    private static final scala.collection.immutable.Map NOTHING = scala.collection.immutable.Map$.MODULE$.empty();
    private static MemoryManager memory;
    private static BlockManager blocks;
    private static MetricsSystem system;
    private static byte[] metrics;

    private final RDD rows;

    private OneTask(RDD rows, Properties properties) {
        super(
            0, 0, 0, 1, JobArtifactSet.emptyJobArtifactSet(), properties, metrics,
            scala.Option.empty(), scala.Option.empty(), scala.Option.empty(), false
        );
        this.rows = rows;
    }

    static Object[] rowsOf(RDD rows) throws Throwable {
        long number = NEXT.getAndIncrement();
        if (metrics == null) {
            memory = (MemoryManager) ofSpark("memoryManager", MemoryManager.class);
            blocks = (BlockManager) ofSpark("blockManager", BlockManager.class);
            system = (MetricsSystem) ofSpark("metricsSystem", MetricsSystem.class);
            Serializer serializer = (Serializer) ofSpark("closureSerializer", Serializer.class);
            metrics = serializer.newInstance().serialize(TaskMetrics.registered(), METRICS).array();
        }
        OneTask task = new OneTask(rows, rows.sparkContext().getLocalProperties());
        TaskMemoryManager own = new TaskMemoryManager(memory, number);
        task.setTaskMemoryManager(own);
        running = task;
        try {
            return (Object[]) task.run(number, 0, system, ONE, NOTHING, scala.Option.empty());
        } finally {
            running = null;
            own.cleanUpAllAllocatedMemory();
            blocks.releaseAllLocksForTask(number);
        }
    }

    /**
     * A part of Spark's environment.
     *
     * Of its methods, one names a class that Spark does not bring, so that they cannot be called in Java's own way, for
     * which all of them are looked at.
     */
    private static Object ofSpark(String name, Class type) throws Throwable {
        MethodHandles.Lookup methods = MethodHandles.publicLookup();
        Object spark = methods.findStatic(SparkEnv.class, "get", MethodType.methodType(SparkEnv.class))
            .invokeWithArguments(new Object[0]);
        return methods.findVirtual(SparkEnv.class, name, MethodType.methodType(type))
            .invokeWithArguments(new Object[] {spark});
    }

    static void cancel() {
        OneTask task = running;
        if (task != null) {
            task.kill(false, "cancelled");
        }
    }

    public Object runTask(TaskContext context) {
        List found = new ArrayList();
        scala.collection.Iterator batches = rows.iterator(rows.partitions()[0], context);
        while (batches.hasNext()) {
            found.add(batches.next());
        }
        return found.toArray();
    }
}
