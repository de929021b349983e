"""A model of sketches in plain Python, and the SQL for a sketch in each engine."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Mapping
from datetime import date
from decimal import Context, Decimal
from typing import Any

import pyarrow as pa
import sqlglot
from hypothesis import strategies as st
from support.federation.answers import run_datafusion, run_duckdb
from support.federation.transformations import transformed

from odfpy.federation.sql.fragment import Fragment
from odfpy.federation.sql.source import source_sql
from odfpy.federation.sql.split import split
from odfpy.sharing.decisions import View, VisiblePart

BUCKETS = 4096
ALL = View((VisiblePart(None, None),))


def hash_of(value: Any) -> str:
    """Return the hash of a value."""
    if isinstance(value, date):
        value = f"{value.year}-{value.month}-{value.day}"
    text = f"{value:f}" if isinstance(value, Decimal) else str(value)
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


def sketch_of(values: Iterable[Any]) -> dict[str, int]:
    """Return the least fraction of each bucket, times 16^8."""
    found: dict[str, int] = {}
    for value in values:
        if value is not None:
            digits = hash_of(value)
            fraction = int(digits[3:11], 16)
            found[digits[:3]] = min(fraction, found.get(digits[:3], fraction))
    return found


def estimate_of(sketch: Mapping[str, int]) -> int:
    """Return the most likely number of values."""
    full = len(sketch)
    fractions = (sum(sketch.values()) + full / 2) / 16**8
    return math.floor(BUCKETS * full / (BUCKETS - full + fractions) + 0.5) if full else 0


def _run_trino(sql: str, tables: dict[str, pa.Table]) -> pa.Table:
    """Run Trino's SQL with its meaning in duckdb."""
    return run_duckdb(sqlglot.transpile(sql, read="trino", write="duckdb", identify=True)[0], tables)


ENGINES: Mapping[str, Callable[[str, dict[str, pa.Table]], pa.Table]] = {
    "duckdb": run_duckdb,
    "datafusion": run_datafusion,
    "sql": run_duckdb,
    "trino": _run_trino,
}


def sketch_fragment(dtype: pa.DataType) -> Fragment:
    """Return the fragment that counts the distinct values of a column."""
    [fragment] = split("SELECT approx_distinct(v) AS n FROM e", {"e": pa.schema([("v", dtype)])}).fragments.values()
    return fragment


def sketch_sql(fragment: Fragment, dtype: pa.DataType, engine: str, view: View = ALL) -> str:
    """Return the SQL of a source for it, over a table `raw`."""
    schema = pa.schema([("v", dtype)])
    return source_sql(fragment, {"v": transformed("{v}", "v")}, 'SELECT * FROM "raw"', view, {}, engine, schema=schema)


def sketch_in(answer: pa.Table) -> dict[str, int]:
    """Return the sketch that the answer of a source is."""
    [column] = answer.columns
    texts = [text for text in column.to_pylist() if text is not None]
    assert all(len(text) == 11 for text in texts)
    found = {text[:3]: int(text[3:], 16) for text in texts}
    assert len(found) == len(texts), "a bucket is there once"
    return found


@st.composite
def _values_of(draw: st.DrawFn) -> tuple[pa.DataType, list[Any]]:
    kind = draw(st.sampled_from(("text", "int", "decimal", "date")))
    if kind == "decimal":
        scale = draw(st.integers(0, 20))
        digits = draw(st.integers(max(scale, 1), 30))
        most = 10**digits - 1
        values = st.integers(-most, most).map(lambda number: Decimal(number).scaleb(-scale, _CONTEXT))
        dtype = pa.decimal128(digits, scale)
    elif kind == "int":
        dtype = draw(st.sampled_from(_INTS))
        signed = pa.types.is_signed_integer(dtype)
        least = -(2 ** (dtype.bit_width - 1)) if signed else 0
        values = st.integers(least, least + 2**dtype.bit_width - 1)
    elif kind == "date":
        dtype, values = pa.date32(), st.dates(date(1, 1, 1), date(9999, 12, 31))
    else:
        dtype = pa.string()
        values = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), max_size=12)
    return dtype, draw(st.lists(st.none() | values, max_size=20))


_CONTEXT = Context(prec=60)
_INTS = (pa.int16(), pa.int32(), pa.int64(), pa.uint16(), pa.uint32(), pa.uint64())
values_of = _values_of()
"""A type that sketches are of, and values of it."""
