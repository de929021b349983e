package odfpy;

import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.io.IOException;
import java.io.StringReader;
import java.io.StringWriter;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.Arrays;
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
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.AttributeMap$;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.BoundReference;
import org.apache.spark.sql.catalyst.expressions.InterpretedUnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Statistics;
import org.apache.spark.sql.catalyst.plans.physical.SinglePartition$;
import org.apache.spark.sql.catalyst.types.DataTypeUtils$;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.LogicalRDD;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.arrow.ArrowConverters$;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.storage.BlockManager;

import py4j.DefaultGatewayServerListener;
import py4j.Gateway;
import py4j.GatewayServer;
import py4j.Py4JServerConnection;
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

    public Calls(GatewayServer server) throws Exception {
        gateway = server.getGateway();
        add(new CallCommand());
        add(new ConstructorCommand());
        server.addListener(new AtOnce());
        Field connections = GatewayServer.class.getDeclaredField("connections");
        connections.setAccessible(true);
        Object[] open = ((List) connections.get(server)).toArray();
        for (int at = 0; at < open.length; at++) {
            AtOnce.set((Py4JServerConnection) open[at]);
        }
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
        return new Batches(isOneTask(batches) ? OneTask.rowsOf(batches) : (Object[]) batches.collect());
    }

    /**
     * Compute rows, and keep them in memory.
     *
     * @return null where several tasks would compute them, or where they are many.
     */
    public InMemory inMemory(Dataset frame) throws Throwable {
        QueryExecution execution = frame.queryExecution();
        RDD rows = execution.executedPlan().execute();
        if (rows.getNumPartitions() == 0) {
            return InMemory.of(execution, new Object[0]);
        }
        Object[] found = isOneTask(rows) ? OneTask.rowsOf(rows) : null;
        return found == null ? null : InMemory.of(execution, found);
    }

    /**
     * Take rows from Python, and keep them in memory.
     *
     * @param batches Arrow batches in Base64, with commas between them.
     */
    public InMemory received(SparkSession session, StructType schema, String batches) {
        String[] encoded = batches.isEmpty() ? new String[0] : batches.split(",");
        Object[] parts = new Object[encoded.length];
        for (int at = 0; at < parts.length; at++) {
            parts[at] = Base64.getDecoder().decode(encoded[at]);
        }
        SQLConf settings = session.sessionState().conf();
        scala.collection.Iterator rows = ArrowConverters$.MODULE$.fromBatchIterator(
            InMemory.seq(parts).iterator(), schema, settings.sessionLocalTimeZone(), false,
            settings.arrowUseLargeVarTypes(), null
        );
        Object[] columns = new Object[schema.length()];
        for (int at = 0; at < columns.length; at++) {
            columns[at] = new BoundReference(at, schema.fields()[at].dataType(), true);
        }
        UnsafeProjection copied = InterpretedUnsafeProjection.createProjection(InMemory.seq(columns));
        List found = new ArrayList();
        while (rows.hasNext()) {
            found.add(copied.apply((InternalRow) rows.next()).copy());
        }
        return new InMemory(session, DataTypeUtils$.MODULE$.toAttributes(schema), schema, found.toArray());
    }

    private static boolean isOneTask(RDD rows) {
        return rows.getNumPartitions() == 1 && !hasShuffle(rows);
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

    /** Return how many jobs Spark has been given, and how many tasks have run in a thread of their caller. */
    public int jobs(SparkSession session) {
        return session.sparkContext().dagScheduler().numTotalJobs() + (int) (OneTask.NEXT.get() - OneTask.FIRST);
    }

    /**
     * Return the values of settings, as `items` tells texts.
     *
     * @param names of the settings, a line each.
     */
    public String settings(SparkSession session, String names) {
        StringBuilder told = new StringBuilder();
        String[] wanted = names.split("\n");
        for (int at = 0; at < wanted.length; at++) {
            scala.Option found = session.conf().getOption(wanted[at]);
            tell(told, found.isDefined() ? (String) found.get() : "");
        }
        return told.toString();
    }

    /**
     * Change settings, and put those of the session among the properties of the jobs of this thread.
     *
     * @param settings names and values, a line each.
     */
    public void change(SparkSession session, String settings) {
        if (!settings.isEmpty()) {
            String[] lines = settings.split("\n", -1);
            for (int at = 0; at < lines.length; at += 2) {
                session.conf().set(lines[at], lines[at + 1]);
            }
        }
        Properties properties = new Properties();
        properties.putAll(session.sessionState().conf().settings());
        session.sparkContext().setLocalProperties(properties);
    }

    /**
     * Let each sort and each map of later tasks take memory in pages of so many bytes.
     *
     * They are smaller where a task would not have room for 32 of them. Spark has one size for all tasks, which it
     * makes up at its start. Where Java does not let it be changed, it stays, and many groups take longer to add up.
     */
    public void usePages(long bytes) throws Throwable {
        Runtime java = Runtime.getRuntime();
        long room = java.maxMemory() / (32L * java.availableProcessors());
        Object memory = OneTask.ofSpark("memoryManager", MemoryManager.class);
        try {
            Field size = MemoryManager.class.getDeclaredField("pageSizeBytes");
            size.setAccessible(true);
            size.setLong(memory, Math.max(1L << 20, Math.min(bytes, room)));
        } catch (Exception error) {
            return;
        }
    }

    /** Return the number of bytes of a page of memory. */
    public long pageBytes() throws Throwable {
        return ((MemoryManager) OneTask.ofSpark("memoryManager", MemoryManager.class)).pageSizeBytes();
    }

    /** Cancel the task that runs in a thread of its caller, if there is one. */
    public void cancel() {
        OneTask.cancel();
    }

    /** Return whether a task runs in a thread of its caller. */
    public boolean isRunning() {
        return OneTask.running != null;
    }

    /** Rows that have been computed, for other plans to read. */
    public static final class InMemory {
        private static final ClassTag ROW = ClassTag$.MODULE$.apply(UnsafeRow.class);

        private final SparkSession session;
        private final scala.collection.immutable.Seq output;
        private final StructType schema;
        private final Object[] rows;

        InMemory(SparkSession session, scala.collection.immutable.Seq output, StructType schema, Object[] rows) {
            this.session = session;
            this.output = output;
            this.schema = schema;
            this.rows = rows;
        }

        static InMemory of(QueryExecution execution, Object[] rows) {
            // The analysis gives columns other identities, where a plan is joined with itself.
            LogicalPlan plan = execution.logical().resolved() ? execution.logical() : execution.analyzed();
            return new InMemory(execution.sparkSession(), plan.output(), plan.schema(), rows);
        }

        public int count() {
            return rows.length;
        }

        /** Return a relation of them, with the columns of the plan that has made them. */
        public LogicalPlan relation() throws Exception {
            Object[] arguments = {
                output,
                session.sparkContext().parallelize(seq(rows), 1, ROW),
                SinglePartition$.MODULE$,
                scala.collection.immutable.Nil$.MODULE$,
                Boolean.FALSE,
                scala.Option.empty(),
                session,
                scala.Option.apply(size()),
                scala.Option.empty(),
                Boolean.FALSE,
            };
            Constructor made = LogicalRDD.class.getConstructors()[0];
            // The last argument came with Spark 4.3.
            return (LogicalPlan) made.newInstance(Arrays.copyOf(arguments, made.getParameterCount()));
        }

        /** Return their size; the planner would divide rows of unknown size among several partitions. */
        private Statistics size() {
            long bytes = 0;
            for (int at = 0; at < rows.length; at++) {
                bytes += ((UnsafeRow) rows[at]).getSizeInBytes();
            }
            scala.math.BigInt found = scala.math.BigInt$.MODULE$.apply(bytes);
            return new Statistics(found, scala.Option.empty(), AttributeMap$.MODULE$.empty(), false);
        }

        /** Return them as Arrow batches, as Spark makes them. */
        public Batches batches() {
            SQLConf settings = session.sessionState().conf();
            scala.collection.Iterator batches = ArrowConverters$.MODULE$.toBatchIterator(
                seq(rows).iterator(), schema, settings.arrowMaxRecordsPerBatch(),
                settings.sessionLocalTimeZone(), false, settings.arrowUseLargeVarTypes(), null
            );
            List found = new ArrayList();
            while (batches.hasNext()) {
                found.add(batches.next());
            }
            return new Batches(found.toArray());
        }

        static scala.collection.immutable.Seq seq(Object[] items) {
            return scala.collection.immutable.ArraySeq$.MODULE$.unsafeWrapArray(items);
        }
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
 * Sends answers without delay.
 *
 * An answer of more than 8 kB is sent in pieces. By itself, TCP sends a small last piece only when the others have been
 * acknowledged, which the other side does after 40 ms, in the hope of having something to say by then.
 */
final class AtOnce extends DefaultGatewayServerListener {
    public void connectionStarted(Py4JServerConnection connection) {
        try {
            set(connection);
        } catch (IOException error) {
            // It is only slower.
        }
    }

    static void set(Py4JServerConnection connection) throws IOException {
        connection.getSocket().setTcpNoDelay(true);
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

    /** Bytes of rows in memory. */
    private static final long MOST_BYTES = 32L << 20;

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
    static Object ofSpark(String name, Class type) throws Throwable {
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

    /** Return what the task gives, Arrow batches or rows; null for more rows than are kept in memory. */
    public Object runTask(TaskContext context) {
        List found = new ArrayList();
        long bytes = 0;
        scala.collection.Iterator items = rows.iterator(rows.partitions()[0], context);
        while (items.hasNext()) {
            Object item = items.next();
            if (item instanceof UnsafeRow) {
                UnsafeRow row = ((UnsafeRow) item).copy(); // what makes them gives the same object each time
                item = row;
                bytes += row.getSizeInBytes();
                if (bytes > MOST_BYTES) {
                    return null;
                }
            } else if (!(item instanceof byte[])) {
                return null;
            }
            found.add(item);
        }
        return found.toArray();
    }
}
