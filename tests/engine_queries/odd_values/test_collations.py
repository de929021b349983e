"""Rows with collated texts are told apart by their bytes: a correction that only changes a letter's case is one."""

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

FIELDS = [pa.field("k", pa.int32()), pa.field("v", pa.int32()), pa.field("s", pa.string())]
PULLS = (
    "+A 2024-01-01T01:00 1 1 a\n+A 2024-01-01T01:00 1 2 b\n+A 2024-01-01T01:00 1 2 b\n+A 2024-01-01T01:00 1 2 B",
    "-C 2024-01-01T01:00 1 1 a\n+C 2024-01-01T01:00 1 1 A",
    "-R 2024-01-01T01:00 1 2 b",
)
TEXT = "s COLLATE UTF8_LCASE"
QUERIES = {
    "window": f"SELECT event_time, v, {TEXT} AS s, count(*) OVER (PARTITION BY k, v) AS n FROM a",
    "join": f"SELECT a.event_time, a.v, a.{TEXT} AS s, b.n FROM a LEFT JOIN (SELECT k, max(v) AS n FROM a GROUP BY k) b"
    " ON a.k = b.k",
    "ties": f"SELECT event_time, v, {TEXT} AS s, row_number() OVER (PARTITION BY k, v ORDER BY event_time) AS n FROM a",
    "array": f"SELECT event_time, v, array({TEXT}) AS s, count(*) OVER (PARTITION BY k, v) AS n FROM a",
    "ties of the text itself": f"SELECT event_time, v, s, row_number() OVER (PARTITION BY k ORDER BY s) AS n"
    f" FROM (SELECT * EXCEPT (s), {TEXT} AS s FROM a)",
    "struct": f"SELECT event_time, v, named_struct('t', {TEXT}).t AS s, count(*) OVER (PARTITION BY k) AS n FROM a",
    "below a window": f"SELECT event_time, v, s, count(*) OVER (PARTITION BY k) AS n FROM (SELECT *  EXCEPT (s), {TEXT} AS s FROM a)",
}
STATES = (["a", "b", "b", "B"], ["A", "b", "b", "B"], ["A", "b", "B"])


@pytest.mark.slow_after(5)
@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
def test_letters_keep_their_case(query: str, spark: Any, tmp_path: Path) -> None:
    pulls = [Pull({"a": [parsed(line, FIELDS) for line in lines(pull)]}, {"a": "2024-01-02T00:00"}) for pull in PULLS]
    plain = Tuned(spark, **QUICK)
    case = Case("collations", "", [(None, query)], {"a": FIELDS}, {}, pulls)
    runner, emitted = Compared(plain, case, tmp_path, batch_spark=plain), []
    for pull, expected in zip(case.pulls, STATES, strict=True):
        emitted += runner.pull(pull).rows
        there = [row.split()[2].strip('["]') for row in state_of(emitted).elements()]
        assert sorted(there) == sorted(expected)
        if pull is case.pulls[-1] or examples(0, 1):
            found = runner.compare()
            assert (found.obstacle, found.differences) == (None, ())
