"""From an analyzed plan to parts and blocks: the operators that look at one row at a time, and the way to all others.

A plan is walked from the sources up. Views, aliases and common table expressions are put in place on the way, so that
the parts consist of operators only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Final

from odfpy.engine.spark.analysis.determinism import place
from odfpy.engine.spark.analysis.partial_aggregate import PartialAggregate
from odfpy.engine.spark.incremental.operators.sources import Source, source_of, source_plan
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
    Best,
    Block,
    Due,
    Gate,
    Key,
    LookedUp,
    Moment,
    Part,
    Retention,
    TimeColumn,
    Trait,
    Values,
    block_of,
    constant,
    rows_of,
)
from odfpy.engine.spark.incremental.properties.refusals import misplaced_subquery, not_incremental
from odfpy.engine.spark.incremental.properties.subqueries import SUBQUERIES, Subqueries, bound
from odfpy.engine.spark.incremental.properties.time_columns import expanded_windows, time_of
from odfpy.engine.spark.plan.catalyst import (
    Catalyst,
    Node,
    children,
    column_id,
    columns,
    expression_name,
    items,
    operator_name,
    subtree,
)
from odfpy.engine.spark.plan.storable_types import check_rows
from odfpy.engine.spark.plan.times import Least
from odfpy.engine.sql.source_text import SourceText

_SCALAR: Final = "ScalarSubquery"


class Walk:
    """The walk through the plan of one step."""

    def __init__(
        self,
        catalyst: Catalyst,
        source: SourceText,
        sources: list[Source],
        blocks: list[Block],
        operators: Mapping[str, Operator],
    ) -> None:
        """Begin a walk.

        Args:
            catalyst: the session.
            source: the text of the step.
            sources: inputs and blocks so far; what the walk cuts off is added.
            blocks: blocks so far; what the walk cuts off is added.
            operators: how to go on at operators that look at several rows.
        """
        self.catalyst = catalyst
        self.source = source
        self._blocks = blocks
        self._sources = sources
        self._num_inputs = len(sources) - len(blocks)
        self._operators = operators
        self._definitions: dict[int, Node] = {}
        self._gates = 0
        self._at: Node = None
        self.row_numbers: set[int] = set()

    def start(self, plan: Node) -> Part:
        """What is known of the plan of the step; errors as for `part`."""
        self._plan = plan
        return self.part(plan)

    @cached_property
    def used(self) -> Uses:
        """What the step does with columns."""
        return uses_of(self._plan)

    def part(self, plan: Node) -> Part:
        """What is known of a plan.

        Raises:
            UnsupportedQuery: an operator that cannot be processed incrementally, or rows that cannot be known again.
        """
        outer, self._at = self._at, plan
        part = self._part(plan)
        self._at = outer
        return part

    def _part(self, plan: Node) -> Part:
        name = operator_name(plan)
        if name in self._operators:
            return self._operators[name](self, plan)
        match name:
            case "SubqueryAlias" | "View" | "expressions.PipeOperator" | "Sort" | "RepartitionByExpression":
                return self.part(plan.child())
            case "WithCTE":
                for definition in items(plan.cteDefs()):
                    self._definitions[definition.id()] = definition.child()
                return self.part(plan.plan())
            case "CTERelationRef":
                return self._reference(plan)
            case "Project":
                return self._project(plan)
            case "Filter":
                return self._filter(plan)
            case "Generate" | "Expand":
                return self._made(plan)
            case "Union":
                return self._union(plan)
            case "LocalRelation" | "Range" | "OneRowRelation":
                return constant(tuple(columns(plan)), plan)
        raise not_incremental(plan, self.source)

    def _place(self, _: Node) -> str:
        """Where the operator stands that looks at rows together."""
        return place(self._at, self.source)

    # --- Gates and blocks ---

    def gate(
        self,
        part: Part,
        keys: Sequence[Node],
        due: Sequence[Due] = (),
        *,
        waits: bool = False,
        forget: Sequence[Due] = (),
        late: Sequence[Due] = (),
        session: tuple[Node, Node] | None = None,
        looked_up: LookedUp | None = None,
        groups: PartialAggregate | None = None,
        best: Best | None = None,
    ) -> Part:
        """A free part as a gate: what stands on it falls apart by some keys. Arguments as the attributes of `Gate`."""
        if groups is not None:
            retention = Retention.GROUPS
        elif forget or session:
            retention = Retention.OPEN
        elif self._reads_block(part.free):
            retention = Retention.ALL
        else:
            retention = Retention.NOTHING if best is None else Retention.BEST
        gate = Gate(
            self._gates,
            part.free,
            part.columns,
            tuple(keys),
            tuple(due),
            waits,
            retention,
            tuple(forget),
            tuple(late),
            session,
            looked_up,
            groups=groups,
            best=best if retention is Retention.BEST else None,
        )
        self._gates += 1
        if groups is None:
            check_rows(part.columns, self._place, are_kept=gate.retention is not Retention.NOTHING)
        found = tuple(Key({gate.number: at}, Values.of([key])) for at, key in enumerate(keys))
        build = partial(rows_of, gate)
        return replace(part, free=None, build=build, product=build, keys=found, gates=(gate,), validity={})

    def _reads_block(self, plan: Node) -> bool:
        """Whether a free part reads the changes of a block, of which there is no history at hand."""
        return any(number >= self._num_inputs for number in sources_read(plan))

    def cut(self, part: Part) -> Part:
        """A part that is not free as a block of its own; what comes back is free, and reads the block's changes."""
        if part.free is not None:
            return part
        check_rows(part.columns, self._place, are_kept=True)
        number = len(self._sources)
        self._blocks.append(block_of(part, number))
        self._sources.append(source_of(part))
        plan = self.catalyst.project(part.columns, source_plan(self.catalyst, part.columns, number))
        return replace(part, free=plan, build=None, keys=(), gates=(), validity={})

    def whole(self, part: Part) -> Part:
        """A part of which all rows can be made again, for an operator that looks at several of them.

        Where gates keep only rows that can still change what is made of each of them, that is a block's result.
        """
        is_open = any(gate.retention is Retention.OPEN or (gate.groups and gate.waits) for gate in part.gates)
        return self.cut(part) if is_open else part

    # --- Row by row ---

    def _project(self, plan: Node) -> Part:
        selected = items(plan.projectList())
        marker = next((column for column in selected if column.name() == "__odf_input"), None)
        if marker is not None and expression_name(marker) == "Alias":
            return self._leaf(plan, selected, int(marker.child().value()))
        child = self.part(plan.child())
        subqueries = self._subqueries(selected)
        if subqueries:
            child = self._with_subqueries(child, [found for _, found in subqueries])
        return self.projected(child, selected, subqueries)

    def projected(self, child: Part, selected: Sequence[Node], subqueries: Subqueries = ()) -> Part:
        """SELECT some columns FROM a part."""
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
        if child.free is not None:
            valid = {new: known for old, known in child.validity.items() for new in passed.get(old, ())}
            return Part(outputs, catalyst.project(selected, child.free), times=times, unique=unique, validity=valid)

        def build(moment: Moment) -> Node:
            return catalyst.project(bound(catalyst, selected, subqueries, moment), child.built(moment))

        return child.over(build, columns=outputs, keys=keys, times=times, unique=unique)

    def _leaf(self, plan: Node, selected: list[Node], number: int) -> Part:
        outputs = tuple(column.toAttribute() for column in selected)
        source = self._sources[number]
        unique = frozenset(column_id(outputs[at]) for at in source.unique) if source.unique is not None else None
        times = {column_id(outputs[at]): time for at, time in source.times.items()}
        validity = {column_id(outputs[at]): valid for at, valid in source.validity.items()}
        return Part(outputs, plan, times=times, unique=unique, validity=validity)

    def _filter(self, plan: Node) -> Part:
        catalyst = self.catalyst
        child = self.part(plan.child())
        subqueries = self._subqueries([plan.condition()])
        if subqueries:
            child = self._with_subqueries(child, [found for _, found in subqueries])
        if child.unique is not None:
            child = replace(child, unique=child.unique - fixed_columns(plan.condition(), self.row_numbers))
        if child.free is not None:
            return replace(child, free=catalyst.filter(plan.condition(), child.free))

        def build(moment: Moment) -> Node:
            (condition,) = bound(catalyst, [plan.condition()], subqueries, moment)
            return catalyst.filter(condition, child.built(moment))

        return child.over(build)

    def _made(self, plan: Node) -> Part:
        """Generate and Expand: several rows may be made of one."""
        self._refuse_subqueries(plan)
        child = self.part(plan.child())
        outputs = tuple(columns(plan))
        passed = {key: [key] for key in unchanged_columns(plan)}
        times = {key: time for key, time in child.times.items() if key in passed}
        valid = {key: known for key, known in child.validity.items() if key in passed}
        if operator_name(plan) == "Expand":
            times |= expanded_windows(self.catalyst, plan, child)
        seq = self.catalyst.seq
        keys = passed_keys(child.keys, passed)
        made = replace(child, columns=outputs, keys=keys, times=times, unique=None, validity=valid)
        if child.free is not None:
            return replace(made, free=plan.withNewChildren(seq([child.free])))
        return replace(made, build=lambda moment: plan.withNewChildren(seq([child.built(moment)])))

    def _union(self, plan: Node) -> Part:
        parts = [self.part(child) for child in children(plan)]
        outputs = tuple(columns(plan))
        self.row_numbers.difference_update(map(column_id, outputs))  # they have the ids of the first part's
        times = {}
        for at, column in enumerate(outputs):
            found = [part.times.get(column_id(part.columns[at])) for part in parts]
            known = [time for time in found if time is not None and not time.windows]
            if known and len(known) == sum(not part.is_constant for part in parts):  # constants never come later
                times[column_id(column)] = TimeColumn(Least(tuple(time.watermark for time in known)))
        seq = self.catalyst.seq
        if all(part.is_constant for part in parts):
            return constant(outputs, plan.withNewChildren(seq([part.built(None) for part in parts])))
        if all(part.free is not None or part.is_constant for part in parts):
            parts = [self.cut(part) for part in parts]
            return Part(outputs, plan.withNewChildren(seq([part.free for part in parts])), times=times)
        parts = [part if part.free is None else self.gate(part, part.columns) for part in parts]
        keys = []
        for at, column in enumerate(outputs):
            key = united_key(parts, at, column)
            if key is not None:
                keys.append(key)
        return Part(
            outputs,
            build=lambda moment: plan.withNewChildren(seq([part.built(moment) for part in parts])),
            keys=tuple(keys),
            gates=tuple(gate for part in parts for gate in part.gates),
            times=times,
            traits=tuple(trait for part in parts for trait in part.traits),
        )

    def _reference(self, plan: Node) -> Part:
        """A use of a common table expression: its definition in place, under the names this use gave its columns."""
        part = self.part(self._definitions[plan.cteId()])
        pairs = zip(part.columns, columns(plan), strict=True)
        return self.projected(
            part, [self.catalyst.alias(inner, outer.name(), outer.exprId()) for inner, outer in pairs]
        )

    # --- Subqueries ---

    def _subqueries(self, expressions: Iterable[Node]) -> Subqueries:
        found = []
        for expression in expressions:
            for name, node in subtree(expression):
                if name not in SUBQUERIES:
                    continue
                if name != _SCALAR or items(node.children()):
                    raise misplaced_subquery(node, self.source)
                part = self.whole(self.part(node.plan()))
                found.append((node, part if part.free is None else self.gate(part, ())))
        return tuple(found)

    def _with_subqueries(self, child: Part, subqueries: Sequence[Part]) -> Part:
        """A part that is looked at together with whole tables: everything is touched."""
        child = self.whole(child)
        part = child if child.free is None else self.gate(child, ())
        gates = tuple(gate for sub in subqueries for gate in sub.gates)
        traits = tuple(trait for sub in subqueries for trait in sub.traits)
        mine = Trait("recompute", "a subquery is compared with every row", "nothing; all rows are read again")
        traits = (*part.traits, *traits, mine)
        return replace(part, product=None, keys=(), gates=part.gates + gates, times={}, traits=traits)

    def _refuse_subqueries(self, plan: Node) -> None:
        if self._subqueries(items(plan.expressions())):
            raise misplaced_subquery(plan, self.source)


Operator = Callable[[Walk, Node], Part]
