"""Access to Spark's logical plans: the one module that uses Spark's internal classes, through py4j.

A plan is a tree of JVM objects. Plans are parsed and analyzed by Spark itself; here they are inspected, and nodes are
put around them. Plans and expressions are typed `Node`, since py4j gives them no types.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from odfpy.engine.sql.projection import SPARK
from odfpy.engine.sql.source_text import check_levels

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType, StructType

Node: TypeAlias = Any
T = TypeVar("T")

_CATALYST = "org.apache.spark.sql.catalyst."
_PLANS = _CATALYST + "plans.logical."
_EXPRESSIONS = _CATALYST + "expressions."
_LEAVES = frozenset(_EXPRESSIONS + name for name in ("AttributeReference", "Literal"))
_NAME_OF = "_odf_name_of"
CALLS = "_odf_calls"
"""The attribute of a connection to Java that holds its `process.calls.Calls`."""
_PYTHON_UTILS = "org.apache.spark.api.python.PythonUtils"
_AT_ONCE = 10  # maximum number of items of Java's `List.of`


class Catalyst:
    """Access to Spark's parser, analyzer and plan nodes, for one session; shared by all code that builds plans."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        self.session: Node = spark._jsparkSession  # noqa: SLF001
        self._jvm: Node = spark._jvm  # noqa: SLF001
        # The parser reads the settings of the active session.
        self.java_class("org.apache.spark.sql.classic.SparkSession").setActiveSession(self.session)
        self._some: Node = self.java_class("scala.Option").apply
        self.nothing: Node = self.java_class("scala.Option").empty()
        self._no_items: Node = self.java_class(_PYTHON_UTILS).toSeq([])

    def java_class(self, name: str) -> Node:
        """Return a Java class."""
        return getattr(self._jvm, name)

    def java_object(self, name: str) -> Node:
        """Return a Scala object."""
        return getattr(self.java_class(name + "$"), "MODULE$")

    def _plan(self, name: str) -> Node:
        return self.java_class(_PLANS + name)

    def _expression(self, name: str) -> Node:
        return self.java_class(_EXPRESSIONS + name)

    def _rule(self, name: str) -> Node:
        return self.java_class(_CATALYST + "optimizer." + name)

    def _data_type(self, name: str) -> Node:
        return self.java_class("org.apache.spark.sql.types." + name)

    # --- Parse, analyze, run ---

    def parse(self, query: str) -> Node:
        """Parse a query; nothing is resolved yet.

        Raises:
            InvalidQuery: the query is nested too deeply.
        """
        check_levels(query)
        return self.session.sessionState().sqlParser().parsePlan(query)

    def analyze(self, parsed: Node) -> Node:
        """Resolve all names and types of a plan; nothing is executed."""
        execution = self._execution(parsed)
        execution.assertAnalyzed()
        return execution.analyzed()

    def _execution(self, plan: Node) -> Node:
        skip = self.java_class("org.apache.spark.sql.execution.CommandExecutionMode").SKIP()
        return self.session.sessionState().executePlan(plan, skip)

    def dataframe(self, plan: Node) -> DataFrame:
        """Return the rows of a plan."""
        from pyspark.sql import DataFrame

        return DataFrame(self.java_class("org.apache.spark.sql.classic.Dataset").ofRows(self.session, plan), self.spark)

    def plan(self, frame: DataFrame) -> Node:
        """Return the analyzed plan of a data frame."""
        return frame._jdf.queryExecution().analyzed()  # noqa: SLF001

    def empty(self, schema: StructType) -> Node:
        """Return an empty relation with a schema."""
        no_rows = self.java_class("java.util.ArrayList")()
        parsed = self._data_type("DataType").fromJson(schema.json())
        return self.session.createDataFrame(no_rows, parsed).queryExecution().analyzed()

    def constant(self, expression: Node) -> Node:
        """Return the value of an expression that reads no column, as Spark represents it; NULL is None."""
        if expression_name(expression) == "Literal":
            return expression.value()
        (value,) = self.constants(self.project([self.alias(expression, "value")], self.one_row()))
        return value

    def constants(self, plan: Node) -> list[Any]:
        """Return the single row of a plan without input. Spark's optimizer computes it; no job is run."""
        optimized = self._execution(plan).optimizedPlan()
        return [column.child().value() for column in expressions_of(optimized)]

    def name_view(self, name: str, plan: Node) -> None:
        """Register a plan as a view of this session, under a name that may contain dots."""
        self.dataframe(plan).createOrReplaceTempView(SPARK.name(name))

    def has_queries(self, plan: Node) -> bool:
        """Return whether an expression of a plan contains a query."""
        pattern = self.java_class(_CATALYST + "trees.TreePattern").PLAN_EXPRESSION()
        return bool(plan.containsPattern(pattern))

    def with_correlation_outside(self, plan: Node) -> Node:
        """Pull correlated predicates up, out of the subqueries that contain them."""
        return self._rule("PullupCorrelatedPredicates").apply(plan)

    def with_joins_for_queries(self, plan: Node) -> Node:
        """Return the same plan with EXISTS, IN, LATERAL and correlated subqueries rewritten as joins."""
        for kind in ("RewritePredicateSubquery", "RewriteCorrelatedScalarSubquery", "RewriteLateralSubquery"):
            plan = self._rule(kind).apply(plan)
        return plan

    def depends_on_clock(self, plan: Node) -> bool:
        """Return whether Spark's own rules would put the current time into the plan, as for `timestamp > 'now'`."""
        plain = self._rule("ReplaceExpressions").apply(plan)
        rules = (self._rule("ComputeCurrentTime"), self._rule("SpecialDatetimeValues"))
        return not all(rule.apply(plain).fastEquals(plain) for rule in rules)

    # --- Build ---

    def seq(self, items: Iterable[Node]) -> Node:
        """Return a Scala sequence."""
        nodes = list(items)
        if not nodes:
            return self._no_items
        lists, to_seq = self.java_class("java.util.List"), self.java_class(_PYTHON_UTILS).toSeq
        # Java would call back for each item of a Python list.
        sequence, *more = (to_seq(lists.of(*nodes[at : at + _AT_ONCE])) for at in range(0, len(nodes), _AT_ONCE))
        for part in more:
            sequence = sequence.appendedAll(part)
        return sequence

    def alias(self, expression: Node, name: str, expr_id: Node | None = None, metadata: Node | None = None) -> Node:
        """Return an expression as a named column, with a new identity unless one is given.

        Args:
            expression: the expression.
            name: its name.
            expr_id: its identity, None for a new one.
            metadata: its metadata, None for those of the expression.
        """
        return self._expression("Alias")(
            expression,
            name,
            expr_id or self._expression("NamedExpression").newExprId(),
            self._no_items,
            self.nothing if metadata is None else self._some(metadata),
            self._no_items,
        )

    def integer(self, value: int) -> Node:
        """Return a constant of type INT."""
        return self._expression("Literal")(value, self._data_type("DataTypes").IntegerType)

    def time(self, micros: int, like: Node) -> Node:
        """Return a time in microseconds since the epoch, rounded down, as a constant with the type of an expression."""
        data_type = cached_node_property(like, "dataType", like.dataType)
        if cached_node_property(data_type, "typeName", lambda: str(data_type.typeName())) == "date":
            return self._expression("Literal").create(
                self.java_class("java.lang.Integer")(micros // 86_400_000_000), data_type
            )
        if -(1 << 31) <= micros < 1 << 31:  # py4j sends such numbers as Integer
            utc = self._some("UTC")
            return self._expression("Cast")(self._expression("MicrosToTimestamp")(self.integer(micros)), data_type, utc)
        return self._expression("Literal").create(self.java_class("java.lang.Long")(micros), data_type)

    def boolean(self, value: bool) -> Node:
        """Return a constant of type BOOLEAN."""
        return self._expression("Literal")(value, self._data_type("DataTypes").BooleanType)

    def expression(self, name: str, *arguments: Node) -> Node:
        """Return an expression by the name of its class, for example `EqualNullSafe`."""
        return self._expression(name)(*arguments)

    def field_of(self, struct: Node, field: str) -> Node:
        """Return a field of a struct expression."""
        names = cached_node_property(struct, "fields", lambda: [member.name() for member in struct.dataType().fields()])
        return self._expression("GetStructField")(struct, names.index(field), self._some(field))

    def never_null(self, expression: Node) -> Node:
        """Mark an expression as never NULL."""
        return self._expression("KnownNotNull")(expression)

    def project(self, columns: Iterable[Node], child: Node) -> Node:
        """Return the plan of `SELECT columns FROM child`."""
        return self._plan("Project")(self.seq(columns), child)

    def filter(self, condition: Node, child: Node) -> Node:
        """Return the plan of `SELECT * FROM child WHERE condition`."""
        return self._plan("Filter")(condition, child)

    def expand(self, copies: Iterable[Iterable[Node]], columns: Iterable[Node], child: Node) -> Node:
        """Return several copies of each row of child, each with its own expressions for the columns.

        Args:
            copies: for each copy of a row, its expressions.
            columns: the output columns.
            child: the plan below.
        """
        return self._plan("Expand")(self.seq([self.seq(copy) for copy in copies]), self.seq(columns), child)

    def aggregate(self, groupings: Iterable[Node], columns: Iterable[Node], child: Node) -> Node:
        """Return the plan of `SELECT columns FROM child GROUP BY groupings`.

        Args:
            groupings: the grouping expressions.
            columns: the output expressions.
            child: the plan below.
        """
        return self._plan("Aggregate")(self.seq(groupings), self.seq(columns), child, self.nothing)

    def semi_join(self, left: Node, right: Node, condition: Node, *, few: bool = False) -> Node:
        """Return the rows of the left side that have a partner on the right.

        Args:
            left: the left input.
            right: the right input.
            condition: the condition of the join.
            few: whether the right side fits into a hash table: then neither side is sorted.
        """
        return self._join("LeftSemi", left, right, condition, few=few)

    def inner_join(self, left: Node, right: Node, condition: Node) -> Node:
        """Return the pairs of rows for which a condition holds.

        Args:
            left: the left input.
            right: the right input.
            condition: the condition of the join.
        """
        return self._join("Inner", left, right, condition)

    def _join(self, kind: str, left: Node, right: Node, condition: Node, *, few: bool = False) -> Node:
        join_type, hint, some = self.java_object(f"{_CATALYST}plans.{kind}"), self._plan("JoinHint"), self._some
        by_hash = self.java_object(_PLANS + "SHUFFLE_HASH")
        hint = hint(self.nothing, some(self._plan("HintInfo")(some(by_hash)))) if few else hint.NONE()
        return self._plan("Join")(left, right, join_type, some(condition), hint)

    def union(self, children: Iterable[Node]) -> Node:
        """Return UNION ALL by position."""
        return self._plan("Union")(self.seq(children), False, False)

    def all_of(self, plans: Sequence[Node]) -> Node:
        """Return the union of one or several plans."""
        return plans[0] if len(plans) == 1 else self.union(plans)

    def distinct(self, child: Node) -> Node:
        """Return the plan of `SELECT DISTINCT * FROM child`."""
        return self._plan("Distinct")(child)

    def coalesced(self, child: Node, partitions: int = 1) -> Node:
        """Return the rows of child in few partitions, without a shuffle."""
        return self._plan("Repartition")(partitions, False, child)

    def one_row(self) -> Node:
        """Return one row without columns."""
        return self._plan("OneRowRelation")()


# --- Look -------------------------------------------------------------------------------------------------------------


def operator_name(plan: Node) -> str:
    """Return the name of an operator, for example `Project`, or with its package, as `analysis.UnresolvedRelation`."""
    return _class_name(plan).removeprefix(_PLANS).removeprefix(_CATALYST).removesuffix("$")


def expression_name(expression: Node) -> str:
    """Return the name of an expression relative to Spark's package of expressions, for example `variant.ParseJson`."""
    return _class_name(expression).removeprefix(_EXPRESSIONS).removesuffix("$")


def _class_name(node: Node) -> str:
    def ask() -> str:
        client = node._gateway_client  # noqa: SLF001
        if _NAME_OF not in client.__dict__:
            from py4j.java_gateway import JavaClass

            client.__dict__[_NAME_OF] = JavaClass("org.apache.commons.lang3.ClassUtils", client).getName
        name: str = client.__dict__[_NAME_OF](node, "")
        return name

    return cached_node_property(node, "class", ask)


def cached_node_property(node: Node, what: str, ask: Callable[[], T]) -> T:
    """Return an immutable property of a node from Java, cached beside the reference to the node.

    A call to Java takes a tenth of a millisecond, and plans are traversed many times.

    Args:
        node: the node.
        what: a name for the property.
        ask: fetches it.
    """
    kept = node.__dict__
    key = f"_odf_{what}"
    if key not in kept:
        kept[key] = ask()
    cached: T = kept[key]
    return cached


def parsed_name(expression: Node) -> str:
    """Return the name of an expression that may be unresolved, for example `Add`, or `analysis.UnresolvedFunction`."""
    return expression_name(expression).removeprefix(_CATALYST)


def items(sequence: Node) -> list[Node]:
    """Return a Scala sequence as a list."""
    nodes: list[Node] = sequence._gateway_client.__dict__[CALLS].items(sequence)  # noqa: SLF001
    return nodes


def children(node: Node) -> list[Node]:
    """Return the children of a plan or an expression."""
    if node.__dict__.get("_odf_class") in _LEAVES:
        return []
    return list(cached_node_property(node, "children", lambda: items(node.children())))


def child_of(node: Node) -> Node:
    """Return the only child of a plan or an expression."""
    (child,) = children(node)
    return child


def selected(project: Node) -> list[Node]:
    """Return the expressions that a projection selects."""
    return list(cached_node_property(project, "selected", lambda: items(project.projectList())))


def number_named(alias: Node) -> int:
    """Return the number of a column that is an integer constant with a name."""
    return cached_node_property(alias, "number", lambda: int(alias.child().value()))


def expressions_of(plan: Node) -> list[Node]:
    """Return the expressions of an operator."""
    return list(cached_node_property(plan, "expressions", lambda: items(plan.expressions())))


def subtree(expression: Node) -> Iterator[tuple[str, Node]]:
    """Yield the expression and all its descendants, each with its name."""
    yield expression_name(expression), expression
    for child in children(expression):
        yield from subtree(child)


def columns(plan: Node) -> list[Node]:
    """Return the output columns of a plan."""
    return list(cached_node_property(plan, "columns", lambda: items(plan.output())))


def column_id(column: Node) -> int:
    """Return the number that identifies a column within a plan."""
    return cached_node_property(column, "id", lambda: int(column.exprId().id()))


def columns_read(expression: Node) -> list[Node]:
    """Return the distinct columns that an expression reads."""
    by_id = {column_id(node): node for name, node in subtree(expression) if name == "AttributeReference"}
    return list(by_id.values())


def type_of(expression: Node) -> DataType:
    """Return the type of an expression, as PySpark represents it."""
    from pyspark.sql.types import _parse_datatype_json_string

    return cached_node_property(expression, "type", lambda: _parse_datatype_json_string(expression.dataType().json()))


def text_range(node: Node) -> tuple[int, int] | None:
    """Return where a node stands in the query text: the positions of its first character and after its last one."""
    origin = node.origin()
    start, stop = origin.startIndex(), origin.stopIndex()
    return (start.get(), stop.get() + 1) if start.isDefined() and stop.isDefined() else None
