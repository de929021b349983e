"""Lineage of columns: the input columns of each result column, determined from the plan alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from odfpy.engine.spark.execution.prepare import PreparedTransform
from odfpy.engine.spark.execution.stateful import Stateful
from odfpy.engine.spark.incremental.properties.keys import is_window
from odfpy.engine.spark.incremental.state.versions import VALID_FROM, VALID_TO
from odfpy.engine.spark.plan.catalyst import (
    Node,
    children,
    columns,
    columns_read,
    expression_name,
    items,
    number_named,
    operator_name,
    selected,
    subtree,
)
from odfpy.engine.spark.plan.lineage import find_column
from odfpy.engine.spark.plan.step import CARRIED_INPUT, RESERVED_PREFIX
from odfpy.engine.tracing import ColumnOrigin

_MAX_TEXT_LENGTH: Final = 200
_WINDOW: Final = "window"
_MADE_HERE: Final = {"Project": "projectList", "Aggregate": "aggregateExpressions", "Window": "windowExpressions"}


@dataclass(frozen=True, slots=True)
class _Origin:
    """One origin of a column.

    Attributes:
        source: number of the source.
        column: name of the source column, None if it is none.
        at: position of the column in the source.
        through: expressions applied on the way.
        branch: how many sources are read left of this one.
        is_one_of: whether there is a UNION on the way.
    """

    source: int
    column: str | None
    at: int
    through: tuple[str, ...] = ()
    branch: int = 0
    is_one_of: bool = False

    def made_by(self, text: str) -> _Origin:
        return replace(self, through=(text, *self.through))


@dataclass
class _Plan:
    """The plan of one step."""

    definitions: dict[int, Node] = field(default_factory=dict)

    def ways(self, plan: Node, column: Node) -> Iterator[_Origin]:
        """Yield all origins of a column of a plan."""
        name = operator_name(plan)
        match name:
            case "Project" | "Aggregate" | "Window":
                yield from self._through(plan, items(getattr(plan, _MADE_HERE[name])()), column)
            case "Union":
                place, before = find_column(columns(plan), column) or 0, 0
                for child in children(plan):
                    for way in self.ways(child, columns(child)[place]):
                        yield replace(way, branch=before + way.branch, is_one_of=True)
                    before += self._reads(child)
            case "Intersect":
                place = find_column(columns(plan), column) or 0
                for child in children(plan):
                    yield from self.ways(child, columns(child)[place])
            case "Expand":
                place = find_column(columns(plan), column) or 0
                for copy in items(plan.projections()):
                    yield from self._of(plan.child(), copy.apply(place))
            case "Generate" if find_column(items(plan.generatorOutput()), column) is not None:
                yield from self._of(plan.child(), plan.generator())
            case "WithCTE":
                for definition in items(plan.cteDefs()):
                    self.definitions[definition.id()] = definition.child()
                yield from self.ways(plan.plan(), column)
            case "CTERelationRef":
                below, at = self.definitions[plan.cteId()], find_column(columns(plan), column)
                if at is not None:
                    yield from self.ways(below, columns(below)[at])
            case _:
                beside = [plan.right().plan()] if name == "LateralJoin" else []
                for child in (*children(plan), *beside):
                    if find_column(columns(child), column) is not None:
                        yield from self.ways(child, column)
                        return

    def _reads(self, plan: Node) -> int:
        """Return how many sources a plan reads, each as often as it is read."""
        match operator_name(plan):
            case "Project" if _marker(selected(plan)) is not None:
                return 1
            case "WithCTE":
                return self._reads(plan.plan())
            case "CTERelationRef":
                return self._reads(self.definitions[plan.cteId()])
        return sum(map(self._reads, children(plan)))

    def _through(self, plan: Node, outputs: Sequence[Node], column: Node) -> Iterator[_Origin]:
        position, marker = find_column(outputs, column), _marker(outputs)
        if marker is not None and position is not None:
            data = [output for output in outputs if not output.name().startswith(RESERVED_PREFIX)]
            at = find_column(data, column)
            if at is not None:
                yield _Origin(number_named(marker), str(column.name()), at)
        elif position is None or expression_name(outputs[position]) != "Alias":
            yield from self.ways(plan.child(), column)
        else:
            yield from self._of(
                plan.child(), outputs[position].child(), name=_WINDOW if is_window(outputs[position]) else None
            )

    def _of(self, below: Node, expression: Node, *, name: str | None = None) -> Iterator[_Origin]:
        """Yield the origins of what an expression reads; a mere column reference adds nothing to them."""
        while expression_name(expression) == "KnownNotNull":
            (expression,) = children(expression)
        if expression_name(expression) == "AttributeReference":
            yield from self.ways(below, expression)
            return
        text = name or str(expression.sql())[:_MAX_TEXT_LENGTH]
        for read in columns_read(expression):
            yield from (way.made_by(text) for way in self.ways(below, read))
        for kind, node in subtree(expression):
            if kind == "ScalarSubquery":
                yield from (way.made_by(text) for way in self.ways(node.plan(), columns(node.plan())[0]))


def _marker(outputs: Sequence[Node]) -> Node | None:
    """Return the marker of the source whose columns a projection selects; None if it selects none."""
    return next(
        (output for output in outputs if output.name() == CARRIED_INPUT and expression_name(output) == "Alias"), None
    )


def column_origins(ready: PreparedTransform | Stateful) -> tuple[ColumnOrigin, ...]:
    """Return the input columns from which the columns of a transform's result come."""
    plans = [
        step.step.plan for step in (ready.plan.steps if isinstance(ready, PreparedTransform) else ready.steps.steps)
    ]
    origins = _Origins(ready, plans)
    by_rows = isinstance(ready, PreparedTransform)
    by_key: dict[tuple[object, ...], ColumnOrigin] = {}
    for column in columns(plans[-1]):
        for way in origins.inputs(_Plan().ways(plans[-1], column)):
            origin = ColumnOrigin(
                column=str(column.name()),
                input=way.source,
                source=way.column,
                is_copy=not way.through,
                through=way.through,
                is_one_of=way.is_one_of,
                branch=way.branch if by_rows else None,
            )
            key = origin.column, origin.input, origin.source, origin.branch, origin.is_one_of
            if key not in by_key or origin.is_copy:
                by_key[key] = origin
    return tuple(by_key.values())


