"""Random queries: a few operators over one to four inputs, as nested queries, common table expressions or steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st
from support.search.joins import as_of
from support.search.operators import BINARY, UNARY
from support.search.relations import (
    DATE,
    DECIMAL,
    DOUBLE,
    FLAG,
    INT,
    LIST,
    TEXT,
    TIME,
    Builder,
    Column,
    Table,
)

from odfpy.dataset.transform import TemporalTable

WORLD = "w"
_VALID = ("valid_from", "valid_to")
_FIELDS = (
    pa.field("k", pa.string()),
    pa.field("j", pa.int32()),
    pa.field("v", pa.int32(), nullable=False),
    pa.field("x", pa.float64()),
    pa.field("n", pa.decimal128(8, 2)),
    pa.field("d", pa.date32()),
    pa.field("f", pa.bool_()),
    pa.field("l", pa.list_(pa.int32())),
)
_KINDS = {"k": TEXT, "j": INT, "v": INT, "x": DOUBLE, "n": DECIMAL, "d": DATE, "f": FLAG, "l": LIST, WORLD: INT}


@dataclass(frozen=True)
class Query:
    """A query of the search.

    Attributes:
        steps: texts with their aliases, the last without one.
        inputs: columns of each input that is read; its event time is not among them.
        keys: primary keys of the inputs, where they have one.
        temporal: the inputs that are temporal tables.
        worlds: whether the inputs have parallel histories, separated by `w`.
        waits: whether some rows are emitted only when a watermark has passed them.
        uses: operators, to be counted.
    """

    steps: tuple[tuple[str | None, str], ...]
    inputs: Mapping[str, Sequence[pa.Field]]
    keys: Mapping[str, tuple[str, ...]]
    temporal: tuple[TemporalTable, ...]
    worlds: bool
    waits: bool
    uses: frozenset[str]


@st.composite
def queries(draw: Any) -> Query:
    """Queries that are functions of the multisets of their inputs."""
    worlds = draw(st.booleans())
    names = "abcd"[: draw(st.sampled_from((1, 2, 2, 3, 4)))]
    world = (Column(WORLD, INT, nullable=False),) if worlds else ()
    columns = (
        Column("event_time", TIME, nullable=False),
        *world,
        *(Column(field.name, _KINDS[field.name], field.nullable) for field in _FIELDS),
    )
    inputs = [Table(name, columns, "event_time") for name in names]
    key = (WORLD, "k") if worlds else ("k",)
    temporal = ()
    if len(names) > 1 and draw(st.integers(0, 3)) == 3:
        temporal = (TemporalTable(names[1], key),)
        bounds = tuple(Column(name, TIME, nullable=False) for name in _VALID)
        inputs[1] = replace(inputs[1], columns=(*columns, *bounds), valid=_VALID)
    keyed = draw(st.lists(st.sampled_from(names), unique=True)) if draw(st.booleans()) else []
    builder = Builder(draw, WORLD if worlds else None, inputs)
    result = _table(builder, inputs, draw(st.sampled_from((1, 2, 3, 2, 4))))
    final = _output(builder, result)
    builder.definitions = _used(builder.definitions, final)
    text = " ".join([final, *(one for _, one in builder.definitions)])
    read = {name: _fields(worlds) for name in names if _reads(text, name)} or {"a": _fields(worlds)}
    return Query(
        _steps(builder, final),
        read,
        {name: key for name in keyed if name in read},
        tuple(table for table in temporal if table.name in read),
        worlds,
        result.waits,
        frozenset(builder.uses),
    )


def _fields(worlds: bool) -> tuple[pa.Field, ...]:
    return (*([pa.field(WORLD, pa.int32(), nullable=False)] if worlds else []), *_FIELDS)


def _reads(text: str, name: str) -> bool:
    return any(f"{before}{name} AS" in text for before in (" ", "("))


def _table(builder: Builder, inputs: Sequence[Table], operators: int) -> Table:
    """Return a table that some operators make, of tables made before or of inputs."""
    made: list[Table] = []
    for number in range(operators):
        first = made[-1] if made else builder.one_of(inputs)
        takes_two = (len(inputs) > 1 or number > 0) and builder.chance(2)
        if takes_two:
            second = builder.one_of([*inputs[1:], *inputs[:1], *made])
            operator = as_of if any(one.valid for one in inputs) and builder.chance(2) else builder.one_of(BINARY)
            table = operator(builder, first, second)
        else:
            table = builder.one_of(UNARY)(builder, first)
        if builder.chance(3) or len(table.text) > 1_500:
            table = builder.named(table)
        made.append(table)
    return made[-1]


def _output(builder: Builder, table: Table) -> str:
    """Return the query that gives a table its event time."""
    alias = builder.fresh("r")
    times = table.of(TIME)
    first = next((column for column in times if column.name == table.time), times[0] if times else None)
    if first is None:
        dates = table.of(DATE)
        first = dates[0] if dates else None
    if first is None:
        time = "TIMESTAMP'2024-01-01 00:00:00'"
    elif first.nullable:
        zero = "TIMESTAMP'2024-01-01 00:00:00'" if first.kind == TIME else "DATE'2024-01-01'"
        time = f"coalesce({alias}.{first.name}, {zero})"
    else:
        time = f"{alias}.{first.name}"
    others = [column for column in table.columns if column != first]
    listed = ", ".join([f"{time} AS event_time", *(f"{alias}.{column.name} AS o_{column.name}" for column in others)])
    return f"SELECT {listed} FROM {table.text} AS {alias}"


def _used(definitions: Sequence[tuple[str, str]], final: str) -> list[tuple[str, str]]:
    """Return the definitions that the query has to do with, in their order."""
    used, text = [], final
    for name, definition in reversed(definitions):
        if _reads(text, name):
            used.append((name, definition))
            text += f" {definition}"
    return used[::-1]


def _steps(builder: Builder, final: str) -> tuple[tuple[str | None, str], ...]:
    if not builder.definitions:
        return ((None, final),)
    if builder.chance(2):
        return (*builder.definitions, (None, final))
    listed = ", ".join(f"{name} AS ({text})" for name, text in builder.definitions)
    return ((None, f"WITH {listed} {final}"),)
