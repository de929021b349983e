"""Sums of BIGINT overflow if the sum does not fit, and not for the order in which it is added up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.queries.batch_cases import Compared
from support.queries.cases import QUICK, Case, Pull, Tuned, lines, parsed
from support.queries.oracle import state_of

pytestmark = pytest.mark.spark

MIN_LONG, MAX_LONG = -(1 << 63), (1 << 63) - 1
FIELDS = [
    pa.field("k", pa.string()),
    pa.field("v", pa.int64()),
    pa.field("d", pa.float64()),
    pa.field("p", pa.decimal128(10, 2)),
]
PULLS = (
    f"+A 2024-01-01T01:00 low {MIN_LONG} 1e16 1.00\n+A 2024-01-01T01:00 high {MAX_LONG} 1.5 1.00",
    "+A 2024-01-01T01:00 low 1 1.0 2.00\n+A 2024-01-01T01:00 high -1 0.5 2.00",
    "+A 2024-01-01T01:00 low -1 -1e16 3.00\n+A 2024-01-01T01:00 high 1 2.5 3.00",
)
BESIDE = {
    "nothing": "count(*)",
    "both means": "struct(avg(p), avg(d))",
    "a deviation": "stddev(d)",
    "the median and a sum of fractions": "struct(median(p), sum(d))",
    "numbers that differ": "count(DISTINCT p)",
    "a mean of decimals": "avg(p)",
    "a mean of fractions": "avg(d)",
    "the median": "median(p)",
}
"""The last ones alone stand beside something else in those before."""
SUMS = (
    "sum(v)",
    "try_sum(v)",
    "sum(DISTINCT v)",
    "try_sum(DISTINCT v)",
    "sum(v) FILTER (WHERE p > 0)",
    "sum(v) DIV 1",
)


def runner(spark: Any, aggregates: str, folder: Path, pulls: tuple[str, ...] = PULLS) -> Compared:
    query = f"SELECT TIMESTAMP'2024-01-01' AS event_time, k, {aggregates} FROM a GROUP BY k"
    taken = [Pull({"a": [parsed(line, FIELDS) for line in lines(pull)]}, {"a": "2024-01-02T00:00"}) for pull in pulls]
    plain = Tuned(spark, **QUICK)
    return Compared(plain, Case("sums", "", [(None, query)], {"a": FIELDS}, {}, taken), folder, batch_spark=plain)


@pytest.mark.slow_after(5)
@pytest.mark.parametrize("beside", BESIDE.values(), ids=BESIDE)
def test_a_sum_that_fits_is_there_whatever_stands_beside_it(beside: str, spark: Any, tmp_path: Path) -> None:
    tried = runner(spark, ", ".join(f"{one} AS s{at}" for at, one in enumerate(SUMS)) + f", {beside} AS x", tmp_path)
    emitted: list[Any] = []
    for pull in tried.case.pulls:
        emitted.extend(tried.pull(pull).rows)
    rows = sorted(line.split()[1 : 2 + len(SUMS)] for line in state_of(emitted))
    assert rows == [["high", *[str(MAX_LONG)] * len(SUMS)], ["low", *[str(MIN_LONG)] * len(SUMS)]]
    assert tried.compare().obstacle is None


@pytest.mark.slow_after(5)
@pytest.mark.parametrize("beside", BESIDE.values(), ids=BESIDE)
def test_a_sum_that_does_not_fit_is_null_or_told(beside: str, spark: Any, tmp_path: Path) -> None:
    pulls = (f"+A 2024-01-01T01:00 low {MIN_LONG} 1 1.00\n+A 2024-01-01T01:00 low -1 1.5 1.00",)
    tried = runner(spark, f"try_sum(v) AS s, {beside} AS x", tmp_path, pulls)
    assert [row[3] for row in tried.pull(tried.case.pulls[0]).rows] == [None]
    (tmp_path / "told").mkdir()
    told = runner(spark, f"sum(v) AS s, {beside} AS x", tmp_path / "told", pulls)
    with pytest.raises(AssertionError, match=r"InvalidQuery.*A sum of BIGINT overflows: `try_sum` gives NULL instead"):
        told.pull(told.case.pulls[0])
