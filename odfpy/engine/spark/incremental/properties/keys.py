"""Columns and keys of plans: identity of columns, what an expression reads, and by which keys a plan is partitioned."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from odfpy.engine.spark.incremental.properties.plan_info import Key, PlanInfo, Values
from odfpy.engine.spark.plan.catalyst import (
    Node,
    cached_node_property,
    children,
    column_id,
    columns,
    columns_read,
    expression_name,
    items,
    number_named,
    operator_name,
    selected,
)
from odfpy.engine.spark.plan.session_windows import is_session
from odfpy.engine.spark.plan.step import CARRIED_INPUT

WINDOW_MARK: Final = "spark.timeWindow"


def sources_read(plan: Node) -> frozenset[int]:
    """Return the numbers of the sources that a stateless plan reads."""
    return cached_node_property(plan, "sources", lambda: _sources_read(plan))


def _sources_read(plan: Node) -> frozenset[int]:
    if operator_name(plan) == "Project":
        for column in selected(plan):
            if column.name() == CARRIED_INPUT and expression_name(column) == "Alias":
                return frozenset([number_named(column)])
    return frozenset(number for child in children(plan) for number in sources_read(child))


def renames(selected: Iterable[Node]) -> dict[int, int]:
    """Return the ids of columns that only rename another column, each with the id of the column that it renames."""
    return {
        column_id(column): column_id(column.child())
        for column in selected
        if expression_name(column) == "Alias" and expression_name(column.child()) == "AttributeReference"
    }


def passed_as(selected: Iterable[Node]) -> dict[int, list[int]]:
    """Return, for columns that are selected unchanged, the ids of the columns that then have their value.

    A column that keeps its id comes first.
    """
    selected = list(selected)
    passed: dict[int, list[int]] = {}
    for column in selected:
        if expression_name(column) == "AttributeReference":
            passed[column_id(column)] = [column_id(column)]
    for new, old in renames(selected).items():
        passed.setdefault(old, []).append(new)
    return passed


def unchanged_columns(plan: Node) -> frozenset[int]:
    """Return the ids of columns whose value is the same in all rows that Generate or Expand makes of one row."""
    if operator_name(plan) == "Generate":
        return frozenset(map(column_id, columns(plan.child()))) & frozenset(map(column_id, columns(plan)))
    copies = [items(copy) for copy in items(plan.projections())]
    return frozenset(
        column_id(column)
        for at, column in enumerate(columns(plan))
        if all(column_id(column) in passed_as([copy[at]]) for copy in copies)
    )


def is_window(column: Node) -> bool:
    """Return whether Spark has marked a column as a time window."""
    return is_session(column) or _has_mark(column, WINDOW_MARK)


def _has_mark(column: Node, mark: str) -> bool:
    is_named = expression_name(column) in ("Alias", "AttributeReference")
    return is_named and bool(column.metadata().contains(mark))


def never_null(info: PlanInfo) -> frozenset[int]:
    """Return the ids of the columns of a plan that are never NULL."""
    return frozenset(column_id(column) for column in info.columns if not column.nullable())


def key_of(info: PlanInfo, expression: Node) -> Key | None:
    """Return the key of a plan whose value an expression has in all rows, if there is one.

    A plan of constants can be partitioned by any expression, whatever it is joined with.
    """
    if info.is_constant:
        return Key({}, Values.of([expression]))
    return next((key for key in info.keys if key.outputs.has(expression)), None)


def key_unless_null(info: PlanInfo, expression: Node) -> Key | None:
    """Return the key whose value an expression has in all rows in which it is not NULL, if there is one."""
    return key_of(info, expression) or next((key for key in info.keys if key.nullable_outputs.has(expression)), None)


def united_key(parts: Sequence[PlanInfo], at: int, column: Node) -> Key | None:
    """Return the key of a column of a union or set operation, if the column is a key in all of its parts.

    Args:
        parts: the parts.
        at: the position of the column in each of them.
        column: the column of the result; its identity may be that of an unrelated column below.
    """
    keys = [key_of(info, info.columns[at]) for info in parts]
    shared = [key for key in keys if key is not None]
    if len(shared) < len(keys):
        return None
    return Key(
        {stateful_input: number for key in shared for stateful_input, number in key.at.items()}, Values.of([column])
    )


def null_of_nulls(values: Values) -> Values:
    """Return those of some values that are NULL where all columns are NULL, as in unmatched rows of an outer join."""
    return Values(
        values.columns, tuple(expression for expression in values.expressions if _is_null_of_nulls(expression))
    )


def _is_null_of_nulls(expression: Node) -> bool:
    """Return whether an expression is NULL when all columns are; False where that is not known."""
    if expression_name(expression) == "AttributeReference":
        return True
    return bool(expression.nullIntolerant()) and any(_is_null_of_nulls(child) for child in children(expression))


def passed_keys(keys: Iterable[Key], passed: Mapping[int, Sequence[int]]) -> tuple[Key, ...]:
    """Return the keys above an operator that works row by row.

    Args:
        keys: the keys below.
        passed: ids of columns below, with those of the columns above that have their values in all rows.
    """
    return tuple(
        replace(key, outputs=_passes_on(key.outputs, passed), nullable_outputs=_passes_on(key.nullable_outputs, passed))
        for key in keys
    )


def _passes_on(values: Values, passed: Mapping[int, Sequence[int]]) -> Values:
    def stays(expression: Node) -> bool:
        read = (column_id(column) for column in columns_read(expression))
        return all(key in passed.get(key, ()) for key in read)

    columns = frozenset(new for old in values.columns for new in passed.get(old, ()))
    return Values(columns, tuple(expression for expression in values.expressions if stays(expression)))
