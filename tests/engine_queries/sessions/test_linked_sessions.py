"""Sessions of many rows, which are made of links of rows: what comes out is the same, to the bit, as from single rows.

A run of all tests tries one history of some queries; `ODF_LAWS=50` so many of each.
"""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, given, settings
from support.queries.arranging import case_of
from support.queries.cases import INTERPRETED, QUICK, Runner, Tuned, pull_both
from support.queries.histories import histories
from support.queries.stories import told_further

pytestmark = pytest.mark.spark

EXAMPLES = int(os.environ.get("ODF_LAWS", "0"))
MANY = {**INTERPRETED, "spark__sql__shuffle__partitions": "3"}
TIMES = "session_window.end AS event_time, session_window.start AS since"
BY_KEY = f"SELECT {TIMES}, k, {{what}} FROM a GROUP BY k, session_window(event_time, '3 hours')"
QUERIES = {
    "counts": BY_KEY.format(what="count(*) AS n, count(v) AS c"),
    "values": BY_KEY.format(what="sum(v) AS s, min(v) AS l, max(v) AS m, avg(v) AS a"),
    "doubles of different zones": BY_KEY.format(what="sum(if(v = 1, 1e-20, v / 3D)) AS s, avg(v / 7D) AS m"),
    "nothing but the window": f"SELECT {TIMES} FROM a GROUP BY session_window(event_time, '5 hours')",
    "gaps of each row": f"SELECT {TIMES}, sum(v) AS s FROM a GROUP BY "
    "session_window(event_time, CASE v WHEN 1 THEN '6 hours' WHEN 2 THEN '30 minutes' ELSE '2 hours' END)",
    "what is not made of links": BY_KEY.format(what="count(DISTINCT v) AS n"),
    "sessions of sessions": "SELECT session_window.end AS event_time, sum(n) AS n FROM "
    f"({BY_KEY.format(what='count(*) AS n')}) GROUP BY session_window(event_time, '2 hours')",
    "before 1970": f"SELECT {TIMES}, k, count(*) AS n FROM "
    "(SELECT event_time - INTERVAL 60 YEARS AS event_time, k FROM a) GROUP BY session_window(event_time, '3 hours'), k",
}
TRIED = QUERIES if EXAMPLES else ("values", "doubles of different zones", "what is not made of links")


def compare(spark, case, pulls):
    """Run the pulls as few rows and as many."""
    with TemporaryDirectory() as one, TemporaryDirectory() as other:
        few = Runner(Tuned(spark, **QUICK), case, Path(one))
        many = Runner(Tuned(spark, **MANY), case, Path(other), rows_in_one_task=1)
        pull_both(few, many, pulls)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("name", TRIED)
def test_rows_are_the_same(name, spark):
    compare(spark, case_of(QUERIES[name]), told_further("a")[:5])


@pytest.mark.parametrize("name", QUERIES if EXAMPLES else ("gaps of each row",))
def test_rows_are_the_same_with_any_history(name, spark):
    @settings(max_examples=EXAMPLES or 1, suppress_health_check=list(HealthCheck), deadline=None)
    @given(histories("a"))
    def tried(pulls):
        compare(spark, case_of(QUERIES[name]), pulls)

    tried()
