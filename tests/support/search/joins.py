"""Joins of all kinds, by columns, expressions and intervals of time."""

from __future__ import annotations

from dataclasses import replace

from support.search.expressions import Expression, column_of, condition, expression
from support.search.relations import (
    DATE,
    DOUBLE,
    FLAG,
    INT,
    LONG,
    NUMBERS,
    TEXT,
    TIME,
    Builder,
    Column,
    Table,
)
from support.search.selecting import kept_of, made, plain, selected, time_of

_HOURS = ("1 HOUR", "6 HOURS", "2 DAYS")


_KINDS = ("INNER", "LEFT", "RIGHT", "FULL", "LEFT SEMI", "LEFT ANTI")


def joined(builder: Builder, table: Table, other: Table) -> Table:
    """Two tables side by side."""
    left, right = builder.fresh("r"), builder.fresh("r")
    kind = builder.one_of(_KINDS)
    on, waits = _conditions(builder, table, other, left, right, kind)
    return _side_by_side(builder, (table, left), (other, right), kind, on, waits=waits)


def as_of(builder: Builder, table: Table, other: Table) -> Table:
    """Return rows beside the versions of the temporal table that are valid at their time, if there are any."""
    if not table.of(TIME):
        return joined(builder, table, other)
    versions = [one for one in builder.inputs if one.valid is not None]
    left, right = builder.fresh("r"), builder.fresh("r")
    begin, end = (f"{right}.{name}" for name in versions[0].valid or ())
    time = column_of(builder, table.of(TIME), left).text + builder.one_of(("", "", " - INTERVAL 1 HOUR"))
    forms = (f"{time} >= {begin} AND {time} < {end}", f"{time} BETWEEN {begin} AND {end}", f"{begin} <= {time}")
    on = [f"{left}.{builder.world} = {right}.{builder.world}"] if builder.world else []
    on.append(builder.one_of((forms[0], *forms)))
    if table.of(TEXT) and not builder.chance(4):
        on.append(f"{column_of(builder, table.of(TEXT), left).text} {builder.one_of(('=', '=', '<=>'))} {right}.k")
    if builder.chance(4):
        on.append(f"({condition(builder, versions[0], right)})")
    kind = builder.one_of((*_KINDS[:2], *_KINDS))
    builder.uses.add("as of the time of a row")
    return _side_by_side(builder, (table, left), (versions[0], right), kind, on, waits=True)


def _side_by_side(
    builder: Builder, one: tuple[Table, str], two: tuple[Table, str], kind: str, on: list[str], *, waits: bool
) -> Table:
    (table, left), (other, right) = one, two
    text = f"{table.text} AS {left} {kind} JOIN {other.text} AS {right} ON {' AND '.join(on)}"
    mine, theirs = kept_of(builder, table), kept_of(builder, other)
    if kind in ("LEFT SEMI", "LEFT ANTI"):
        theirs = []
    mine = [replace(c, nullable=c.nullable or kind in ("RIGHT", "FULL")) for c in mine]
    theirs = [replace(c, nullable=c.nullable or kind in ("LEFT", "FULL")) for c in theirs]
    found = plain(table, left, mine) + plain(other, right, theirs)
    world = builder.world
    if world is not None:
        names = {"RIGHT": f"{right}.{world}", "FULL": f"coalesce({left}.{world}, {right}.{world})"}
        found = [one for one in found if one.text.rpartition(".")[2] != world]
        listed, columns = selected(builder, found)
        listed, columns = (
            f"{names.get(kind, f'{left}.{world}')} AS {world}, {listed}",
            (Column(world, INT, nullable=False), *columns),
        )
        found = [Expression("", INT, nullable=False), *found]
    else:
        listed, columns = selected(builder, found)
    time = time_of(table if kind != "RIGHT" else other, columns, found)
    builder.uses.add(f"{kind} JOIN{' in an interval' if waits else ''}")
    return made(builder, f"SELECT {listed} FROM {text}", columns, time, table, other, waits=waits)


def _conditions(
    builder: Builder, table: Table, other: Table, left: str, right: str, kind: str
) -> tuple[list[str], bool]:
    """Return the conditions of a join, and whether one is an interval of time."""
    on = [f"{left}.{builder.world} = {right}.{builder.world}"] if builder.world else []
    waits = False
    if table.time is not None and other.time is not None and builder.chance(3):
        mine, theirs = f"{left}.{table.time}", f"{right}.{other.time}"
        forms = (
            f"{theirs} BETWEEN {mine} AND {mine} + INTERVAL {builder.one_of(_HOURS)}",
            f"{theirs} >= {mine} - INTERVAL {builder.one_of(_HOURS)} AND {theirs} < {mine} + INTERVAL {builder.one_of(_HOURS)}",
            f"{mine} >= {theirs} AND {mine} <= {theirs} + INTERVAL {builder.one_of(_HOURS)}",
        )
        on.append(builder.one_of(forms))
        waits = True
    for _ in range(builder.one_of((1, 1, 2) if len(on) < 2 else (0, 1))):
        kinds = [k for k in (TEXT, INT, LONG, DOUBLE, DATE, FLAG, TIME) if table.of(k) and other.of(k)]
        if not kinds:
            break
        chosen = builder.one_of(kinds)
        mine, theirs = expression(builder, table, left, chosen), expression(builder, other, right, chosen)
        on.append(f"{mine.text} {builder.one_of(('=', '=', '<=>'))} {theirs.text}")
    if builder.chance(4):
        side, alias = (table, left) if builder.chance(2) else (other, right)
        on.append(f"({condition(builder, side, alias)})")
    if builder.chance(4):
        kinds = [k for k in (*NUMBERS, TEXT, TIME) if table.of(k) and other.of(k)]
        if kinds:
            chosen = builder.one_of(kinds)
            mine, theirs = column_of(builder, table.of(chosen), left), column_of(builder, other.of(chosen), right)
            on.append(f"{mine.text} {builder.one_of(('<=', '<>', '>'))} {theirs.text}")
    return on or ["true"], waits and kind != "INNER"
