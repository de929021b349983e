"""Groups: by windows of time, by anything else, of equal rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from support.search.expressions import Expression, condition, expression
from support.search.relations import (
    DATE,
    DECIMAL,
    DOUBLE,
    FLAG,
    INT,
    LIST,
    LONG,
    NUMBERS,
    SCALARS,
    TEXT,
    TIME,
    Builder,
    Table,
)
from support.search.selecting import kept_of, made, plain, selected, time_of, world_of

_AGGREGATES: Sequence[tuple[str, tuple[str, ...], str | None]] = (
    ("count({})", (), LONG),
    ("sum({})", (INT, LONG, DOUBLE, DECIMAL), None),
    ("max({})", (*NUMBERS, TEXT, DATE, TIME), None),
    ("min({})", (*NUMBERS, TEXT, DATE, TIME), None),
    ("avg({})", (INT, DOUBLE), DOUBLE),
    ("count(DISTINCT {})", SCALARS, LONG),
    ("sum(DISTINCT {})", (INT,), LONG),
    ("bool_or({})", (FLAG,), FLAG),
    ("bool_and({})", (FLAG,), FLAG),
    ("array_sort(collect_list({}))", (INT,), LIST),
    ("array_sort(collect_set({}))", (INT,), LIST),
    ("count_if({})", (FLAG,), LONG),
    ("bit_xor({})", (INT,), INT),
)
SUMS = {INT: LONG}


def _aggregate(builder: Builder, table: Table, alias: str) -> Expression:
    known = [form for form in _AGGREGATES if not form[1] or table.of(*form[1])]
    text, kinds, kind = builder.one_of(known)
    found = expression(builder, table, alias, *(kinds or SCALARS))
    given = kind or (SUMS.get(found.kind, found.kind) if text.startswith("sum") else found.kind)
    where = f" FILTER (WHERE {condition(builder, table, alias)})" if builder.chance(6) and "array" not in text else ""
    return Expression(text.format(found.text) + where, given, nullable=not text.startswith("count"))


def grouped(builder: Builder, table: Table) -> Table:
    """GROUP BY, of windows of time or of anything else."""
    alias = builder.fresh("r")
    window, keys, waits, time = "", [], False, None
    if table.time is not None and builder.chance(2):
        window, found, waits = _window(builder, f"{alias}.{table.time}")
        keys = [found]
    keyed = [expression(builder, table, alias, *SCALARS) for _ in range(builder.one_of((1, 2, 0)))]
    # A time among the keys is equivalent to a window of time: its groups are emitted behind the watermark.
    waits = waits or any(one.kind in (TIME, DATE) for one in keyed)
    world = plain(table, alias, world_of(builder, table))
    grouping = [one.text for one in (*world, *keyed)]
    rolled = not window and len(keyed) > 1 and builder.chance(6)
    found_all = [*world, *keys, *keyed]
    aggregates = [Expression("count(*)", LONG, nullable=False)] if builder.chance(2) else []
    aggregates += [
        _aggregate(builder, table, alias) for _ in range(builder.one_of((1, 2, 0) if aggregates else (1, 2)))
    ]
    if table.time is not None and not window and not builder.chance(3):
        is_optional = any(column.nullable for column in table.columns if column.name == table.time)
        aggregates.append(Expression(f"max({alias}.{table.time})", TIME, nullable=is_optional or not grouping))
    listed, columns = selected(builder, [*found_all, *aggregates])
    if rolled:
        inner = ", ".join(one.text for one in keyed)
        form = builder.one_of(("ROLLUP", "CUBE"))
        by = f" GROUP BY {', '.join([*(one.text for one in world), f'{form}({inner})'])}"
        columns = tuple(
            replace(column, nullable=True) if column.name != builder.world else column for column in columns
        )
        builder.uses.add(form)
    else:
        by = f" GROUP BY {', '.join(filter(None, [window, *grouping]))}" if window or grouping else ""
    having = f" HAVING {builder.one_of(('count(*) > 1', 'count(*) < 3', 'count(*) = 1'))}" if builder.chance(4) else ""
    time = columns[len(world)].name if keys else next((c.name for c in columns if c.kind == TIME), None)
    builder.uses.add("window" if window else "group")
    return made(builder, f"SELECT {listed} FROM {table.text} AS {alias}{by}{having}", columns, time, table, waits=waits)


def _window(builder: Builder, time: str) -> tuple[str, Expression, bool]:
    """Return the grouping expression, the selected time of it, and whether it waits."""
    forms: dict[str, tuple[str, str]] = {
        f"window({time}, '6 hours')": ("window.start", "window.end"),
        f"window({time}, '1 day')": ("window.end", "window.start"),
        f"window({time}, '6 hours', '3 hours')": ("window.end", "window.start"),
        f"session_window({time}, '3 hours')": ("session_window.start", "session_window.end"),
        f"date_trunc('day', {time})": (f"date_trunc('day', {time})",) * 2,
        f"date_trunc('month', {time})": (f"date_trunc('month', {time})",) * 2,
        f"to_date({time})": (f"CAST(to_date({time}) AS TIMESTAMP)",) * 2,
        f"date_trunc('hour', {time} + INTERVAL 1 MONTH)": (f"date_trunc('hour', {time} + INTERVAL 1 MONTH)",) * 2,
        f"{time}": (time, time),
    }
    text = builder.one_of(tuple(forms))
    return text, Expression(builder.one_of(forms[text]), TIME, nullable=True), True


def distinct(builder: Builder, table: Table) -> Table:
    """SELECT DISTINCT."""
    alias = builder.fresh("r")
    found = plain(table, alias, kept_of(builder, table))
    listed, columns = selected(builder, found)
    builder.uses.add("distinct")
    return made(
        builder,
        f"SELECT DISTINCT {listed} FROM {table.text} AS {alias}",
        columns,
        time_of(table, columns, found),
        table,
    )
