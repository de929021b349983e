"""Columns and keys of parts: what is the same column, what an expression reads, what falls apart by what."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from odfpy.engine.spark.catalyst import Node, children, columns, expression_name, items, operator_name, subtree
from odfpy.engine.spark.incremental.parts import Key, Part, TimeColumn, column_id
from odfpy.engine.spark.incremental.times import complete_before

WINDOW_MARK: Final = "spark.timeWindow"
SESSION_MARK: Final = "spark.sessionWindow"


def sources_read(plan: Node) -> frozenset[int]:
    """Numbers of the sources that a free part reads."""
    if operator_name(plan) == "Project":
        for column in items(plan.projectList()):
            if column.name() == "__odf_input" and expression_name(column) == "Alias":
                return frozenset([int(column.child().value())])
    return frozenset(number for child in children(plan) for number in sources_read(child))


def renames(selected: Iterable[Node]) -> dict[int, int]:
    """Ids of columns that only give another name, with those of the columns they name."""
    return {
        column_id(column): column_id(column.child())
        for column in selected
        if expression_name(column) == "Alias" and expression_name(column.child()) == "AttributeReference"
    }


def is_window(column: Node) -> bool:
    """Whether Spark has marked a column as a window of time."""
    return is_session(column) or _has_mark(column, WINDOW_MARK)


def is_session(column: Node) -> bool:
    """Whether Spark has marked a column as a window that grows with the rows that fall into it."""
    return _has_mark(column, SESSION_MARK)


def _has_mark(column: Node, mark: str) -> bool:
    is_named = expression_name(column) in ("Alias", "AttributeReference")
    return is_named and bool(column.metadata().contains(mark))


def columns_read(expression: Node) -> list[Node]:
    """The different columns that an expression reads."""
    found = {column_id(node): node for name, node in subtree(expression) if name == "AttributeReference"}
    return list(found.values())


def key_of(part: Part, column: Node) -> Key | None:
    """The key of a part that a column has, if it has one."""
    if expression_name(column) != "AttributeReference":
        return None
    return next((key for key in part.keys if column_id(column) in key.columns), None)


def merged_key(keys: Sequence[Key | None], visible: frozenset[int]) -> Key | None:
    """One key of several parts that are put together, if all of them have it."""
    at: dict[int, int] = {}
    for key in keys:
        if key is None:
            return None
        at |= key.at
    return Key(visible, at)


def expanded_windows(plan: Node, child: Part) -> dict[int, TimeColumn]:
    """Columns of sliding windows, which Spark makes by one copy of a row for each window it falls into.

    Grouping sets make copies too: a column of theirs that some of them leave out is no time.
    """
    found = {}
    copies = [items(copy) for copy in items(plan.projections())]
    for at, column in enumerate(columns(plan)):
        windows = tuple(copy[at] for copy in copies)
        if not column.metadata().contains(WINDOW_MARK) or not all(columns_read(window) for window in windows):
            continue
        read = {column_id(one): one for window in windows for one in columns_read(window)}
        if len(read) == 1 and next(iter(read)) in child.times:
            ((key, reads),) = read.items()
            found[column_id(column)] = TimeColumn(complete_before(child.times[key].watermark), windows, reads)
    return found
