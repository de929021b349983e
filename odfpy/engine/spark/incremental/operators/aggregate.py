"""GROUP BY: event-time windows, session windows, and aggregates by key.

The groups of event-time windows are emitted once the watermark has passed their end; until then their rows wait. Groups
without a time among their keys are emitted at once, and corrected with every change.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from odfpy.engine.spark.analysis.canonical import canonical_partial_aggregate, ordered_aggregate
from odfpy.engine.spark.analysis.determinism import place
from odfpy.engine.spark.analysis.linked_sessions import linked_sessions
from odfpy.engine.spark.analysis.one_result import with_one_result
from odfpy.engine.spark.analysis.partial_aggregate import PartialAggregate
from odfpy.engine.spark.incremental.operators.planner import Planner
from odfpy.engine.spark.incremental.properties.keys import is_window
from odfpy.engine.spark.incremental.properties.plan_info import (
    InputsAt,
    Key,
    PlanInfo,
    StateRequirement,
    TimeColumn,
    Values,
)
from odfpy.engine.spark.incremental.properties.row_rules import CompletenessRule, RowRules
from odfpy.engine.spark.incremental.properties.time_columns import time_of
from odfpy.engine.spark.incremental.state.changes import no_rows
from odfpy.engine.spark.plan.builder import Builder
from odfpy.engine.spark.plan.catalyst import Catalyst, Node, column_id, columns_read, expression_name, items
from odfpy.engine.spark.plan.monotone import never_decreases, never_exceeds
from odfpy.engine.spark.plan.session_windows import is_session
from odfpy.engine.spark.plan.storable_types import can_be_grouped, can_be_key, unsortable_beside_text
from odfpy.engine.spark.plan.templates import Template
from odfpy.engine.spark.plan.times import MILLISECOND, DerivedWatermark, FirstOpenWindow, FunctionOf, ShiftedBy
from odfpy.engine.spark.rows.parallelism import is_gathered
from odfpy.errors import UnsupportedQuery

WINDOW = "event-time window"
SESSION = "session window"
KEYED = "keyed aggregate"
GROUPS = "partial results of all groups"


@dataclass(frozen=True, slots=True)
class _Grouping:
    """One grouping expression, and the event time that it follows, if any."""

    expression: Node
    time: TimeColumn | None

    @property
    def is_session(self) -> bool:
        return is_session(self.expression)


def aggregate(planner: Planner, plan: Node) -> PlanInfo:
    """Return the properties of an aggregate.

    Raises:
        UnsupportedQuery: Spark has no groups by a type.
    """
    child = planner.info_of(plan.child())
    plan = with_one_result(Builder(planner.catalyst), plan)
    _check_groupings(planner, plan)
    groupings = [
        _Grouping(expression, _time_of(planner, expression, child)) for expression in items(plan.groupingExpressions())
    ]
    session = next((grouping for grouping in groupings if grouping.is_session), None)
    timed = [grouping for grouping in groupings if grouping.time is not None and not grouping.is_session]
    if session is not None:
        return _session(planner, plan, child, groupings, session)
    if timed:
        return _windowed(planner, plan, child, groupings, timed)
    return _keyed(planner, plan, child, groupings)


def _check_groupings(planner: Planner, plan: Node) -> None:
    """Check that Spark can group by all grouping expressions of an aggregate."""
    groupings = items(plan.groupingExpressions())
    for grouping in groupings:
        if not can_be_grouped(grouping):
            what = f"`{_text(grouping)}` has the type {grouping.dataType().sql()}, by which there are no groups"
            raise UnsupportedQuery(f"{what}{place(plan, planner.source)}", hint="Group by st_asbinary(...) of it.")
    if (interval := unsortable_beside_text(groupings)) is not None:
        what = f"There are no groups by `{_text(interval)}`, an INTERVAL, beside a collated text"
        raise UnsupportedQuery(f"{what}{place(plan, planner.source)}", hint="Group by CAST(... AS STRING) of it.")


def distinct(planner: Planner, plan: Node) -> PlanInfo:
    """Return the properties of DISTINCT, planned as a group for each distinct row."""
    child = planner.info_of(plan.child())
    as_groups = planner.catalyst.aggregate(child.columns, child.columns, plan.child())
    groups = _partial_aggregate(planner, as_groups)
    if groups is not None:
        child = planner.stateful_input(planner.as_fragment(child), child.columns, groups=groups)
        groupings = [_Grouping(column, None) for column in child.columns]
        return _grouped(
            planner, as_groups, child, groupings, StateRequirement(KEYED, "DISTINCT", GROUPS), groups=groups
        )
    child = planner.recomputable(child)
    keys = tuple(key for key in child.keys if key.outputs.columns)
    child = replace(child, keys=keys) if keys else planner.as_fragment(child)
    if child.stateless_plan is not None:
        child = planner.stateful_input(child, child.columns)
    requirement = StateRequirement(KEYED, "DISTINCT", "how often each row is there")
    return replace(
        child,
        build=lambda inputs_at: plan.withNewChildren(planner.catalyst.seq([child.built(inputs_at)])),
        unique=frozenset(column_id(column) for column in child.columns),
        requirements=(*child.requirements, requirement),
    )


def _windowed(
    planner: Planner, plan: Node, child: PlanInfo, groupings: Sequence[_Grouping], timed: Sequence[_Grouping]
) -> PlanInfo:
    """Return the properties of an aggregate by event-time windows, which are emitted once they are complete."""
    catalyst = planner.catalyst
    complete_when = tuple(
        CompletenessRule(
            catalyst.field_of(grouping.expression, "end") if grouping.time.windows else grouping.expression,
            grouping.time.watermark,
            inclusive=True,
        )
        for grouping in timed
        if grouping.time is not None
    )
    keys = [grouping.expression for grouping in groupings]
    child, groups = planner.as_fragment(child), _partial_aggregate(planner, plan)
    rules = RowRules(complete_when=complete_when, only_complete=True)
    if groups is None:
        rules = replace(rules, drop_when=complete_when, late_when=complete_when)
    below = planner.stateful_input(child, keys, rules, groups=groups)
    state = GROUPS if groups is not None else "rows of open windows"
    requirement = StateRequirement(WINDOW, f"GROUP BY {_text(timed[0].expression)}, a time", state)
    return _grouped(planner, plan, below, groupings, requirement, first_open=_first_open(timed[0]), groups=groups)


def _partial_aggregate(planner: Planner, plan: Node) -> PartialAggregate | None:
    """Return the partial aggregate that can replace the rows of groups; None where all rows are needed."""
    if not planner.uses_partial_aggregates:
        return None
    partial = canonical_partial_aggregate(Builder(planner.catalyst), plan)
    return partial if partial.can_be_kept else None


@dataclass(frozen=True, slots=True)
class _FirstOpen:
    """A lower bound on the times of rows in windows that are still open.

    Attributes:
        column: the time by which rows are assigned to windows.
        watermark: no row of an open window has a time at or before it.
    """

    column: Node
    watermark: DerivedWatermark


def _first_open(grouping: _Grouping) -> _FirstOpen | None:
    """Return a lower bound on the times of rows in open groups; None if a group's time may exceed its rows'."""
    time, expression = grouping.time, grouping.expression
    if time is None:
        return None
    if time.windows:
        first = ShiftedBy(FirstOpenWindow(time.windows, time.reads, time.watermark), -MILLISECOND)
        return None if time.reads is None else _FirstOpen(time.reads, first)
    (read,) = columns_read(expression)
    return _FirstOpen(read, time.watermark) if never_exceeds(expression) else None


class _PlanTemplate:
    """A plan over rows of given columns that Spark analyzes once, and each pull puts over its own rows."""

    def __init__(self, catalyst: Catalyst, columns: Sequence[Node], make: Callable[[Node], Node]) -> None:
        self._catalyst, self._columns, self._make = catalyst, columns, make

    @cached_property
    def _template(self) -> Template:
        return Template(self._make(no_rows(self._catalyst, self._columns)))

    def over(self, rows: Node) -> Node:
        """Return the plan over some rows."""
        return self._template.over(self._catalyst, self._catalyst.project(self._columns, rows))


def _session(
    planner: Planner, plan: Node, child: PlanInfo, groupings: Sequence[_Grouping], session: _Grouping
) -> PlanInfo:
    """Return the properties of an aggregate by session windows, which are emitted once they are complete."""
    catalyst, column = planner.catalyst, session.expression
    others = [grouping for grouping in groupings if grouping is not session]
    if session.time is None:  # over a time without a watermark: sessions are never complete, and emitted at once
        below = planner.stateful_input(planner.as_fragment(child), [other.expression for other in others])
        requirement = StateRequirement(
            KEYED, "GROUP BY session_window, not of the event time", "the rows of all groups"
        )
        return _grouped(planner, plan, below, groupings, requirement)
    end = catalyst.field_of(column, "end")
    complete_when = CompletenessRule(end, session.time.watermark, inclusive=True)
    start = catalyst.field_of(column, "start")
    # Sessions that are no longer stored have ended by the watermark: only a row that begins no later can touch one.
    late = CompletenessRule(start, session.time.watermark, inclusive=True)
    # Leaving out a key may merge sessions of several keys; they are then only stored longer than necessary.
    keys = [other.expression for other in others if can_be_key(other.expression)]
    rules = RowRules(complete_when=(complete_when,), late_when=(late,), session=(start, end))
    below = planner.stateful_input(planner.as_fragment(child), keys, rules)
    outputs = items(plan.aggregateExpressions())
    requirement = StateRequirement(SESSION, "GROUP BY session_window, a time", "rows of open sessions")
    grouped = _grouped(planner, plan, below, groupings, requirement)
    shown = catalyst.alias(column, "__odf_session")

    expressions = items(plan.groupingExpressions())
    closed = replace(complete_when, value=catalyst.field_of(shown.toAttribute(), "end"))

    def template_of(aggregate_sessions: Callable[[Catalyst, Node], Node]) -> _PlanTemplate:
        def sessions(rows: Node) -> Node:
            aggregate = catalyst.aggregate(expressions, [*outputs, shown], rows)
            return Builder(catalyst).fence(aggregate_sessions(catalyst, aggregate))

        return _PlanTemplate(catalyst, below.columns, sessions)

    by_sorting, by_links = template_of(ordered_aggregate), template_of(linked_sessions)

    def build(inputs_at: InputsAt) -> Node:
        # For few rows, linking them into sessions costs more than sorting them.
        sessions = (by_sorting if is_gathered(catalyst.spark) else by_links).over(below.built(inputs_at))
        closed_sessions = catalyst.filter(closed.condition(inputs_at.clock), sessions)
        return catalyst.project(grouped.columns, closed_sessions)

    return replace(grouped, build=build)


def _keyed(planner: Planner, plan: Node, child: PlanInfo, groupings: Sequence[_Grouping]) -> PlanInfo:
    """Return the properties of an aggregate without a time among its keys: emitted at once, corrected later."""
    groups = _partial_aggregate(planner, plan)
    child = planner.recomputable(child) if groups is None else planner.as_fragment(child)
    if child.stateless_plan is None:
        keys = tuple(key for key in child.keys if any(key.outputs.has(grouping.expression) for grouping in groupings))
        child = replace(child, keys=keys) if keys else planner.as_fragment(child)
    if child.stateless_plan is not None:
        child = planner.stateful_input(child, [grouping.expression for grouping in groupings], groups=groups)
    reason = (
        f"GROUP BY {', '.join(_text(grouping.expression) for grouping in groupings)}"
        if groupings
        else "one group of all rows"
    )
    state = "the rows of all groups" if groups is None else GROUPS
    return _grouped(planner, plan, child, groupings, StateRequirement(KEYED, reason, state), groups=groups)


def _grouped(
    planner: Planner,
    plan: Node,
    child: PlanInfo,
    groupings: Sequence[_Grouping],
    requirement: StateRequirement,
    *,
    first_open: _FirstOpen | None = None,
    groups: PartialAggregate | None = None,
) -> PlanInfo:
    """Return the properties of the aggregate over a stateful plan, or over partial aggregates.

    Args:
        planner: the planner.
        plan: the aggregate.
        child: properties of the plan below, a stateful input, or with keys that partition the aggregate.
        groupings: the grouping expressions.
        requirement: the state that the aggregate needs.
        first_open: the bound on the times of rows in open windows, None for none.
        groups: the partial aggregates that replace the rows, None for rows.
    """
    outputs = items(plan.aggregateExpressions())
    columns = tuple(output.toAttribute() for output in outputs)
    times = {}
    for output, column in zip(outputs, columns, strict=True):
        time = _output_time(planner, output, groupings, child, first_open)
        if time is not None:
            times[column_id(column)] = time

    def aggregated(rows: Node) -> Node:
        grouped = ordered_aggregate(planner.catalyst, plan.withNewChildren(planner.catalyst.seq([rows])))
        has_sessions = any(grouping.is_session for grouping in groupings)
        return Builder(planner.catalyst).fence(grouped) if has_sessions else grouped

    of_rows = _PlanTemplate(planner.catalyst, child.columns, aggregated)

    def build(inputs_at: InputsAt) -> Node:
        if groups is None:
            return of_rows.over(child.built(inputs_at))
        partial = inputs_at.groups(child.stateful_inputs[0])
        return groups.results(partial.plan, by_value=partial.by_value, counted=True)

    return PlanInfo(
        columns,
        build=build,
        keys=tuple(_grouped_key(key, groupings, outputs) for key in child.keys),
        stateful_inputs=child.stateful_inputs,
        times=times,
        unique=_unique(groupings, outputs),
        requirements=(*child.requirements, requirement),
    )


def _grouped_key(key: Key, groupings: Sequence[_Grouping], outputs: Sequence[Node]) -> Key:
    """Return a key of the plan below as the aggregate shows it: by the outputs of grouping expressions that have it."""
    ids: set[int] = set()
    for grouping in groupings:
        if key.outputs.has(grouping.expression):
            ids |= _ids_of_value(grouping.expression, outputs)
    return Key(key.at, Values(frozenset(ids)))


def _unique(groupings: Sequence[_Grouping], outputs: Sequence[Node]) -> frozenset[int] | None:
    """Return the ids of the outputs that identify a group; None if they do not show all grouping expressions."""
    shown = [_determining_outputs(grouping.expression, outputs) for grouping in groupings]
    is_shown = all(shown) and all(can_be_key(grouping.expression) for grouping in groupings)
    return frozenset(min(ids) for ids in shown) if is_shown else None


def _ids_of_value(grouping: Node, outputs: Sequence[Node]) -> frozenset[int]:
    """Return the ids of outputs that have the value of a grouping expression."""
    values = ((output, output.child() if expression_name(output) == "Alias" else output) for output in outputs)
    return frozenset(column_id(output) for output, value in values if value.semanticEquals(grouping))


def _determining_outputs(grouping: Node, outputs: Sequence[Node]) -> frozenset[int]:
    """Return the ids of outputs that determine a grouping expression: its value, or an end of its window."""
    ids = set(_ids_of_value(grouping, outputs))
    for output in outputs if is_window(grouping) else ():
        value = output.child() if expression_name(output) == "Alias" else output
        if expression_name(value) == "GetStructField" and value.child().semanticEquals(grouping):
            ids.add(column_id(output))
    return frozenset(ids)


def _output_time(
    planner: Planner, output: Node, groupings: Sequence[_Grouping], child: PlanInfo, first_open: _FirstOpen | None
) -> TimeColumn | None:
    """Return the time properties of an output of an aggregate; None if it is no time, or its rows may be retracted."""
    if expression_name(output) != "Alias":
        return child.times.get(column_id(output))
    expression = output.child()
    for grouping in groupings:
        if grouping.time is not None and expression.semanticEquals(grouping.expression):
            return grouping.time
    if expression_name(expression) == "aggregate.AggregateExpression":
        return _aggregate_time(expression.aggregateFunction(), first_open)
    return time_of(planner.catalyst, output, child)


def _aggregate_time(function: Node, first_open: _FirstOpen | None) -> TimeColumn | None:
    """Return the time properties of MAX or MIN over the windowed column: neither lies before the window.

    Without windows, a later row may change any group, which retracts a row with an old time. Nor do windows over one
    time column bound the values of another.
    """
    if first_open is None or expression_name(function) not in ("aggregate.Max", "aggregate.Min"):
        return None
    argument = function.child()
    if expression_name(argument) != "AttributeReference" or column_id(argument) != column_id(first_open.column):
        return None
    return TimeColumn(first_open.watermark)


def _time_of(planner: Planner, grouping: Node, child: PlanInfo) -> TimeColumn | None:
    """Return the time properties of a grouping expression; None if it does not follow an event time."""
    if expression_name(grouping) == "AttributeReference":
        return child.times.get(column_id(grouping))
    read = columns_read(grouping)
    if len(read) != 1 or column_id(read[0]) not in child.times or not never_decreases(planner.catalyst, grouping):
        return None
    below = child.times[column_id(read[0])]
    if below.windows:
        return None
    # A later time may still map to the value of the watermark (all times of a day map to that day): only values before
    # it are complete.
    return TimeColumn(ShiftedBy(FunctionOf(grouping, read[0], below.watermark), -MILLISECOND))


def _text(expression: Node) -> str:
    return str(expression.sql()) if expression_name(expression) != "AttributeReference" else str(expression.name())
