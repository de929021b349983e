import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.Properties;
import java.util.StringJoiner;
import java.util.concurrent.Callable;

/** What a tool does with the Flight SQL JDBC driver. Prints what it gets. Arguments: URL, user, password, table. */
public class Tour {
    interface Rows {
        ResultSet get() throws SQLException;
    }

    public static void main(String[] arguments) throws Exception {
        String table = arguments[3];
        Properties properties = new Properties();
        properties.put("user", arguments[1]);
        properties.put("password", arguments[2]);
        properties.put("useEncryption", "false");
        try (Connection connection = DriverManager.getConnection(arguments[0], properties)) {
            DatabaseMetaData about = connection.getMetaData();
            say("product", () -> about.getDatabaseProductName() + " " + about.getIdentifierQuoteString());
            say("read only", about::isReadOnly);
            say("transactions", about::supportsTransactions);
            say("functions", about::getSystemFunctions);
            say("keywords", about::getSQLKeywords);
            say("subqueries", about::supportsSubqueriesInExists);
            say("outer joins", about::supportsFullOuterJoins);
            say("escape", about::getSearchStringEscape);
            say("mixed case", about::supportsMixedCaseQuotedIdentifiers);
            rows("catalogs", about::getCatalogs);
            rows("schemas", about::getSchemas);
            rows("table types", about::getTableTypes);
            rows("tables", () -> about.getTables(null, null, "%", new String[] {"TABLE", "VIEW"}));
            rows("columns", () -> about.getColumns(null, null, table, "%"));
            rows("primary keys", () -> about.getPrimaryKeys(null, null, table));
            rows("imported keys", () -> about.getImportedKeys(null, null, table));
            rows("exported keys", () -> about.getExportedKeys(null, null, table));
            rows("cross reference", () -> about.getCrossReference(null, null, table, null, null, table));
            rows("types", about::getTypeInfo);
            try (Statement statement = connection.createStatement()) {
                rows("statement", () -> statement.executeQuery("select id, name, event_time from \"" + table + "\""));
                rows("aggregate", () -> statement.executeQuery("select count(*) as n from \"" + table + "\""));
                say("execute", () -> statement.execute("select 1 as one"));
                rows("bad", () -> statement.executeQuery("selec 1"));
                rows("unknown", () -> statement.executeQuery("select * from nowhere"));
                say("update", () -> statement.executeUpdate("delete from \"" + table + "\""));
            }
            String text = "select id, name from \"" + table + "\" where id >= ? and name <> ?";
            try (PreparedStatement statement = connection.prepareStatement(text)) {
                say("parameters", () -> statement.getParameterMetaData().getParameterCount());
                statement.setLong(1, 2);
                statement.setString(2, "b");
                rows("prepared", statement::executeQuery);
                statement.setLong(1, 1);
                rows("prepared again", statement::executeQuery);
            }
            try (Statement statement = connection.createStatement()) {
                statement.executeQuery("select * from \"" + table + "\"");
                statement.cancel();
                System.out.println("cancelled");
            }
            say("autocommit", () -> {
                connection.setAutoCommit(false);
                return connection.getAutoCommit();
            });
        }
        System.out.println("closed");
    }

    private static void say(String what, Callable<Object> get) throws Exception {
        try {
            System.out.println(what + ": " + get.call());
        } catch (SQLException | RuntimeException error) {
            System.out.println(what + ": " + first(error));
        }
    }

    private static void rows(String what, Rows get) {
        StringJoiner found = new StringJoiner(" | ");
        try (ResultSet set = get.get()) {
            ResultSetMetaData about = set.getMetaData();
            while (set.next()) {
                StringJoiner row = new StringJoiner(" ");
                for (int column = 1; column <= about.getColumnCount(); column++) {
                    if (set.getObject(column) != null) {
                        row.add(about.getColumnLabel(column) + "=" + set.getObject(column));
                    }
                }
                found.add(row.toString());
            }
            System.out.println(what + ": " + found);
        } catch (SQLException | RuntimeException error) {
            System.out.println(what + ": " + first(error));
        }
    }

    private static String first(Throwable error) {
        Throwable cause = error;
        while (cause.getCause() != null) {
            cause = cause.getCause();
        }
        return cause.getClass().getSimpleName() + " " + String.valueOf(cause.getMessage()).split("\n")[0];
    }
}
