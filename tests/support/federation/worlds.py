"""Small worlds: entities, data sources behind chains of relays, grants; and the visible cells, row by row.

Nothing here uses the code under test. Transformations and conditions are pairs: SQL, and the same in Python.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from odfpy.sharing.decisions import View, VisiblePart

Row = dict[str, Any]

INT, DOUBLE, TEXT, DATE, BOOL = pa.int64(), pa.float64(), pa.string(), pa.date32(), pa.bool_()
SMALL, EXACT, TIME = pa.int32(), pa.decimal128(12, 2), pa.timestamp("us")
TYPES = (INT, DOUBLE, TEXT, DATE, BOOL, SMALL, EXACT, TIME)

ATTRIBUTES = {"region": "north", "level": "3", "quote": "o'brien"}
ASKER = "attributes of who asks"
"""Has them in a row, where they are not `ATTRIBUTES`."""

NAMES = ("id", "Größe", "a b", 'q"q', "order", "x%y", "o'k", "select", "v_1", "{v}", "__shows", "g0", "a0", "rows")
TEXTS = ("", "a", "ab", "A", "b", "north", "o'brien", "%", "a_b", "100%", "é", "Ü", "\\", "日本", "x", "3")


@dataclass(frozen=True)
class Rule:
    """A condition on rows."""

    sql: str
    holds: Callable[[Row], bool | None]


@dataclass(frozen=True)
class Step:
    """A transformation of a piece of information.

    Attributes:
        template: a transformation.
        apply: the same in Python.
        stored: the type of its argument.
    """

    template: str
    apply: Callable[[Any], Any]
    stored: pa.DataType


@dataclass(frozen=True)
class Hop:
    """A mapping from one model to the next.

    Attributes:
        schema: schema of the next hop, with further columns.
        mapping: for a piece of information, the column and the transformation; missing pieces have none.
    """

    entity: str
    schema: pa.Schema
    mapping: Mapping[str, tuple[str, Step]]


@dataclass(frozen=True)
class Source:
    """A data source behind relays; the schema of the last hop is that of its fields."""

    hops: tuple[Hop, ...]
    rows: tuple[Row, ...]
    parts: tuple[tuple[tuple[str, ...] | None, Rule | None], ...]
    engine: str = "duckdb"

    @property
    def schema(self) -> pa.Schema:
        return self.hops[-1].schema

    @property
    def view(self) -> View:
        return View(tuple(VisiblePart(columns, None if rule is None else rule.sql) for columns, rule in self.parts))

    @property
    def table(self) -> pa.Table:
        return pa.Table.from_pylist(list(self.rows), schema=self.schema)

    def shown(self) -> list[Row]:
        """Return the visible cells, in the vocabulary of the source."""
        found = []
        for row in self.rows:
            parts = [columns for columns, rule in self.parts if rule is None or rule.holds(row) is True]
            if parts:
                visible = {name for columns in parts for name in (row if columns is None else columns)}
                found.append({name: value if name in visible else None for name, value in row.items()})
        return found

    def shown_to_asker(self) -> list[Row]:
        """Return the same in the vocabulary of the requester, through all relays."""
        rows = self.shown()
        for hop in reversed(self.hops):
            names = hop.mapping
            rows = [{name: names[name][1].apply(row.get(names[name][0])) for name in names} for row in rows]
        return rows


@dataclass(frozen=True)
class World:
    """Entities in the asker's model, each with its sources."""

    entities: Mapping[str, pa.Schema]
    sources: Mapping[str, Sequence[Source]] = field(default_factory=dict)

    def visible(self, entity: str) -> pa.Table:
        """Return all that the asker may see of an entity."""
        schema = self.entities[entity]
        rows = [
            {name: row.get(name) for name in schema.names}
            for source in self.sources[entity]
            for row in source.shown_to_asker()
        ]
        return pa.Table.from_pylist(rows, schema=schema)


# --- Values ----------------------------------------------------------------------------------------------------------

doubles = st.one_of(
    st.integers(-64, 64).map(lambda n: n / 4), st.sampled_from((0.0, -0.0, float("nan"), float("inf"), float("-inf")))
)
VALUES: Mapping[pa.DataType, st.SearchStrategy[Any]] = {
    INT: st.integers(-9, 9) | st.sampled_from((2**40, -(2**40))),
    SMALL: st.integers(-9, 9),
    DOUBLE: doubles,
    EXACT: st.integers(-999, 999).map(lambda n: Decimal(n).scaleb(-2)),
    TEXT: st.sampled_from(TEXTS),
    DATE: st.dates(date(1992, 1, 1), date(1992, 3, 1)) | st.dates(date(1969, 12, 1), date(2030, 1, 1)),
    BOOL: st.booleans(),
    TIME: st.datetimes(datetime(1992, 1, 1), datetime(1992, 1, 3)),  # noqa: DTZ001 - without a zone
}


