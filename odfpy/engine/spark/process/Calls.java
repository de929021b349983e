package odfpy;

import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.io.StringReader;
import java.io.StringWriter;
import java.util.HashMap;
import java.util.Map;

import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;

import py4j.Gateway;
import py4j.commands.CallCommand;
import py4j.commands.Command;
import py4j.commands.ConstructorCommand;

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
    public String run(String calls) throws Exception {
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
     * @return texts, each after the number of its characters and a space, four for each item: its class; its name, which is the item if
     *     it is a text; the number that identifies it; and whether it may be null. What does not apply is empty.
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
}
