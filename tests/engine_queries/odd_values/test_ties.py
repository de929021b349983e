"""Rows that are equal in an ORDER BY follow each other by all columns that the query uses, and not as they came."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.examples import examples
from support.queries.batch_cases import Compared
from support.queries.cases import QUICK, Case, Pull, Tuned, lines, parsed
from support.queries.oracle import state_of

pytestmark = pytest.mark.spark

FIELDS = [pa.field("w", pa.int32()), pa.field("k", pa.string()), pa.field("v", pa.int32()), pa.field("x", pa.float64())]
ALL, USED = "event_time, w, k, v, x", "event_time, k, v"
"""What decides in the end: all columns, where a query shows all."""
PULLS = (
    """
    +A 2024-01-01T01:00 1 x 7 0.1
    +A 2024-01-01T01:00 2 x 3 1e16
    +A 2024-01-01T01:00 3 x 1 -1e16
    +A 2024-01-01T01:00 3 y 9 0.3
    """,
    """
    +A 2024-01-01T01:00 0 x 5 0.7
    -R 2024-01-01T01:00 2 x 3 1e16
    +A 2024-01-01T01:00 3 y 2 0.3
    """,
    """
    -C 2024-01-01T01:00 0 x 5 0.7
    +C 2024-01-01T01:00 9 x 0 0.7
    -C 2024-01-01T01:00 3 y 9 0.3
    +C 2024-01-01T01:00 1 y 9 0.3
    """,
)
QUERIES = {
    "row_number and lag": """
        SELECT event_time, k, v, row_number() OVER w AS n, lag(v) OVER w AS l FROM a
        WINDOW w AS (PARTITION BY k ORDER BY {event_time})
    """,
    "row_number and running sum without a partition": """
        SELECT event_time, k, v, row_number() OVER (ORDER BY {k}) AS n,
        sum(v) OVER (ORDER BY {k} ROWS UNBOUNDED PRECEDING) AS s FROM a
    """,
    "top 1": "SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY k ORDER BY {event_time}) AS n FROM a) WHERE n = 1",
    "limit": "SELECT event_time, k, v FROM a ORDER BY {k} LIMIT 2",
    "above a join": """
        SELECT event_time, k, v, row_number() OVER (PARTITION BY k ORDER BY {event_time}) AS n
        FROM (SELECT a.* FROM a JOIN (SELECT DISTINCT k FROM a) b ON a.k = b.k)
    """,
}


def runner(spark: Any, query: str, folder: Path) -> Compared:
    pulls = [Pull({"a": [parsed(line, FIELDS) for line in lines(pull)]}, {"a": "2024-01-02T00:00"}) for pull in PULLS]
    folder.mkdir()
    plain = Tuned(spark, **QUICK)
    return Compared(plain, Case("ties", "", [(None, query)], {"a": FIELDS}, {}, pulls), folder, batch_spark=plain)


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
def test_all_columns_decide(query: str, spark: Any, tmp_path: Path) -> None:
    tied = runner(spark, query.format(event_time="event_time", k="k"), tmp_path / "tied")
    keys = ALL if "*, row_number" in query else USED
    full = runner(spark, query.format(event_time=keys, k=f"k, {keys}"), tmp_path / "full")
    emitted: tuple[list[Any], list[Any]] = ([], [])
    for pull in tied.case.pulls:
        for one, rows in zip((tied, full), emitted, strict=True):
            rows.extend(one.pull(pull).rows)
        assert state_of(emitted[0]) == state_of(emitted[1])
        if pull is tied.case.pulls[-1] or examples(0, 1):
            found = tied.compare()
            assert (found.obstacle, found.differences) == (None, ())