def value_of(dtype: pa.DataType) -> st.SearchStrategy[Any]:
    return st.none() | VALUES[dtype] | VALUES[dtype]


def constant(value: Any, dtype: pa.DataType) -> str:
    """Return a constant in the SQL that duckdb, DataFusion and conditions have in common."""
    if dtype == TEXT:
        return "'" + value.replace("'", "''") + "'"
    if dtype in (INT, SMALL):
        return str(value)
    if dtype == BOOL:
        return str(value).upper()
    name = {DOUBLE: "DOUBLE", EXACT: "DECIMAL(12, 2)", DATE: "DATE", TIME: "TIMESTAMP"}[dtype]
    return f"CAST('{value}' AS {name})"


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


# --- Transformations -------------------------------------------------------------------------------------------------


def _unless_null(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else function(value)


def _same(value: Any) -> Any:
    return value


STEPS: Mapping[pa.DataType, Sequence[Step]] = {
    INT: (
        Step("{v}", _same, INT),
        Step("{v}", _same, SMALL),
        Step("{v} + 1", _unless_null(lambda v: v + 1), INT),
        Step("CAST({v} AS BIGINT)", _unless_null(int), EXACT),
        Step("-{v} * 2", _unless_null(lambda v: v * -2), SMALL),
        Step("char_length({v})", _unless_null(len), TEXT),
        Step("CASE WHEN {v} THEN 1 ELSE 0 END", lambda v: 1 if v else 0, BOOL),
    ),
    SMALL: (
        Step("{v}", _same, SMALL),
        Step("{v} - 1", _unless_null(lambda v: v - 1), SMALL),
        Step("EXTRACT(MONTH FROM {v})", _unless_null(lambda v: v.month), DATE),
    ),
    DOUBLE: (
        Step("{v}", _same, DOUBLE),
        Step("{v} * 100", _unless_null(lambda v: v * 100), DOUBLE),
        Step("({v} + 1) * .25", _unless_null(lambda v: (v + 1) * 0.25), DOUBLE),
        Step("{v} / .25 - 1", _unless_null(lambda v: v / 0.25 - 1), DOUBLE),
        Step("{v} / 4", _unless_null(lambda v: v / 4), INT),
        Step("{v}", _unless_null(float), SMALL),
        Step("coalesce({v}, 0.5)", lambda v: 0.5 if v is None else v, DOUBLE),
    ),
    EXACT: (
        Step("{v}", _same, EXACT),
        Step("{v} * 2 + 0.5", _unless_null(lambda v: v * 2 + Decimal("0.5")), EXACT),
        Step("{v}", _unless_null(Decimal), SMALL),
        Step("CASE WHEN {v} > 1 THEN {v} ELSE 0 END", lambda v: v if v is not None and v > 1 else Decimal(0), EXACT),
    ),
    TEXT: (
        Step("{v}", _same, TEXT),
        Step("upper({v})", _unless_null(str.upper), TEXT),
        Step("{v} || '''%'", _unless_null(lambda v: v + "'%"), TEXT),
        Step("coalesce({v}, 'none')", lambda v: "none" if v is None else v, TEXT),
        Step("nullif({v}, 'a')", lambda v: None if v == "a" else v, TEXT),
        Step("CAST({v} AS VARCHAR)", _unless_null(str), INT),
        Step("substring({v}, 2, 3)", _unless_null(lambda v: v[1:4]), TEXT),
        Step("CAST({v} AS VARCHAR)", _unless_null(str), DATE),
    ),
    DATE: (
        Step("{v}", _same, DATE),
        Step("CAST({v} AS DATE)", _unless_null(datetime.date), TIME),
        Step("coalesce({v}, CAST('1992-02-03' AS DATE))", lambda v: date(1992, 2, 3) if v is None else v, DATE),
    ),
    BOOL: (
        Step("{v}", _same, BOOL),
        Step("NOT {v}", _unless_null(lambda v: not v), BOOL),
        Step("{v} > 2", _unless_null(lambda v: v > 2), INT),
        Step("{v} IS NULL", lambda v: v is None, TEXT),
        Step("{v} LIKE '%b%'", _unless_null(lambda v: "b" in v), TEXT),
        Step("{v} BETWEEN '1992-01-05' AND '1992-02-05'", _unless_null(
            lambda v: date(1992, 1, 5) <= v <= date(1992, 2, 5)), DATE),
    ),
    TIME: (
        Step("{v}", _same, TIME),
        Step("CAST({v} AS TIMESTAMP)", _unless_null(lambda v: datetime(v.year, v.month, v.day)), DATE),  # noqa: DTZ001
    ),
}  # fmt: skip


@st.composite
def hops(draw: st.DrawFn, entity: str, schema: pa.Schema) -> tuple[Hop, ...]:
    """Return a chain of mappings; the last one is from a model to the fields of a source."""
    found = []
    for at in range(draw(st.integers(1, 3))):
        names = draw(st.permutations(NAMES))
        mapping: dict[str, tuple[str, Step]] = {}
        fields = []
        for name, column in zip(names, schema, strict=False):
            if draw(st.integers(0, 5)) or not fields:
                step = draw(st.sampled_from(STEPS[column.type]))
                mapping[column.name] = (name, step)
                fields.append(pa.field(name, step.stored))
        fields.extend(pa.field(name, draw(st.sampled_from(TYPES))) for name in names[len(schema) : len(schema) + 2])
        schema = pa.schema(fields)
        entity = f"{entity}'{at}"
        found.append(Hop(entity, schema, mapping))
    return tuple(found)


# --- Conditions ------------------------------------------------------------------------------------------------------


@st.composite
def rules(draw: st.DrawFn, schema: pa.Schema, depth: int = 2) -> Rule:
    """Return a condition in the vocabulary of a source."""
    if depth and draw(st.booleans()):
        one, other = draw(rules(schema, depth - 1)), draw(rules(schema, depth - 1))
        kind = draw(st.sampled_from(("AND", "OR", "NOT")))
        if kind == "NOT":
            return Rule(f"NOT ({one.sql})", lambda row: _not(one.holds(row)))
        both = _and if kind == "AND" else _or
        return Rule(f"({one.sql}) {kind} ({other.sql})", lambda row: both(one.holds(row), other.holds(row)))
    column = draw(st.sampled_from(list(schema)))
    name, sql = column.name, quoted(column.name)
    if column.type == TEXT:
        kind = draw(st.sampled_from(("attribute", "like", "null", "in", "equal")))
        if kind == "attribute":
            attribute = draw(st.sampled_from((*ATTRIBUTES, "none")))
            return Rule(
                f"{sql} = recipient('{attribute}')",
                lambda row: _compared(row[name], row.get(ASKER, ATTRIBUTES).get(attribute), str.__eq__),
            )
        if kind == "like":
            return Rule(f"{sql} LIKE '%b'", lambda row: _compared(row[name], "b", str.endswith))
        if kind == "in":
            return Rule(
                f"{sql} IN ('a', 'o''brien', '\\')", lambda row: _compared(row[name], ("a", "o'brien", "\\"), _in)
            )
    elif draw(st.booleans()) and column.type != BOOL and column.type != DOUBLE:
        value = draw(VALUES[column.type])
        return Rule(
            f"{sql} <= {constant(value, column.type)}", lambda row: _compared(row[name], value, lambda a, b: a <= b)
        )
    if draw(st.booleans()):
        return Rule(f"{sql} IS NULL", lambda row: row[name] is None)
    value = draw(VALUES[column.type].filter(lambda v: v == v))
    return Rule(f"{sql} = {constant(value, column.type)}", lambda row: _compared(row[name], value, lambda a, b: a == b))


def _in(value: str, values: tuple[str, ...]) -> bool:
    return value in values


def _compared(one: Any, other: Any, compare: Callable[[Any, Any], bool]) -> bool | None:
    return None if one is None or other is None else compare(one, other)


def _not(one: bool | None) -> bool | None:
    return None if one is None else not one


def _and(one: bool | None, other: bool | None) -> bool | None:
    return False if one is False or other is False else None if one is None or other is None else True


def _or(one: bool | None, other: bool | None) -> bool | None:
    return _not(_and(_not(one), _not(other)))


# --- Worlds ----------------------------------------------------------------------------------------------------------


@st.composite
def sources(draw: st.DrawFn, entity: str, schema: pa.Schema) -> Source:
    chain = draw(hops(entity, schema))
    fields = chain[-1].schema
    rows = draw(st.lists(st.fixed_dictionaries({f.name: value_of(f.type) for f in fields}), max_size=12))
    columns = st.none() | st.lists(st.sampled_from(fields.names), min_size=1, unique=True).map(tuple)
    parts = draw(st.lists(st.tuples(columns, st.none() | rules(fields) | rules(fields)), min_size=1, max_size=3))
    return Source(chain, tuple(rows), tuple(parts), draw(st.sampled_from(("duckdb", "duckdb", "datafusion"))))


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """Two entities with a key that they share."""
    entities = {}
    for entity, key in (("Item", "key"), ("other", "ref")):
        names = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=4, unique=True))
        fields = [pa.field(name, draw(st.sampled_from(TYPES))) for name in names]
        entities[entity] = pa.schema([pa.field(key, INT), *fields])
    return World(
        entities,
        {name: draw(st.lists(sources(name, schema), min_size=0, max_size=3)) for name, schema in entities.items()},
    )
