"""Closed rows: the rules, for all operators but joins, that filter out rows which later input may still change.

The analyzed plan is walked from the inputs up, with the bounds that the watermarks set on each column; where an
operator has to wait for a watermark, a filter passes the rows that no longer have to wait:

| operator | waits for |
|---|---|
| GROUP BY a window | its end, as a time of the kind that the window is made of |
| GROUP BY a function of a time that never goes back | the time that it comes to |
| GROUP BY a session | the end of the session, which is known above the GROUP BY |
| outer and anti join of two times within an interval | for a row without a partner, the end of the interval |
| join with a temporal table | for a row that looks up a version, its time, on both sides |

All other rows are closed at once. Rows that a filter removes are not seen by the operators above it. Constants are
always closed: rows joined with them keep their time bounds as long as they are processed one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from odfpy.engine.spark.batch.closed import TABLE, ClosedPlan, NotComparable, PlanWalk
from odfpy.engine.spark.batch.computed import extreme_of_group, sliding_windows, time_of, time_of_group
from odfpy.engine.spark.batch.conditions import has_query
from odfpy.engine.spark.batch.joins import join, join_where
from odfpy.engine.spark.batch.ties import with_ties_in_limit, with_ties_in_window
from odfpy.engine.spark.batch.time_bounds import (
    ColumnTimes,
    RowLineage,
    TableTimes,
    has_passed,
    least,
    lineage_of,
    together,
)
from odfpy.engine.spark.batch.uses import is_where_above_inner_join
from odfpy.engine.spark.plan.builder import Builder
from odfpy.engine.spark.plan.catalyst import (
    Catalyst,
    Node,
    children,
    column_id,
    columns,
    expression_name,
    expressions_of,
    items,
    number_named,
    operator_name,
    selected,
)
from odfpy.engine.spark.plan.session_windows import fenced_sessions, is_session

_NAMES: Final = ("SubqueryAlias", "View", "expressions.PipeOperator")
_BACKWARDS: Final = ("RowNumber", "Rank", "DenseRank")


class ClosedPlanner(PlanWalk):
    """The walk through the plan of one query, with the rule of every operator."""

    def __init__(self, catalyst: Catalyst, tables: Sequence[TableTimes]) -> None:
        """Begin a walk; `tables` are those that the query reads, by number."""
        super().__init__(catalyst)
        self._tables = tables
        self._definitions: dict[int, Node] = {}

    def of(self, plan: Node) -> ClosedPlan:
        """Return the closed rows of a whole query.

        Raises:
            NotComparable: no rule tells what one of its operators waits for.
        """
        self._plan = plan
        return self.part(plan)

    def part(self, plan: Node) -> ClosedPlan:
        """Return the closed rows of a part of the query; raises the errors of `of`."""
        name = operator_name(plan)
        match name:
            case "SubqueryAlias" | "View" | "expressions.PipeOperator" | "Sort" | "RepartitionByExpression":
                return self.part(plan.child())  # the order of rows only matters to LIMIT
            case "LocalRelation" | "Range" | "OneRowRelation":
                return ClosedPlan(plan, tuple(columns(plan)), lineage=RowLineage.CONSTANT)
            case "WithCTE":
                self._definitions |= {item.id(): item.child() for item in items(plan.cteDefs())}
                return self.part(plan.plan())
            case "CTERelationRef":
                return self._reference(plan)
            case "Join":
                self._check_no_query(plan)
                return join(self, plan)
        rules: dict[str, Callable[[Node], ClosedPlan]] = {
            "Project": self._project,
            "Filter": self._filter,
            "Generate": self._made,
            "Expand": self._made,
            "Union": self._union,
            "Aggregate": self._aggregate,
            "Distinct": self._distinct,
            "Window": self._window,
            "Except": self._set_operation,
            "Intersect": self._set_operation,
            "GlobalLimit": self._limit,
            "LocalLimit": self._limit,
            "Offset": self._limit,
        }
        if name not in rules:
            raise NotComparable(f"its query has the operator {name}, for which the batch does not know when it waits")
        if name not in ("Project", "Filter"):
            self._check_no_query(plan)
        return rules[name](plan)

    @staticmethod
    def _check_no_query(plan: Node) -> None:
        if any(has_query(expression) for expression in expressions_of(plan)):
            raise NotComparable("its query has a subquery where the batch does not know what is closed")

    # --- Row by row ---

    def _project(self, plan: Node) -> ClosedPlan:
        expressions = selected(plan)
        mark = next(
            (
                expression
                for expression in expressions
                if expression.name() == TABLE and expression_name(expression) == "Alias"
            ),
            None,
        )
        if mark is not None:
            return self._table(plan, self._tables[number_named(mark)])
        child = self.part(plan.child())
        if any(has_query(expression) for expression in expressions):
            expressions_closed, lineage = self._closed_queries(expressions, child)
            return ClosedPlan(
                self.catalyst.project(expressions_closed, child.plan), tuple(columns(plan)), lineage=lineage
            )
        return self._selected(expressions, child)

    def _selected(self, selected: Sequence[Node], child: ClosedPlan) -> ClosedPlan:
        times, validity = {}, {}
        for column in selected:
            if (known := time_of(self.catalyst, column, child.times)) is not None:
                times[column_id(column)] = known
            source = column.child() if expression_name(column) == "Alias" else column
            if expression_name(source) == "AttributeReference" and column_id(source) in child.validity:
                validity[column_id(column)] = child.validity[column_id(source)]
        outputs = tuple(column.toAttribute() for column in selected)
        return ClosedPlan(self.catalyst.project(selected, child.plan), outputs, times, validity, child.lineage)

    def _table(self, plan: Node, table: TableTimes) -> ClosedPlan:
        outputs = tuple(columns(plan))
        if table.hidden is not None:
            plan = plan.withNewChildren(self.catalyst.seq([self._named_as(table.hidden, plan.child())]))
        times, validity = (
            {column_id(outputs[at]): value for at, value in by_position.items()}
            for by_position in (table.times, table.validity)
        )
        return ClosedPlan(plan, outputs, times, validity, table.lineage)  # type: ignore[arg-type]

    def _named_as(self, rows: Node, empty: Node) -> Node:
        """Return rows under the columns of the empty table over which the query was analyzed."""
        pairs = zip(columns(rows), columns(empty), strict=True)
        return self.catalyst.project([self.catalyst.alias(a, b.name(), b.exprId()) for a, b in pairs], rows)

    def _reference(self, plan: Node) -> ClosedPlan:
        """Inline a common table expression under the column names of its use."""
        definition = self.part(self._definitions[plan.cteId()])
        pairs = zip(definition.columns, columns(plan), strict=True)
        return self._selected([self.catalyst.alias(a, b.name(), b.exprId()) for a, b in pairs], definition)

    def _filter(self, plan: Node) -> ClosedPlan:
        condition = plan.condition()
        child = join_where(self, plan) if is_where_above_inner_join(plan) else self.part(plan.child())
        if has_query(condition):
            (condition,), lineage = self._closed_queries([condition], child)
            return ClosedPlan(self.catalyst.filter(condition, child.plan), child.columns, lineage=lineage)
        return replace(child, plan=self.catalyst.filter(condition, child.plan))

    def _closed_queries(self, expressions: Sequence[Node], child: ClosedPlan) -> tuple[list[Node], RowLineage]:
        """Restrict the subqueries of expressions to closed rows; also return the lineage of the rows that result."""
        lineages = [child.lineage]

        def closed(expression: Node) -> Node:
            name = expression_name(expression)
            if name == "ScalarSubquery" and not items(expression.children()):
                query = self.part(expression.plan())
                lineages.append(query.lineage)
                return expression.withNewPlan(query.plan)
            below = children(expression)
            if not below:
                return expression
            return expression.withNewChildren(self.catalyst.seq([closed(child) for child in below]))

        with_queries = [closed(expression) if has_query(expression) else expression for expression in expressions]
        return with_queries, together(lineages)

    def _made(self, plan: Node) -> ClosedPlan:
        """Return the closed rows of Generate or Expand, which make several rows of one, such as sliding windows."""
        child = self.part(plan.child())
        times = self._passed(plan, child)
        if operator_name(plan) == "Expand":
            times |= sliding_windows(self.catalyst, plan, child.times)
        return ClosedPlan(self.above(plan, child), tuple(columns(plan)), times, child.validity, child.lineage)

    def _passed(self, plan: Node, child: ClosedPlan) -> dict[int, ColumnTimes]:
        """Return the time bounds of columns that an operator passes on."""
        ids = {column_id(column) for column in columns(plan)}
        return {key: known for key, known in child.times.items() if key in ids}

    def _union(self, plan: Node) -> ClosedPlan:
        parts = [self.part(child) for child in children(plan)]
        changing = [part for part in parts if part.lineage is not RowLineage.CONSTANT]  # constants never come later
        lineage = lineage_of([part.lineage for part in parts])
        return ClosedPlan(
            self.above(plan, *parts), tuple(columns(plan)), _times_of_all(plan, changing), lineage=lineage
        )

    # --- Several rows at once ---

    def _distinct(self, plan: Node) -> ClosedPlan:
        child = self.part(plan.child())
        return ClosedPlan(self.above(plan, child), tuple(columns(plan)), self._passed(plan, child))

    def _set_operation(self, plan: Node) -> ClosedPlan:
        parts = [self.part(child) for child in children(plan)]
        lineage = together([part.lineage for part in parts])
        return ClosedPlan(self.above(plan, *parts), tuple(columns(plan)), _times_of_all(plan, parts), lineage=lineage)

    def _window(self, plan: Node) -> ClosedPlan:
        functions = [item for item in items(plan.windowExpressions()) if expression_name(item) == "Alias"]
        if (
            len(functions) < plan.windowExpressions().size()
        ):  # Spark repeats columns here when it makes a join of LATERAL
            order = items(plan.orderSpec())
            plan = Builder(self.catalyst).window(functions, items(plan.partitionSpec()), order, plan.child())
        child = self.part(plan.child())
        times = {}
        order = items(plan.orderSpec())
        by = order[0].child() if order and "DESC" not in order[0].direction().sql() else None
        known = None if by is None or expression_name(by) != "AttributeReference" else child.times.get(column_id(by))
        if known is not None and all(_looks_back(function.child()) for function in functions):
            times[column_id(by)] = known
        return ClosedPlan(with_ties_in_window(self.catalyst, self.above(plan, child)), tuple(columns(plan)), times)

    def _limit(self, plan: Node) -> ClosedPlan:
        operators, below = [], plan
        while operator_name(below) != "Sort":
            if operator_name(below) not in ("GlobalLimit", "LocalLimit", "Offset", "Project", *_NAMES):
                raise NotComparable("its query has a LIMIT of which no ORDER BY says which rows come first")
            if operator_name(below) not in _NAMES:
                operators.append(below)
            below = below.child()
        limited = with_ties_in_limit(self.catalyst, self.above(below, self.part(below.child())))
        for operator in reversed(operators):
            limited = operator.withNewChildren(self.catalyst.seq([limited]))
        return ClosedPlan(limited, tuple(columns(plan)))

    def _aggregate(self, plan: Node) -> ClosedPlan:
        child = self.part(plan.child())
        groups = [(item, time_of_group(self.catalyst, item, child.times)) for item in items(plan.groupingExpressions())]
        times_of_groups = [known for _, known in groups]
        session = next((pair for pair in groups if is_session(pair[0])), None)
        timed = [(grouping, known) for grouping, known in groups if known is not None and not is_session(grouping)]
        if session is not None:
            return self._sessions(plan, self._times_of_results(plan, child, times_of_groups, []), child, *session)
        if timed:
            over = [
                has_passed(
                    self.catalyst, self.catalyst.field_of(grouping, "end") if known.windows else grouping, known.passed
                )
                for grouping, known in timed
            ]
            child = replace(child, plan=self.where(over, child.plan, any_of=True))
        times = self._times_of_results(plan, child, times_of_groups, timed)
        return ClosedPlan(self.above(plan, child), tuple(columns(plan)), times)

    def _sessions(
        self, plan: Node, times: Mapping[int, ColumnTimes], child: ClosedPlan, session: Node, known: ColumnTimes | None
    ) -> ClosedPlan:
        catalyst, outputs = self.catalyst, tuple(columns(plan))
        groups = items(plan.groupingExpressions())
        if known is None:
            return ClosedPlan(fenced_sessions(catalyst, self.above(plan, child)), outputs, times)
        shown = catalyst.alias(session, "__odf_session")
        inside = catalyst.aggregate(groups, [*items(plan.aggregateExpressions()), shown], child.plan)
        over = has_passed(catalyst, catalyst.field_of(shown.toAttribute(), "end"), known.passed)
        return ClosedPlan(
            catalyst.project(outputs, catalyst.filter(over, fenced_sessions(catalyst, inside))), outputs, times
        )

    def _times_of_results(
        self,
        plan: Node,
        child: ClosedPlan,
        groups: Sequence[ColumnTimes | None],
        timed: Sequence[tuple[Node, ColumnTimes]],
    ) -> dict[int, ColumnTimes]:
        expressions = items(plan.groupingExpressions())
        times = {}
        for output in items(plan.aggregateExpressions()):
            value = output.child() if expression_name(output) == "Alias" else output
            same = next((groups[at] for at, grouping in enumerate(expressions) if value.semanticEquals(grouping)), None)
            if same is None and expression_name(value) == "aggregate.AggregateExpression":
                same = extreme_of_group(self.catalyst, value.aggregateFunction(), *timed[0]) if timed else None
            elif same is None:
                same = time_of(self.catalyst, output, child.times)
            if same is not None:
                times[column_id(output)] = same
        return times


def _times_of_all(plan: Node, parts: Sequence[ClosedPlan]) -> dict[int, ColumnTimes]:
    """Return the time bounds of columns that have the rows of several parts."""
    times = {}
    for at, column in enumerate(columns(plan)):
        part_times = [time for part in parts if (time := part.time_at(at)) is not None and not time.windows]
        if part_times and len(part_times) == len(parts):
            times[column_id(column)] = least(part_times)
    return times


def _looks_back(call: Node) -> bool:
    """Return whether a window function depends only on rows up to the current one."""
    function = call.windowFunction()
    name = expression_name(function)
    if name == "Lag":
        return bool(function.inputOffset().foldable() and function.inputOffset().eval(None) > 0)
    if name in ("aggregate.AggregateExpression", "NthValue"):
        last = expression_name(call.windowSpec().frameSpecification().upper())
        return last in ("CurrentRow", "UnboundedPreceding")
    return name in _BACKWARDS
