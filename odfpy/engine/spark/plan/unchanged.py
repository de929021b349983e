"""Result columns that are unchanged columns of an input table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from odfpy.engine.contract import PreprocessTable, UnchangedColumn
from odfpy.engine.spark.plan.catalyst import (
    Node,
    children,
    columns,
    expression_name,
    items,
    number_named,
    operator_name,
)
from odfpy.engine.spark.plan.step import CARRIED_INPUT

SourceColumn: TypeAlias = tuple[int, str]
"""Position of a table and name of one of its columns."""

_SELECTIONS = {"Project": "projectList", "Aggregate": "aggregateExpressions"}


def unchanged_columns(plan: Node, tables: Sequence[PreprocessTable]) -> tuple[UnchangedColumn, ...]:
    """Return the result columns that are watched columns of a table, unchanged.

    Args:
        plan: a plan of any class, over inputs that are projections with a column `CARRIED_INPUT`.
        tables: the tables, by position.
    """
    if not any(table.watched for table in tables):
        return ()
    traced = _Tracer().sources(plan)
    sources = [(at, traced.get(_id(column))) for at, column in enumerate(columns(plan))]
    return tuple(
        UnchangedColumn(at, tables[source[0]].name, source[1])
        for at, source in sources
        if source is not None and source[1] in tables[source[0]].watched
    )


@dataclass(frozen=True, slots=True)
class _Tracer:
    """The tracing of columns through a plan, from the tables up; definitions of a WITH by their number."""

    definitions: dict[int, Node] = field(default_factory=dict)

    def sources(self, plan: Node) -> Mapping[int, SourceColumn]:
        """Return the columns of a plan, by id, that are columns of a table."""
        match operator_name(plan):
            case "Project" | "Aggregate" as name:
                return self._selected(plan, items(getattr(plan, _SELECTIONS[name])()))
            case "Union":
                return self._united(plan)
            case "WithCTE":
                for definition in items(plan.cteDefs()):
                    self.definitions[definition.id()] = definition.child()
                return self.sources(plan.plan())
            case "CTERelationRef":
                definition = self.definitions[plan.cteId()]
                return _renamed(columns(definition), self.sources(definition), columns(plan))
            case "Expand":
                return {}
        traced: dict[int, SourceColumn] = {}
        for child in children(plan):
            traced |= self.sources(child)
        return traced

    def _selected(self, plan: Node, selection: list[Node]) -> Mapping[int, SourceColumn]:
        marker = next((column for column in selection if column.name() == CARRIED_INPUT), None)
        if marker is not None and expression_name(marker) == "Alias":
            position = number_named(marker)
            return {_id(column): (position, column.name()) for column in selection}
        below = self.sources(plan.child())
        passed = {}
        for column in selection:
            read = column.child() if expression_name(column) == "Alias" else column
            if expression_name(read) == "AttributeReference" and _id(read) in below:
                passed[_id(column)] = below[_id(read)]
        return passed

    def _united(self, plan: Node) -> Mapping[int, SourceColumn]:
        """Return the columns of a union that are the same table column in every part."""
        parts = [_renamed(columns(part), self.sources(part), columns(plan)) for part in children(plan)]
        first, *others = parts
        return {key: source for key, source in first.items() if all(part.get(key) == source for part in others)}


def _renamed(inner: list[Node], sources: Mapping[int, SourceColumn], outer: list[Node]) -> dict[int, SourceColumn]:
    pairs = ((_id(below), _id(above)) for below, above in zip(inner, outer, strict=True))
    return {above: sources[below] for below, above in pairs if below in sources}


def _id(column: Node) -> int:
    return int(column.exprId().id())
