"""Operators that depend on an order, which is always that of all columns."""

from __future__ import annotations

from collections.abc import Sequence

from support.search.expressions import Expression, expression
from support.search.groups import SUMS
from support.search.relations import (
    DATE,
    DOUBLE,
    INT,
    LONG,
    SCALARS,
    TEXT,
    TIME,
    Builder,
    Table,
)
from support.search.selecting import kept_of, made, plain, selected, time_of, world_of


def _ordered_by_all(builder: Builder, table: Table, alias: str) -> str:
    """Return all columns, one of them first, so that only equal rows tie."""
    first = builder.one_of(table.columns)
    order = [f"{alias}.{first.name}{builder.one_of(('', ' DESC', ' NULLS LAST'))}"]
    order += [f"{alias}.{c.name}" for c in table.columns if c != first]
    return ", ".join(order)


_OVER: Sequence[tuple[str, tuple[str, ...], str | None]] = (
    ("row_number() OVER {w}", (), INT),
    ("rank() OVER {w}", (), INT),
    ("dense_rank() OVER {w}", (), INT),
    ("sum({}) OVER {w}", (INT, LONG, DOUBLE), None),
    ("count(*) OVER {p}", (), LONG),
    ("max({}) OVER {p}", (INT, DATE, TEXT, TIME), None),
    ("lag({}) OVER {w}", SCALARS, None),
    ("lead({}, 2) OVER {w}", SCALARS, None),
    ("first_value({}) OVER {w}", SCALARS, None),
    ("sum({}) OVER {w2}", (INT, LONG), None),
    ("ntile(2) OVER {w}", (), INT),
)


def windowed(builder: Builder, table: Table) -> Table:
    """Apply window functions, optionally with a filter on their values."""
    alias = builder.fresh("r")
    by = [f"{alias}.{c.name}" for c in world_of(builder, table)]
    by += [expression(builder, table, alias, *SCALARS).text for _ in range(builder.one_of((1, 2, 0)))]
    partition = f"PARTITION BY {', '.join(by)}" if by else ""
    order = _ordered_by_all(builder, table, alias)
    known = [form for form in _OVER if not form[1] or table.of(*form[1])]
    text, kinds, kind = builder.one_of(known)
    argument = expression(builder, table, alias, *kinds) if kinds else Expression("", INT, nullable=False)
    frames = {
        "w": f"({partition} ORDER BY {order})",
        "p": f"({partition})",
        "w2": f"({partition} ORDER BY {order} ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING)",
    }
    given = kind or (SUMS.get(argument.kind, argument.kind) if text.startswith("sum") else argument.kind)
    over = Expression(text.format(argument.text, **frames), given, nullable=bool(kinds))
    found = [*plain(table, alias, kept_of(builder, table)), over]
    listed, columns = selected(builder, found)
    qualify = ""
    if given in (INT, LONG) and builder.chance(2):
        qualify = f" QUALIFY {columns[-1].name} {builder.one_of(('= 1', '<= 2'))}"
    builder.uses.add(f"{text.partition('(')[0]} OVER{', top' if qualify else ''}")
    return made(
        builder,
        f"SELECT {listed} FROM {table.text} AS {alias}{qualify}",
        columns,
        time_of(table, columns, found),
        table,
    )


def limited(builder: Builder, table: Table) -> Table:
    """ORDER BY all columns, LIMIT."""
    if builder.world is not None:
        return windowed(builder, table)
    alias = builder.fresh("r")
    order = _ordered_by_all(builder, table, alias)
    builder.uses.add("limit")
    text = f"SELECT * FROM {table.text} AS {alias} ORDER BY {order} LIMIT {builder.one_of((2, 1, 3))}"
    return made(builder, text, table.columns, table.time, table)
