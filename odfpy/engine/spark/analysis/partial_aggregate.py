"""Two-phase aggregation: rows become partial aggregates of their groups, and these become the results.

Partial aggregates can be merged in any order, and those of sums and counts can also be subtracted. So they can be
stored as the state of a group in place of its rows.

For functions that return one of their values (min, max), that holds only as long as no row is retracted. After a
retraction, the values become keys of the partial aggregates as well: one for each distinct value, with the number of
its rows.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

from odfpy.engine.spark.analysis.exact_sums import Summand, can_be_exact, summands_of
from odfpy.engine.spark.analysis.order import adds_up
from odfpy.engine.spark.plan.aggregate_calls import call_id, columns_with
from odfpy.engine.spark.plan.builder import Builder
from odfpy.engine.spark.plan.catalyst import Node, children, columns, expression_name, items
from odfpy.engine.spark.plan.lineage import same_column
from odfpy.engine.spark.plan.storable_types import can_be_compared, can_be_stored
from odfpy.engine.spark.plan.templates import Templates

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

ROWS: Final = "__odf_rows"
_WEIGHT: Final = "__odf_weight"
_SUMS: Final = frozenset(("Count", "Sum"))
_VALUES: Final = {"Min": "min({0})", "Max": "max({0})", "BitAndAgg": "bit_and({0})", "BitOrAgg": "bit_or({0})"}
"""Functions whose result does not depend on how often a value occurs, as SQL."""


@dataclass(frozen=True, slots=True)
class _OtherCall:
    """A mergeable call that is not one of a `Summand`.

    Attributes:
        call: the call.
        argument: its argument; NULL for rows that do not count.
        kind: name of the function.
        name: name of the column of its partial result, and before that of its argument.
    """

    call: Node
    argument: Node
    kind: str
    name: str

    @property
    def sql_type(self) -> str:
        return str(self.call.dataType().sql())


class PartialAggregate:
    """An `Aggregate` operator split into two phases.

    Attributes:
        build: makes the nodes.
        node: the operator.
        groupings: expressions of GROUP BY.
        can_be_merged: whether the two phases give the results of all calls.
        can_be_kept: whether partial aggregates can be stored as the state of groups.
        is_linear: whether partial aggregates can be subtracted without values as keys.
        schemas: schemas of partial aggregates without and with values as keys, once they are known.
    """

    def __init__(self, build: Builder, node: Node, calls: Iterable[Node]) -> None:
        """Analyze an operator.

        Args:
            build: makes the nodes.
            node: the operator.
            calls: its distinct calls of functions, over normalized values.
        """
        self.build = build
        self.node = node
        self.groupings = items(node.groupingExpressions())
        self.schemas: dict[bool, StructType] = {}
        self._templates = Templates()
        self._over_groups: dict[int, tuple[Node, Node]] = {}
        exact, others, self._rest = [], [], []
        for call in calls:
            if can_be_exact(build, call):
                exact.append(call)
            elif _can_be_merged(build, call):
                others.append(call)
            else:
                self._rest.append(call)
        self._exact = exact
        self._summands, self._of_call = summands_of(build, exact)
        self._others = [self._other(call, f"__odf_other{at}") for at, call in enumerate(others)]
        self.is_linear = all(other.kind in _SUMS for other in self._others)
        self.can_be_merged = not self._rest or not self._floats
        self.can_be_kept = not self._rest and not any(_has_no_state(value) for value in self._stored())

    # --- Columns ---

    @cached_property
    def keys(self) -> list[str]:
        """Return the names of the columns with the values of GROUP BY."""
        return [f"__odf_group{at}" for at in range(len(self.groupings))]

    @cached_property
    def group_columns(self) -> list[Node]:
        """Return the columns that stand for the values of GROUP BY in expressions over partial aggregates."""
        return [self._column(value, name) for value, name in zip(self.groupings, self.keys, strict=True)]

    def over_groups(self, expression: Node) -> Node:
        """Translate an expression over the grouping expressions to one over `group_columns`."""
        if id(expression) not in self._over_groups:
            pairs = list(zip(self.groupings, self.group_columns, strict=True))

            def replacement(part: Node) -> Node | None:
                return next((column for value, column in pairs if part.semanticEquals(value)), None)

            self._over_groups[id(expression)] = expression, self.build.substitute(expression, replacement)
        return self._over_groups[id(expression)][1]

    def with_group_columns(self, plan: Node) -> Node:
        """Return partial aggregates with `group_columns`, whatever identities these columns had before."""
        return self.build.catalyst.project(self._renamed(plan, self.group_columns), plan)

    def _renamed(self, plan: Node, wanted: list[Node]) -> list[Node]:
        """Return the columns of a plan, with those that have the name of a wanted column renamed to it."""
        catalyst, by_name = self.build.catalyst, {column.name(): column for column in wanted}
        renamed = []
        for column in columns(plan):
            other = by_name.get(column.name())
            if other is None or same_column(column, other):
                renamed.append(column)
            else:
                value = catalyst.never_null(column) if column.nullable() and not other.nullable() else column
                renamed.append(catalyst.alias(value, other.name(), other.exprId()))
        return renamed

    def _column(self, value: Node, name: str) -> Node:
        return self.build.catalyst.alias(value, name).toAttribute()

    @property
    def _floats(self) -> list[Summand]:
        return [summand for summand in self._summands if summand.is_float]

    @property
    def _values(self) -> list[_OtherCall]:
        return [other for other in self._others if other.kind not in _SUMS]

    def _partial_keys(self, by_value: bool) -> list[str]:
        zones = [summand.zone for summand in self._floats]
        return self.keys + zones + ([other.name for other in self._values] if by_value else [])

    def _stored(self) -> list[Node]:
        return [*self.groupings, *(other.argument for other in self._values)]

    def _other(self, call: Node, name: str) -> _OtherCall:
        build = self.build
        function = build.replacement(call.aggregateFunction())
        kind, values = _kind(function), children(function)
        conditions = [call.filter().get()] if call.filter().isDefined() else []
        if kind == "Count":
            conditions += [build.expression("IsNotNull", value) for value in values if value.nullable()]
            argument = build.catalyst.integer(1)
        else:
            (argument,) = values
        for condition in conditions:
            argument = build.only_if(condition, argument)
        return _OtherCall(call, argument, kind, name)

    # --- First phase ---

    def of_rows(self, child: Node, weight: Node | None = None, *, by_value: bool = False) -> Node:
        """Return partial aggregates, one for each group (and zone, and value): keys, `ROWS`, and what is added up.

        Args:
            child: the rows.
            weight: the weight of each row, possibly negative; None for 1.
            by_value: whether values are keys; necessary with weights unless `is_linear`.
        """
        catalyst = self.build.catalyst
        given = [catalyst.alias(one, name) for one, name in zip(self.groupings, self.keys, strict=True)]
        given += [catalyst.alias(summand.value, summand.name) for summand in self._summands]
        given += [catalyst.alias(other.argument, other.name) for other in self._others]
        given += [catalyst.alias(weight, _WEIGHT)] if weight is not None else []
        given += columns(child) if self._rest else []
        rows = catalyst.project(given, child)
        cut = [text for one in self._summands for text in one.cut()]
        keys = self._partial_keys(by_value)
        aggregates = [f"{self._count('1', weight)} as {ROWS}"]
        for summand in self._summands:
            aggregates += [f"{self._sum(name, weight)} as {name}" for name in summand.pieces]
            aggregates.append(f"{self._count(summand.name, weight)} as {summand.count}")
        for other in self._others:
            aggregates += self._first(other, weight, by_value)
        if not self._rest:

            def query(rows: DataFrame) -> DataFrame:
                return _grouped(_selected(rows, cut), keys, aggregates)

            return self._over(rows, ("rows", weight is None, by_value), query)
        plan = catalyst.plan(_selected(catalyst.dataframe(rows), cut))
        moved = self._moved(child, plan, len(given))
        rest = [catalyst.alias(call, name) for call, name in zip(moved, self._rest_names, strict=True)]
        node = catalyst.plan(_grouped(catalyst.dataframe(plan), keys, aggregates))
        outputs = [*items(node.aggregateExpressions()), *rest]
        return catalyst.aggregate(items(node.groupingExpressions()), outputs, node.child())

    @property
    def _rest_names(self) -> list[str]:
        return [f"__odf_rest{at}" for at in range(len(self._rest))]

    def _moved(self, child: Node, plan: Node, num_given: int) -> list[Node]:
        """Return the calls over the child's own columns, which come last among the columns that a plan was given.

        Spark may give columns other identities where parts of a plan occur twice.
        """
        before = columns(child)
        after = columns(plan)[num_given - len(before) : num_given]

        def replacement(part: Node) -> Node | None:
            if expression_name(part) != "AttributeReference":
                return None
            return next((now for old, now in zip(before, after, strict=True) if same_column(part, old)), None)

        return [self.build.substitute(call, replacement) for call in self._rest]

    def _first(self, other: _OtherCall, weight: Node | None, by_value: bool) -> list[str]:
        name = other.name
        if other.kind == "Count":
            return [f"{self._count(name, weight)} as {name}"]
        if other.kind == "Sum":
            value = name if weight is None else f"if({_WEIGHT} < 0, -{name}, {name})"
            return [f"sum({value}) as {name}", f"{self._count(name, weight)} as {name}_n"]
        return [] if by_value else [f"{_VALUES[other.kind].format(name)} as {name}"]

    @staticmethod
    def _count(name: str, weight: Node | None) -> str:
        if weight is None:
            return f"count({name})"
        return f"coalesce(sum(if({name} is null, 0, {_WEIGHT})), 0L)"

    @staticmethod
    def _sum(name: str, weight: Node | None) -> str:
        return f"sum({name})" if weight is None else f"sum({name} * {_WEIGHT})"

    # --- Merge ---

    def merged(self, plan: Node, *, by_value: bool = False) -> Node:
        """Merge partial aggregates with the same keys, and drop those of which nothing is left.

        Args:
            plan: the partial aggregates.
            by_value: whether values are keys.
        """
        keys = self._partial_keys(by_value)

        def query(rows: DataFrame) -> DataFrame:
            merged = _grouped(rows, keys, self._merges(by_value))
            # If a row was added and another one retracted before it came, `ROWS` alone is 0, but sums are not.
            return merged.where(" or ".join(f"{name} <> 0" for name in self._added())) if keys else merged

        return self._over(plan, ("merged", by_value), query, self.with_group_columns)

    def _added(self) -> list[str]:
        sums = [name for other in self._others if other.kind == "Sum" for name in (other.name, f"{other.name}_n")]
        counts = [other.name for other in self._others if other.kind == "Count"]
        return [
            ROWS,
            *(name for summand in self._summands for name in (*summand.pieces, summand.count)),
            *sums,
            *counts,
        ]

    def _merges(self, by_value: bool, *, without: Iterable[str] = ()) -> list[str]:
        typed = {other.name: other.sql_type for other in self._others if other.kind == "Sum"}
        merged = {
            name: f"cast(sum({name}) as {typed[name]})" if name in typed else f"coalesce(sum({name}), 0L)"
            for name in self._added()
        }
        if not by_value:
            merged |= {other.name: _VALUES[other.kind].format(other.name) for other in self._values}
        return [f"{text} as {name}" for name, text in merged.items() if name not in set(without)]

    # --- Second phase ---

    def results(self, plan: Node, *, by_value: bool = False, counted: bool = False) -> Node:
        """Return the result rows of the operator.

        Args:
            plan: partial aggregates, with each key once.
            by_value: whether values are keys.
            counted: whether there may be groups without rows.
        """

        def query(rows: DataFrame) -> DataFrame:
            if by_value:
                # A value that was retracted before it came has a negative count: it is absent, and cannot be the
                # minimum.
                present = rows.where(f"{ROWS} > 0")
                rows = _grouped(present, self._partial_keys(False), self._merges(False))
            if self._floats:
                rows = _selected(rows, [summand.zone_sum() for summand in self._floats])
                pieces = [name for summand in self._floats for name in summand.pieces]
                zones = [f"collect_list({summand.name}) as {summand.name}" for summand in self._floats]
                rows = _grouped(rows, self.keys, self._merges(False, without=pieces) + zones)
            if counted and self.groupings:
                rows = rows.where(f"{ROWS} > 0")
            return _selected(rows, [f"{text} as __odf_result{at}" for at, text in enumerate(self._totals())])

        def shown(aggregated: Node) -> Node:
            catalyst, (wanted, outputs) = self.build.catalyst, self._shown
            return catalyst.project(outputs, catalyst.project(self._renamed(aggregated, wanted), aggregated))

        return self._over(plan, ("results", by_value, counted), query, shown)

    def _totals(self) -> list[str]:
        """Return the results of all calls, as SQL over partial aggregates."""
        totals = [summand.total(call) for summand, call in zip(self._of_call, self._exact, strict=True)]
        for other in self._others:
            total = f"cast({other.name} as {other.sql_type})"
            totals.append(f"if({other.name}_n = 0, null, {total})" if other.kind == "Sum" else other.name)
        return totals + self._rest_names

    @cached_property
    def _shown(self) -> tuple[list[Node], list[Node]]:
        """Return the columns with group values and results of calls, and the operator's output columns over these."""
        calls = [*self._exact, *(other.call for other in self._others), *self._rest]
        results = [self._column(call, f"__odf_result{at}") for at, call in enumerate(calls)]
        by_call = {call_id(call): result for call, result in zip(calls, results, strict=True)}
        outputs = columns_with(self.build, self.node, by_call, self.groupings, self.group_columns)
        return [*self.group_columns, *results], outputs

    def _over(
        self,
        rows: Node,
        purpose: Hashable,
        query: Callable[[DataFrame], DataFrame],
        then: Callable[[Node], Node] | None = None,
    ) -> Node:
        return self._templates.over(self.build.catalyst, rows, purpose, query, then=then)


def _selected(rows: DataFrame, expressions: list[str]) -> DataFrame:
    """Return SELECT *, expressions FROM rows, where a column may be computed from earlier ones."""
    return rows.selectExpr("*", *expressions) if expressions else rows


def _grouped(rows: DataFrame, keys: list[str], aggregates: list[str]) -> DataFrame:
    """Return SELECT keys, aggregates FROM rows GROUP BY keys."""
    from pyspark.sql import functions

    return rows.groupBy(*keys).agg(*map(functions.expr, aggregates))


def _kind(function: Node) -> str:
    return expression_name(function).removeprefix("aggregate.")


def _can_be_merged(build: Builder, call: Node) -> bool:
    """Return whether the result of a call for a group follows from its results for parts of the group."""
    function = build.replacement(call.aggregateFunction())
    if call.isDistinct() or adds_up(function):
        return False
    return _kind(function) in _SUMS or _kind(function) in _VALUES


def _has_no_state(value: Node) -> bool:
    """Return whether values of a type cannot be stored, or equal values may consist of different letters."""
    text = str(value.dataType().sql())
    return any(word in text for word in ("INTERVAL", "COLLATE")) or not (
        can_be_stored(value) and can_be_compared(value)
    )
