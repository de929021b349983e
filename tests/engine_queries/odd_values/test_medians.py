"""Medians and percentiles over a whole partition, which Spark lets nobody order."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.queries.batch_cases import Compared
from support.queries.cases import QUICK, Case, Pull, Tuned, lines, parsed

pytestmark = pytest.mark.spark

FIELDS = [pa.field("k", pa.string()), pa.field("v", pa.int64()), pa.field("d", pa.float64())]
PULLS = (
    "+A 2024-01-01T01:00 x 1 0.5\n+A 2024-01-01T01:00 x 2 NaN\n+A 2024-01-01T01:00 y 5 -0.0",
    "+A 2024-01-01T02:00 x 9 1.5\n-R 2024-01-01T01:00 x 1 0.5\n+A 2024-01-01T02:00 y 7 0.0",
)
FUNCTIONS = (
    "median(v)",
    "median(d)",
    "percentile(d, 0.5)",
    "percentile_cont(0.5) WITHIN GROUP (ORDER BY v)",
    "percentile_cont(0.25) WITHIN GROUP (ORDER BY d DESC)",
    "percentile_disc(0.5) WITHIN GROUP (ORDER BY v)",
    "percentile_disc(0.5) WITHIN GROUP (ORDER BY d)",
)


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("functions", [FUNCTIONS, *((one,) for one in FUNCTIONS)], ids=["all", *FUNCTIONS])
def test_each_row_may_have_that_of_its_partition(functions: tuple[str, ...], spark: Any, tmp_path: Path) -> None:
    """All in one query, and alone."""
    columns = ", ".join(f"{one} OVER (PARTITION BY k) AS m{at}" for at, one in enumerate(functions))
    query = f"SELECT event_time, k, v, {columns} FROM a"
    taken = [Pull({"a": [parsed(line, FIELDS) for line in lines(pull)]}, {"a": "2024-01-02T00:00"}) for pull in PULLS]
    plain = Tuned(spark, **QUICK)
    case = Case("medians", "", [(None, query)], {"a": FIELDS}, {}, taken)
    tried = Compared(plain, case, tmp_path, batch_spark=plain)
    for pull in case.pulls:
        tried.pull(pull)
        found = tried.compare()
        assert (found.obstacle, found.differences) == (None, ())
