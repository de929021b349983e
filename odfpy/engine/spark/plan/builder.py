"""Construction of the operators and expressions that the engine puts around those of a query."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from odfpy.engine.spark.plan.catalyst import Catalyst, Node, children

_PACKAGE: Final = "org.apache.spark.sql.catalyst."
_EXPRESSIONS: Final = _PACKAGE + "expressions."
_SIMPLE_TYPES: Final = {
    "string": "StringType",
    "bigint": "LongType",
    "int": "IntegerType",
    "double": "DoubleType",
    "timestamp": "TimestampType",
}


class Builder:
    """Constructor of plan nodes for one session: sorts, window functions, aggregates, joins."""

    def __init__(self, catalyst: Catalyst) -> None:
        self.catalyst = catalyst
        self._class = catalyst.java_class

    def expression(self, name: str, *arguments: Node) -> Node:
        """Return an expression by the name of its class, for example `Abs`."""
        return self._class(_EXPRESSIONS + name)(*arguments)

    def _object(self, name: str) -> Node:
        return self.catalyst.java_object(_EXPRESSIONS + name)

    # --- Values ---

    def cast(self, expression: Node, to: str) -> Node:
        """Return CAST(expression AS to), where `to` is one of `string`, `bigint`, `int`, `double` and `timestamp`."""
        return self.cast_to(expression, self._data_type(to))

    def _data_type(self, name: str) -> Node:
        return getattr(self._class("org.apache.spark.sql.types.DataTypes"), _SIMPLE_TYPES[name])

    def cast_to(self, expression: Node, data_type: Node) -> Node:
        """Return CAST(expression AS a type of Spark)."""
        return self.expression("Cast", expression, data_type, self._class("scala.Option").apply("UTC"))

    def decimal(self, digits: int) -> Node:
        """Return the type DECIMAL(digits, 0)."""
        return self._class("org.apache.spark.sql.types.DataTypes").createDecimalType(digits, 0)

    def failure(self, message: str, data_type: Node) -> Node:
        """Return an expression of a type that fails with a message when it is evaluated."""
        text = self._class(_EXPRESSIONS + "Literal").create(message, self._data_type("string"))
        return self.cast_to(self.expression("RaiseError", text), data_type)

    def number(self, value: int) -> Node:
        """Return a constant of type INT, or BIGINT if it is too large for that."""
        types = self._class("org.apache.spark.sql.types.DataTypes")
        is_int = -(1 << 31) <= value < 1 << 31
        return self.expression("Literal", value, types.IntegerType if is_int else types.LongType)

    def null(self, data_type: Node) -> Node:
        """Return NULL of a type."""
        return self._class(_EXPRESSIONS + "Literal").create(None, data_type)

    def zero(self, data_type: Node) -> Node:
        """Return 0 of a numeric type."""
        return self._class(_EXPRESSIONS + "Literal").default(data_type)

    def only_if(self, condition: Node, value: Node) -> Node:
        """Return the value where the condition is true, else NULL."""
        return self.expression("If", condition, value, self.null(value.dataType()))

    def one_form(self, expression: Node) -> Node:
        """Normalize an expression: 0.0 for -0.0, one NaN, and maps sorted by their keys, also within other values."""
        rules = _PACKAGE + "optimizer."
        numbers = self.catalyst.java_object(rules + "NormalizeFloatingNumbers").normalize(expression)
        return self.catalyst.java_object(rules + "InsertMapSortExpression").insertMapSortRecursively(numbers)

    def micros(self, time: Node) -> Node:
        """Return the microseconds since the epoch of a TIMESTAMP or TIMESTAMP_NTZ."""
        return self.expression("PreciseTimestampConversion", time, time.dataType(), self._data_type("bigint"))

    def struct(self, **fields: Node) -> Node:
        """Return a struct with these fields."""
        create, text = self._class(_EXPRESSIONS + "Literal").create, self._data_type("string")
        parts = [part for name, value in fields.items() for part in (create(name, text), value)]
        return self.expression("CreateNamedStruct", self.catalyst.seq(parts))

    # --- Order ---

    def ascending(self, expression: Node) -> Node:
        """Return an ascending sort key, nulls first; `checkInputDataTypes` tells whether its type can be sorted."""
        return self.expression(
            "SortOrder", expression, self._object("Ascending"), self._object("NullsFirst"), self.catalyst.seq([])
        )

    def sort(self, keys: Iterable[Node], child: Node) -> Node:
        """Return the plan of `SELECT * FROM child ORDER BY keys`."""
        none = self.catalyst.nothing
        return self._class(_PACKAGE + "plans.logical.Sort")(self.catalyst.seq(keys), True, child, none)

    def window(self, functions: Iterable[Node], partition: Iterable[Node], order: Iterable[Node], child: Node) -> Node:
        """Return the plan of `SELECT *, functions FROM child`, with all functions over the same partition and order.

        Args:
            functions: the window functions.
            partition: expressions of PARTITION BY.
            order: expressions of ORDER BY.
            child: the plan below.
        """
        seq, none = self.catalyst.seq, self.catalyst.nothing
        return self._class(_PACKAGE + "plans.logical.Window")(seq(functions), seq(partition), seq(order), child, none)

    def over(self, function: Node, partition: Iterable[Node], order: Iterable[Node], frame: Node) -> Node:
        """Return an aggregate or window function OVER (PARTITION BY partition ORDER BY order frame).

        Args:
            function: the window function.
            partition: expressions of PARTITION BY.
            order: expressions of ORDER BY.
            frame: the frame.
        """
        seq = self.catalyst.seq
        return self.expression(
            "WindowExpression", function, self.expression("WindowSpecDefinition", seq(partition), seq(order), frame)
        )

    def rows_until(self, end: str) -> Node:
        """Return the frame ROWS BETWEEN UNBOUNDED PRECEDING AND end: `CurrentRow` or `UnboundedFollowing`."""
        return self._rows_until(self._object(end))

    def rows_before(self) -> Node:
        """Return the frame ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING."""
        return self._rows_until(self.catalyst.integer(-1))

    def _rows_until(self, end: Node) -> Node:
        kind, first = self._object("RowFrame"), self._object("UnboundedPreceding")
        return self.expression("SpecifiedWindowFrame", kind, first, end)

    def range_until(self, end: Node) -> Node:
        """Return the frame RANGE BETWEEN UNBOUNDED PRECEDING AND end, a frame bound."""
        return self.expression(
            "SpecifiedWindowFrame", self._object("RangeFrame"), self._object("UnboundedPreceding"), end
        )

    def row_number(self, partition: list[Node], order: list[Node], name: str) -> Node:
        """Return a column with the numbers 1, 2, 3... within each partition.

        Args:
            partition: expressions of PARTITION BY.
            order: expressions of ORDER BY.
            name: name of the column.
        """
        number = self.over(self.expression("RowNumber"), partition, order, self.rows_until("CurrentRow"))
        return self.catalyst.alias(number, name)

    # --- Joins ---

    def anti_join(self, left: Node, right: Node, condition: Node) -> Node:
        """Return the rows of the left side that have no partner on the right.

        Args:
            left: the left input.
            right: the right input.
            condition: the condition of the join.
        """
        return self._join("LeftAnti", left, right, condition)

    def inner_join(self, left: Node, right: Node, condition: Node | None = None) -> Node:
        """Return the pairs of rows for which a condition holds; all pairs without one.

        Args:
            left: the left input.
            right: the right input.
            condition: the condition of the join.
        """
        return self._join("Inner", left, right, condition)

    def outer_join(self, left: Node, right: Node, condition: Node | None = None) -> Node:
        """Return the pairs for which a condition holds, and the rows of the left side that have no partner.

        Args:
            left: the left input.
            right: the right input.
            condition: the condition of the join.
        """
        return self._join("LeftOuter", left, right, condition)

    def _join(self, kind: str, left: Node, right: Node, condition: Node | None) -> Node:
        join_type = self.catalyst.java_object(f"{_PACKAGE}plans.{kind}")
        no_hint = self._class(_PACKAGE + "plans.logical.JoinHint").NONE()
        option = self._class("scala.Option").apply(condition)
        return self._class(_PACKAGE + "plans.logical.Join")(left, right, join_type, option, no_hint)

    def repeated(self, child: Node, times: Node) -> Node:
        """Repeat each row of a plan as often as an expression over it says, at least once; with one more column."""
        none = self.catalyst.nothing
        zone = self._class("scala.Option").apply("UTC")  # it would stay unresolved without a zone
        numbers = self.expression("Sequence", self.catalyst.integer(1), self.cast(times, "int"), none, zone)
        number = self.catalyst.alias(self.catalyst.integer(1), "__odf_nth").toAttribute()
        return self.generate(self.expression("Explode", numbers), [number], child)

    def generate(self, generator: Node, outputs: Iterable[Node], child: Node, *, outer: bool = False) -> Node:
        """Return the plan of `SELECT *, generator FROM child`; with `outer`, also rows for which it generates nothing.

        Args:
            generator: for example an `Explode`.
            outputs: its output columns.
            child: the input plan.
            outer: whether rows for which nothing is generated stay, with nulls.
        """
        seq, none = self.catalyst.seq, self.catalyst.nothing
        generate = self._class(_PACKAGE + "plans.logical.Generate")
        return generate(generator, seq([]), outer, none, seq(outputs), child)

    def fence(self, plan: Node) -> Node:
        """Return the same rows behind a filter that passes all of them, and below which the optimizer moves nothing."""
        partition = self.expression("SparkPartitionID")
        return self.catalyst.filter(self.expression("GreaterThanOrEqual", partition, self.catalyst.integer(0)), plan)

    # --- Aggregates ---

    def count_all(self) -> Node:
        """Return count(1)."""
        return self.aggregate(self.expression("aggregate.Count", self.catalyst.seq([self.catalyst.integer(1)])))

    def aggregate(self, function: Node) -> Node:
        """Return a call of an aggregate function."""
        return self.expression(
            "aggregate.AggregateExpression",
            function,
            self._object("aggregate.Complete"),
            False,
            self.catalyst.nothing,
            self._class(_EXPRESSIONS + "NamedExpression").newExprId(),
        )

    def replacement(self, function: Node) -> Node:
        """Return the function that Spark runs in place of another, which may be that function itself."""
        replaceable = self._class("java.lang.Class").forName(_EXPRESSIONS + "RuntimeReplaceable")
        while replaceable.isInstance(function):
            function = function.replacement()
        return function

    def substitute(self, expression: Node, replacement: Callable[[Node], Node | None]) -> Node:
        """Replace parts of an expression by the results of `found`, which are not searched again."""
        if (replaced := replacement(expression)) is not None:
            return replaced
        before = children(expression)
        after = [self.substitute(child, replacement) for child in before]
        if all(old is new for old, new in zip(before, after, strict=True)):
            return expression
        return expression.withNewChildren(self.catalyst.seq(after))
