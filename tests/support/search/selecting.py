"""Shared code of the grammar's operators: which columns are selected, under which names."""

from __future__ import annotations

from collections.abc import Sequence

from support.search.expressions import Expression
from support.search.relations import (
    TIME,
    Builder,
    Column,
    Table,
)

_MAX_COLUMNS = 6


def selected(builder: Builder, expressions: Sequence[Expression]) -> tuple[str, tuple[Column, ...]]:
    """Return a select list with fresh names; the world keeps its own."""
    columns = []
    for found in expressions:
        is_world = builder.world is not None and found.text.rpartition(".")[2] == builder.world
        name = builder.world if is_world and builder.world not in [c.name for c in columns] else builder.fresh("c")
        columns.append(Column(name, found.kind, found.nullable))
    texts = (f"{found.text} AS {column.name}" for found, column in zip(expressions, columns, strict=True))
    return ", ".join(texts), tuple(columns)


def plain(table: Table, alias: str, columns: Sequence[Column]) -> list[Expression]:
    return [Expression(f"{alias}.{column.name}", column.kind, column.nullable) for column in columns]


def world_of(builder: Builder, table: Table) -> list[Column]:
    return [] if builder.world is None else [table.named(builder.world)]


def kept_of(builder: Builder, table: Table, least: int = 1) -> list[Column]:
    """Some of the columns, with the world and most often with the time."""
    always = {column.name for column in world_of(builder, table)}
    if table.time is not None and not builder.chance(6):
        always.add(table.time)
    others = builder.some([c for c in table.columns if c.name not in always], least, _MAX_COLUMNS - len(always))
    return [column for column in table.columns if column.name in always or column in others]


def time_of(table: Table, columns: Sequence[Column], before: Sequence[Expression]) -> str | None:
    """Return the name under which the time of a table is passed on."""
    for column, found in zip(columns, before, strict=True):
        if table.time is not None and found.text.rpartition(".")[2] == table.time:
            return column.name
    return next((column.name for column in columns if column.kind == TIME), None)


def made(
    builder: Builder, text: str, columns: Sequence[Column], time: str | None, *tables: Table, waits: bool = False
) -> Table:
    return Table(f"({text})", tuple(columns), time, waits or any(table.waits for table in tables))
