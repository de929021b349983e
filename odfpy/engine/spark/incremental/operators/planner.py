"""Planner: turns an analyzed Spark plan into plan properties and fragments, and handles the stateless operators itself.

A plan is walked from the sources up. Views, aliases and common table expressions are inlined on the way, so that only
operators remain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Final

from odfpy.engine.spark.analysis.determinism import place
from odfpy.engine.spark.analysis.partial_aggregate import PartialAggregate
from odfpy.engine.spark.incremental.operators.sources import TableSource, source_of, source_plan
from odfpy.engine.spark.incremental.properties.column_usage import Uses, uses_of
from odfpy.engine.spark.incremental.properties.comparisons import fixed_columns
from odfpy.engine.spark.incremental.properties.keys import (
    passed_as,
    passed_keys,
    sources_read,
    unchanged_columns,
    united_key,
)
from odfpy.engine.spark.incremental.properties.plan_info import (
    Fragment,
    InputsAt,
    Key,
    Lookup,
    PlanInfo,
    Retention,
    StatefulInput,
    StateRequirement,
    TimeColumn,
    TopRows,
    Values,
    constant,
    fragment_of,
    rows_of,
)
from odfpy.engine.spark.incremental.properties.refusals import misplaced_subquery, not_incremental
from odfpy.engine.spark.incremental.properties.row_rules import NO_RULES, RowRules
from odfpy.engine.spark.incremental.properties.subqueries import SUBQUERIES, Subqueries, bound, reads_only_constants
from odfpy.engine.spark.incremental.properties.time_columns import expanded_windows, time_of
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
    subtree,
)
from odfpy.engine.spark.plan.step import CARRIED_INPUT
from odfpy.engine.spark.plan.storable_types import check_rows
from odfpy.engine.spark.plan.times import LeastOf
from odfpy.engine.sql.source_text import SourceText

_SCALAR: Final = "ScalarSubquery"


class Planner:
    """The walk through the analyzed plan of one step; `steps_of` makes one for each step."""

    def __init__(
        self,
        catalyst: Catalyst,
        source: SourceText,
        sources: list[TableSource],
        fragments: list[Fragment],
        operators: Mapping[str, Operator],
    ) -> None:
        """Begin a walk.

        Args:
            catalyst: the session.
            source: the text of the step, for the places in errors.
            sources: inputs and fragments so far; the walk adds those that it makes.
            fragments: fragments so far; the walk adds those that it makes.
            operators: the planning functions of stateful operators, by name.
        """
        self.catalyst = catalyst
        self.source = source
        self._fragments, self._sources = fragments, sources
        self.uses_partial_aggregates = True  # whether partial aggregates may replace the rows of groups
        self._num_inputs = len(sources) - len(fragments)
        self._operators = operators
        self._definitions: dict[int, Node] = {}
        self._stateful_inputs = 0
        self._at: Node = None
        self._has_subqueries = True
        self.row_numbers: set[int] = set()

    def start(self, plan: Node) -> PlanInfo:
        """Return the properties of the plan of the step; raises the errors of `info_of`."""
        self._plan = plan
        self._has_subqueries = self.catalyst.has_queries(plan)
        return self.info_of(plan)

    @cached_property
    def used(self) -> Uses:
        """Return how the step uses its columns."""
        return uses_of(self._plan)

    def info_of(self, plan: Node) -> PlanInfo:
        """Return the properties of a plan.

        Raises:
            UnsupportedQuery: an operator that cannot be processed incrementally, or rows that cannot be known again.
        """
        outer, self._at = self._at, plan
        info = self._info(plan)
        self._at = outer
        return info

    def _info(self, plan: Node) -> PlanInfo:
        name = operator_name(plan)
        if name in self._operators:
            self.refuse_subqueries(plan)
            return self._operators[name](self, plan)
        match name:
            # A state has no order, and emitted rows get their own: a Sort without a LIMIT above it has no effect.
            case "SubqueryAlias" | "View" | "expressions.PipeOperator" | "Sort" | "RepartitionByExpression":
                return self.info_of(plan.child())
            case "WithCTE":
                for definition in items(plan.cteDefs()):
                    self._definitions[definition.id()] = definition.child()
                return self.info_of(plan.plan())
            case "CTERelationRef":
                return self._reference(plan)
            case "Project":
                return self._project(plan)
            case "Filter":
                return self._filter(plan)
            case "Generate" | "Expand":
                return self._row_multiplying(plan)
            case "Union":
                return self._union(plan)
            case "LocalRelation" | "Range" | "OneRowRelation":
                return constant(tuple(columns(plan)), plan)
        raise not_incremental(plan, self.source)

    def _place(self, _: Node) -> str:
        """Return the place, in the query text, of the stateful operator at hand."""
        return place(self._at, self.source)

    # --- Stateful inputs and fragments ---

    def stateful_input(
        self,
        info: PlanInfo,
        keys: Sequence[Node],
        rules: RowRules = NO_RULES,
        *,
        looked_up: Lookup | None = None,
        groups: PartialAggregate | None = None,
        top_rows: TopRows | None = None,
    ) -> PlanInfo:
        """Return a stateless plan as a stateful input of the operator above it; arguments as in `StatefulInput`.

        Args:
            info: properties of the stateless plan.
            keys: expressions by which the operator above is partitioned.
            rules: when rows are complete, late, and no longer stored.
            looked_up: how its rows are looked up by those of another one, None if they are not.
            groups: the partial aggregates stored in place of rows, None for rows.
            top_rows: the rows that matter while nothing is retracted, None for all.
        """
        if groups is not None:
            retention = Retention.GROUPS
        elif rules.drop_when or rules.session:
            retention = Retention.OPEN
        elif self._reads_fragment(info.stateless_plan):
            retention = Retention.ALL
        else:
            retention = Retention.NOTHING if top_rows is None else Retention.TOP_ROWS
        stateful_input = StatefulInput(
            self._stateful_inputs,
            info.stateless_plan,
            info.columns,
            tuple(keys),
            rules,
            retention,
            looked_up,
            groups=groups,
            top_rows=top_rows if retention is Retention.TOP_ROWS else None,
        )
        self._stateful_inputs += 1
        if groups is None:
            check_rows(info.columns, self._place, are_stored=stateful_input.retention is not Retention.NOTHING)
        own_keys = tuple(Key({stateful_input.number: at}, Values.of([key])) for at, key in enumerate(keys))
        build = partial(rows_of, stateful_input)
        stateful = replace(info, stateless_plan=None, build=build, join_product=build, validity={})
        return replace(stateful, keys=own_keys, stateful_inputs=(stateful_input,))

    def _reads_fragment(self, plan: Node) -> bool:
        """Return whether a stateless plan reads the changes of a fragment, of which there is no history to read."""
        return any(number >= self._num_inputs for number in sources_read(plan))

    def as_fragment(self, info: PlanInfo) -> PlanInfo:
        """Make a plan, unless it is stateless, a fragment; return the stateless plan that reads its changes."""
        if info.stateless_plan is not None:
            return info
        check_rows(info.columns, self._place, are_stored=True)
        number = len(self._sources)
        self._fragments.append(fragment_of(info, number))
        self._sources.append(source_of(info))
        plan = self.catalyst.project(info.columns, source_plan(self.catalyst, info.columns, number))
        return replace(info, stateless_plan=plan, build=None, keys=(), stateful_inputs=(), validity={})

    def recomputable(self, info: PlanInfo) -> PlanInfo:
        """Return a plan whose earlier result every pull can recompute, for an operator that looks at several rows.

        Where stateful inputs drop rows, earlier results cannot be recomputed: the plan becomes a fragment of its own.
        """
        is_open = any(
            stateful_input.retention is Retention.OPEN or (stateful_input.groups and stateful_input.rules.only_complete)
            for stateful_input in info.stateful_inputs
        )
        return self.as_fragment(info) if is_open else info

    # --- Row by row ---

    def _project(self, plan: Node) -> PlanInfo:
        expressions = selected(plan)
        marker = next((column for column in expressions if column.name() == CARRIED_INPUT), None)
        if marker is not None and expression_name(marker) == "Alias":
            return self._leaf(plan, expressions, number_named(marker))
        child = self.info_of(plan.child())
        subqueries = self._subqueries(expressions)
        if subqueries:
            child = self._with_subqueries(child, [subquery_info for _, subquery_info in subqueries])
        return self.projected(child, expressions, subqueries)

    def projected(self, child: PlanInfo, selected: Sequence[Node], subqueries: Subqueries = ()) -> PlanInfo:
        """Return the properties of a projection.

        Args:
            child: the properties of what is below.
            selected: the expressions.
            subqueries: the subqueries in the expressions.
        """
        outputs = tuple(column.toAttribute() for column in selected)
        passed = passed_as(selected)
        keys = passed_keys(child.keys, passed)
        unique = None
        if child.unique is not None and child.unique <= passed.keys():
            unique = frozenset(key if key in passed[key] else passed[key][-1] for key in child.unique)
        times = {key: time for key, time in child.times.items() if key in passed.get(key, ())}
        for column in selected:
            time = time_of(self.catalyst, column, child)
            if time is not None:
                times[column_id(column)] = time
        catalyst = self.catalyst
        if child.stateless_plan is not None:
            validities = {new: validity for old, validity in child.validity.items() for new in passed.get(old, ())}
            projection = catalyst.project(selected, child.stateless_plan)
            return PlanInfo(outputs, projection, times=times, unique=unique, validity=validities)

        def build(inputs_at: InputsAt) -> Node:
            return catalyst.project(bound(catalyst, selected, subqueries, inputs_at), child.built(inputs_at))

        return child.over(build, columns=outputs, keys=keys, times=times, unique=unique)

    def _leaf(self, plan: Node, selected: list[Node], number: int) -> PlanInfo:
        """Return the properties of a source, by its number."""
        outputs = tuple(column.toAttribute() for column in selected)
        source = self._sources[number]
        unique = frozenset(column_id(outputs[at]) for at in source.unique) if source.unique is not None else None
        times = {column_id(outputs[at]): time for at, time in source.times.items()}
        validity = {column_id(outputs[at]): valid for at, valid in source.validity.items()}
        return PlanInfo(outputs, plan, times=times, unique=unique, validity=validity)

    def _filter(self, plan: Node) -> PlanInfo:
        catalyst = self.catalyst
        child = self.info_of(plan.child())
        subqueries = self._subqueries([plan.condition()])
        if subqueries:
            child = self._with_subqueries(child, [subquery_info for _, subquery_info in subqueries])
        if child.unique is not None:
            child = replace(child, unique=child.unique - fixed_columns(plan.condition(), self.row_numbers))
        if child.stateless_plan is not None:
            return replace(child, stateless_plan=catalyst.filter(plan.condition(), child.stateless_plan))

        def build(inputs_at: InputsAt) -> Node:
            (condition,) = bound(catalyst, [plan.condition()], subqueries, inputs_at)
            return catalyst.filter(condition, child.built(inputs_at))

        return child.over(build)

    def _row_multiplying(self, plan: Node) -> PlanInfo:
        """Return the properties of Generate or Expand, which may turn a row into several."""
        self.refuse_subqueries(plan)
        child = self.info_of(plan.child())
        outputs = tuple(columns(plan))
        passed = {key: [key] for key in unchanged_columns(plan)}
        times = {key: time for key, time in child.times.items() if key in passed}
        validities = {key: validity for key, validity in child.validity.items() if key in passed}
        if operator_name(plan) == "Expand":
            times |= expanded_windows(self.catalyst, plan, child)
        seq = self.catalyst.seq
        keys = passed_keys(child.keys, passed)
        above = replace(child, columns=outputs, keys=keys, times=times, unique=None, validity=validities)
        if child.stateless_plan is not None:
            return replace(above, stateless_plan=plan.withNewChildren(seq([child.stateless_plan])))
        return replace(above, build=lambda inputs_at: plan.withNewChildren(seq([child.built(inputs_at)])))

    def _union(self, plan: Node) -> PlanInfo:
        parts = [self.info_of(child) for child in children(plan)]
        outputs = tuple(columns(plan))
        self.row_numbers.difference_update(map(column_id, outputs))  # they have the ids of the first part's
        times = {}
        for at, column in enumerate(outputs):
            part_times = [info.times.get(column_id(info.columns[at])) for info in parts]
            watermarked = [time for time in part_times if time is not None and not time.windows]
            num_growing = sum(not info.is_constant for info in parts)  # constants never come later
            if watermarked and len(watermarked) == num_growing:
                times[column_id(column)] = TimeColumn(LeastOf(tuple(time.watermark for time in watermarked)))
        seq = self.catalyst.seq
        if all(info.is_constant for info in parts):
            return constant(outputs, plan.withNewChildren(seq([info.built(None) for info in parts])))
        if all(info.stateless_plan is not None or info.is_constant for info in parts):
            parts = [self.as_fragment(info) for info in parts]
            return PlanInfo(outputs, plan.withNewChildren(seq([info.stateless_plan for info in parts])), times=times)
        parts = [info if info.stateless_plan is None else self.stateful_input(info, info.columns) for info in parts]
        keys = []
        for at, column in enumerate(outputs):
            key = united_key(parts, at, column)
            if key is not None:
                keys.append(key)
        return PlanInfo(
            outputs,
            build=lambda inputs_at: plan.withNewChildren(seq([info.built(inputs_at) for info in parts])),
            keys=tuple(keys),
            stateful_inputs=tuple(stateful_input for info in parts for stateful_input in info.stateful_inputs),
            times=times,
            requirements=tuple(requirement for info in parts for requirement in info.requirements),
        )

    def _reference(self, plan: Node) -> PlanInfo:
        """Inline a common table expression at one use of it, under the column names and identities of that use."""
        info = self.info_of(self._definitions[plan.cteId()])
        pairs = zip(info.columns, columns(plan), strict=True)
        return self.projected(
            info, [self.catalyst.alias(inner, outer.name(), outer.exprId()) for inner, outer in pairs]
        )

    # --- Subqueries ---

    def _subqueries(self, expressions: Iterable[Node]) -> Subqueries:
        """Return the subqueries in expressions, each with the properties of its plan; only scalar ones are allowed."""
        subqueries = []
        for expression in expressions:
            for name, node in subtree(expression):
                if name not in SUBQUERIES:
                    continue
                if name != _SCALAR or items(node.children()):
                    raise misplaced_subquery(node, self.source)
                info = self.recomputable(self.info_of(node.plan()))
                subqueries.append((node, info if info.stateless_plan is None else self.stateful_input(info, ())))
        return tuple(subqueries)

    def _with_subqueries(self, child: PlanInfo, subqueries: Sequence[PlanInfo]) -> PlanInfo:
        """Return a plan whose expressions read subqueries: every pull affects all keys."""
        child = self.recomputable(child)
        info = child if child.stateless_plan is None else self.stateful_input(child, ())
        stateful_inputs = tuple(stateful_input for sub in subqueries for stateful_input in sub.stateful_inputs)
        requirements = tuple(requirement for sub in subqueries for requirement in sub.requirements)
        own_requirement = StateRequirement(
            "recompute", "a subquery is compared with every row", "none; all rows are read again"
        )
        requirements = (*info.requirements, *requirements, own_requirement)
        return replace(
            info,
            join_product=None,
            keys=(),
            stateful_inputs=info.stateful_inputs + stateful_inputs,
            times={},
            requirements=requirements,
        )

    def refuse_subqueries(self, plan: Node) -> None:
        """Refuse subqueries in the expressions of an operator, unless they are constant: they would see no rows.

        Raises:
            UnsupportedQuery: there is one.
        """
        for expression in expressions_of(plan) if self._has_subqueries else ():
            for name, node in subtree(expression):
                if name in SUBQUERIES and not reads_only_constants(self.catalyst, node.plan()):
                    raise misplaced_subquery(node, self.source)


Operator = Callable[[Planner, Node], PlanInfo]
