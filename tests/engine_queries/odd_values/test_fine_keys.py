"""Times by which rows are known are not cut when they are stored: different rows would have one key."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.queries.cases import QUICK, Case, Pull, Runner, Tuned, lines, parsed

from odfpy.engine.contract import TransformResponseInvalidQuery, TransformResponseSuccess

pytestmark = pytest.mark.spark

FIELDS = [pa.field("v", pa.int32()), pa.field("k", pa.string())]
ROWS = "+A 2024-01-01T01:00 1 x\n+A 2024-01-01T01:00 2 x\n+A 2024-01-01T01:00 1000 x"
FINE = "timestamp_micros(v)"
REFUSED = {
    "group": f"SELECT max(event_time) AS event_time, {FINE} AS t, count(*) AS n FROM a GROUP BY {FINE}",
    "event time": f"SELECT {FINE} AS event_time, count(*) AS n FROM a GROUP BY {FINE}",
    "without a zone": f"SELECT max(event_time) AS event_time, CAST({FINE} AS TIMESTAMP_NTZ) AS t FROM a GROUP BY ALL",
    "numbered": "SELECT event_time, t, k FROM (SELECT *, row_number() OVER (PARTITION BY t ORDER BY k) AS n"
    f" FROM (SELECT event_time, k, {FINE} AS t FROM a)) WHERE n = 1",
}
FINE_AND_NO_KEY = {
    "cut by the query": f"SELECT max(event_time) AS event_time, date_trunc('MILLISECOND', {FINE}) AS t FROM a GROUP BY ALL",
    "a result": f"SELECT max(event_time) AS event_time, k, max({FINE}) AS t FROM a GROUP BY k",
    "row by row": f"SELECT event_time, {FINE} AS t FROM a",
    "a number": f"SELECT max(event_time) AS event_time, unix_micros({FINE}) AS t FROM a GROUP BY ALL",
}


class Asked(Runner):
    """Runs a query, whatever the answer."""

    def answer(self, pull: Pull) -> Any:
        answers: list[Any] = []
        respond = self.respond
        self.respond = lambda request: answers.append(respond(request)) or answers[-1]  # type: ignore[method-assign]
        with suppress(AssertionError):  # of who expects a success
            self.pull(pull)
        return answers[-1]


def answered(query: str, spark: Any, folder: Path) -> Any:
    pull = Pull({"a": [parsed(line, FIELDS) for line in lines(ROWS)]}, {"a": "2024-01-02T00:00"})
    case = Case("fine", "", [(None, query)], {"a": FIELDS}, {}, [pull])
    return Asked(Tuned(spark, **QUICK), case, folder).answer(pull)


@pytest.mark.parametrize("query", REFUSED.values(), ids=REFUSED)
def test_fine_keys_are_refused_when_they_come(query: str, spark: Any, tmp_path: Path) -> None:
    found = answered(query, spark, tmp_path)
    assert isinstance(found, TransformResponseInvalidQuery), found
    assert "is truncated to milliseconds" in found.message
    assert [path.name for path in tmp_path.rglob("*.parquet*") if "slice" in path.name] == []


@pytest.mark.parametrize("query", FINE_AND_NO_KEY.values(), ids=FINE_AND_NO_KEY)
def test_other_times_are_cut(query: str, spark: Any, tmp_path: Path) -> None:
    assert isinstance(answered(query, spark, tmp_path), TransformResponseSuccess)