@dataclass(frozen=True)
class _Origins:
    """The steps before the last one, which later steps see as tables.

    Attributes:
        plans: plans of the steps.
    """

    ready: PreparedTransform | Stateful
    plans: Sequence[Node]

    def inputs(self, ways: Iterable[_Origin]) -> Iterator[_Origin]:
        """Ways from sources as ways from inputs."""
        for way in ways:
            below = self._below(way)
            if below is None:
                yield way
            else:
                for origin in self.inputs(below):
                    is_one_of = way.is_one_of or origin.is_one_of
                    yield replace(origin, through=(*way.through, *origin.through), is_one_of=is_one_of)

    def _below(self, way: _Origin) -> Iterable[_Origin] | None:
        """Return the origins of a column of an earlier step or a temporal table; None for a column of an input."""
        ready = self.ready
        if isinstance(ready, PreparedTransform):
            return None
        fragment = next((candidate for candidate in ready.steps.fragments if candidate.source == way.source), None)
        if fragment is None:
            return None
        names = [str(column.name()) for column in fragment.info.columns]
        is_temporal = names[-2:] == [VALID_FROM, VALID_TO]
        at = next(
            (
                at
                for at, candidate in enumerate(ready.steps.steps)
                if candidate.info.requirements and candidate.step.alias == fragment.alias
            ),
            None,
        )
        if is_temporal:
            return self._of_versions(way, fragment.info.stateful_inputs[0].plan, names)
        if at is None:
            return ()
        return _Plan().ways(self.plans[at], columns(self.plans[at])[way.at])

    def _of_versions(self, way: _Origin, free: Node, names: Sequence[str]) -> Iterable[_Origin]:
        """Return the origins of a column of versions: a column of the rows below, or event times for the validity."""
        below = columns(free)
        if way.at < len(names) - 2:
            return _Plan().ways(free, below[way.at])
        return (
            origin.made_by(names[way.at])
            for column in below
            for origin in _Plan().ways(free, column)
            if _is_time(column)
        )


def _is_time(column: Node) -> bool:
    return str(column.dataType().typeName()) in ("timestamp", "date") and column.name() == "event_time"
