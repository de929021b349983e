"""The least and the greatest of each group, with NaN, infinities and nulls, beside Python."""

from __future__ import annotations

import math
from collections.abc import Callable

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odfpy.engine.datafusion.extremes import are_wrong, with_own_extremes
from odfpy.engine.datafusion.session import name_rows, new_session, rows_in_order, run_query

FRACTIONS = st.none() | st.sampled_from([math.nan, math.inf, -math.inf, 0.0, 1.5, -1.5, 1.7e308, -1.7e308, 5e-324])
ROWS = st.lists(st.tuples(st.sampled_from("ab"), FRACTIONS, st.none() | st.integers(-3, 3)), max_size=8)
Row = tuple[str, float | None, int | None]


def order(value: float) -> tuple[bool, float]:
    """NaN is greater than all numbers."""
    return (True, 0.0) if math.isnan(value) else (False, value)


def found_by(choose: Callable[..., float], values: list[float | None]) -> float | None:
    present = [value for value in values if value is not None]
    return choose(present, key=order) if present else None


def answered(rows: list[Row], query: str, kind: pa.DataType) -> pa.Table:
    context = new_session(deterministic=False)
    columns = {"k": [k for k, _, _ in rows], "d": [d for _, d, _ in rows], "i": [i for _, _, i in rows]}
    schema = pa.schema([("k", pa.string()), ("d", kind), ("i", pa.int64())])
    name_rows(context, "r", schema, [pa.RecordBatch.from_pydict(columns, schema)])
    frame = run_query(context, query)
    return pa.Table.from_batches(rows_in_order(frame), frame.schema())


@given(ROWS)
def test_they_are_those_of_python(rows: list[Row]):
    query = "SELECT k, max(d), min(d), max(i) AS m, min(d) FILTER (WHERE i > 0) AS f FROM r GROUP BY k ORDER BY k"
    expected = [
        (
            key,
            found_by(max, [d for k, d, _ in rows if k == key]),
            found_by(min, [d for k, d, _ in rows if k == key]),
            max((i for k, _, i in rows if k == key and i is not None), default=None),
            found_by(min, [d for k, d, i in rows if k == key and i is not None and i > 0]),
        )
        for key in sorted({k for k, _, _ in rows})
    ]
    table = answered(rows, query, pa.float64())
    assert table.column_names == ["k", "max(r.d)", "min(r.d)", "m", "f"]
    assert repr([tuple(row.values()) for row in table.to_pylist()]) == repr(expected)


ROW: list[Row] = [("a", 1.0, 1), ("a", math.nan, 2), ("b", math.inf, 3), ("b", math.inf, 4)]
QUERIES = {
    "in HAVING and ORDER BY": ("SELECT k FROM r GROUP BY k HAVING max(d) > 5 ORDER BY min(d) DESC", ["b", "a"]),
    "below another query": ("SELECT max FROM (SELECT k, max(d) AS max FROM r GROUP BY k) ORDER BY max", [math.inf, math.nan]),
    "in a subquery": ("SELECT (SELECT min(m) FROM (SELECT max(d) AS m FROM r GROUP BY k)) AS x", [math.inf]),
    "of an expression": ("SELECT max(d * 2) AS x FROM r GROUP BY k ORDER BY k", [math.nan, math.inf]),
    "DISTINCT": ("SELECT MIN ( DISTINCT d ) AS x FROM r GROUP BY k ORDER BY k", [1.0, math.inf]),
    "in a subquery for each row": (
        "SELECT (SELECT max(d) FROM r AS o WHERE o.k = r.k) AS x FROM r ORDER BY k, i", [math.nan] * 2 + [math.inf] * 2,
    ),
    "beside distinct values": ("SELECT max(d) AS x, count(DISTINCT k) FROM r WHERE k = 'a'", [math.nan]),
    "with a comment": ("SELECT max(d -- )\n) AS x FROM r GROUP BY k ORDER BY k", [math.nan, math.inf]),
    "beside a text of several lines": (
        "SELECT max(CASE WHEN k <> 'x\ny' THEN d END) AS x FROM r GROUP BY k ORDER BY k", [math.nan, math.inf],
    ),
    "ROLLUP": ("SELECT max(d) AS x FROM r GROUP BY ROLLUP (k) ORDER BY k", [math.nan, math.inf, math.nan]),
}  # fmt: skip


@pytest.mark.parametrize(("query", "expected"), QUERIES.values(), ids=QUERIES)
@pytest.mark.parametrize("kind", [pa.float64(), pa.float32()], ids=str)
def test_wherever_they_stand(query: str, expected: list[object], kind: pa.DataType):
    assert repr(answered(ROW, query, kind).column(0).to_pylist()) == repr(expected)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT k, max(i) FROM r GROUP BY k",
        "SELECT max(d), min(d) FROM r",
        "SELECT max(d) OVER (PARTITION BY k) FROM r",
        "SELECT k, sum(d), 'max(d)' FROM r GROUP BY k",
        'SELECT d AS "max" FROM r',
    ],
)
def test_what_is_right_stays_as_it_is(query: str):
    context = new_session(deterministic=False)
    name_rows(context, "r", pa.schema([("k", pa.string()), ("d", pa.float64()), ("i", pa.int64())]), [])
    assert not are_wrong(run_query(context, query).logical_plan())


def test_calls_over_windows_and_names_are_no_such_calls():
    query = "SELECT max(d) FILTER (WHERE x) OVER (ORDER BY k), 'max(d)', \"max\"(d), t.max(d), max FROM t"
    assert with_own_extremes(query) == query
