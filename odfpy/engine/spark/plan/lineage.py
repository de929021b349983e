"""Lineage of result columns: the input column that each comes from, and the expressions applied to it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from odfpy.engine.spark.plan.catalyst import (
    Node,
    children,
    column_id,
    columns,
    expression_name,
    number_named,
    operator_name,
    selected,
    subtree,
)
from odfpy.engine.spark.plan.step import CARRIED_BRANCH


@dataclass(frozen=True, slots=True)
class Computation:
    """An expression in the lineage of a column.

    Attributes:
        expression: a named expression.
        reads: the one column that it reads.
    """

    expression: Node
    reads: Node


@dataclass(frozen=True, slots=True)
class ColumnOrigin:
    """One origin of a column.

    Attributes:
        branch: number of the branch of the plan, None when the column is not computed from exactly one input column.
        column: name of the input column, or None as the branch.
        steps: the expressions applied, from the input up, without renames.
    """

    branch: int | None = None
    column: str | None = None
    steps: tuple[Computation, ...] = ()

    @property
    def is_unchanged(self) -> bool:
        """True if the values are those of the input column."""
        return self.column is not None and not self.steps


_UNKNOWN = ColumnOrigin()


def origins(plan: Node, column: Node) -> list[ColumnOrigin]:
    """Return all origins of a column of a row-by-row plan, one for each branch that it can be followed into.

    Args:
        plan: a plan with carried columns, see `odfpy.engine.spark.row_by_row.carry`.
        column: one of its output columns.
    """
    match operator_name(plan):
        case "Project":
            return _through_projection(plan, column)
        case "Union":
            at = find_column(columns(plan), column)
            return [] if at is None else [way for part in children(plan) for way in origins(part, columns(part)[at])]
        case _:
            below = next((child for child in children(plan) if find_column(columns(child), column) is not None), None)
            return [_UNKNOWN] if below is None else origins(below, column)


def above_inputs(plan: Node) -> Iterator[Node]:
    """Yield the operators of a row-by-row plan, without those that read its inputs."""
    if operator_name(plan) == "Project" and any(_introduces_branch(column) for column in selected(plan)):
        return
    yield plan
    for child in children(plan):
        yield from above_inputs(child)


def _through_projection(plan: Node, column: Node) -> list[ColumnOrigin]:
    expressions = selected(plan)
    at = find_column(expressions, column)
    if at is None:
        return [_UNKNOWN]
    branch = next((other for other in expressions if _introduces_branch(other)), None)
    if branch is not None:
        return [ColumnOrigin(number_named(branch), str(expressions[at].name()))]
    if expression_name(expressions[at]) != "Alias":
        return origins(plan.child(), expressions[at])
    read = _columns_read(expressions[at].child())
    if len(read) != 1:
        return [_UNKNOWN]
    below = origins(plan.child(), read[0])
    if expression_name(expressions[at].child()) == "AttributeReference":
        return below
    step = Computation(expressions[at], read[0])
    return [way if way.column is None else replace(way, steps=(*way.steps, step)) for way in below]


def _introduces_branch(column: Node) -> bool:
    return bool(column.name() == CARRIED_BRANCH and expression_name(column) == "Alias" and not _columns_read(column))


def _columns_read(expression: Node) -> list[Node]:
    """Return the distinct columns that an expression reads."""
    read: list[Node] = []
    for name, node in subtree(expression):
        if name == "AttributeReference" and not any(same_column(node, known) for known in read):
            read.append(node)
    return read


def same_column(left: Node, right: Node) -> bool:
    """Return whether two attributes are the same column."""
    return column_id(left) == column_id(right)


def find_column(candidates: Sequence[Node], wanted: Node) -> int | None:
    """Return the position of a column among others, None if it is not there."""
    return next((at for at, candidate in enumerate(candidates) if same_column(candidate, wanted)), None)
