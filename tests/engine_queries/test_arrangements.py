"""Earlier rows that are looked up by key, and not read from history: what comes out is the same, to the bit.

The Runner arranges from the first row on. A run of all tests tries one history of each query; `ODF_LAWS=50` so many.
"""

from __future__ import annotations

import os
from dataclasses import replace
from unittest import mock

import pytest
from support.queries.arranging import both, case_of, hashes_of, in_random_histories
from support.queries.cases import QUICK, Pull, Runner, Tuned, corpus, locked
from support.queries.stories import told_further

from odfpy.engine.spark.incremental.streams import InputStream

pytestmark = pytest.mark.spark

EXAMPLES = int(os.environ.get("ODF_LAWS", "0"))
HASHES = locked()
SUMS = "SELECT event_time, {key} AS k, v, sum(v) OVER (PARTITION BY {key} ORDER BY event_time, v) AS s FROM a"
JOIN = "SELECT a.event_time, a.k, a.v, b.v AS w FROM a {kind} JOIN b ON a.k = b.k"
QUERIES = {
    "running sum": SUMS.format(key="k"),
    "running sum by number": SUMS.format(key="v % 2"),
    "running sum by decimal": SUMS.format(key="cast(v AS decimal(20, 2))"),
    "running sum by day": SUMS.format(key="to_date(event_time)"),
    "running sum by time": SUMS.format(key="date_trunc('hour', event_time)"),
    "neighbours": "SELECT event_time, k, v, lead(v) OVER w AS h, rank() OVER w AS r FROM a "
    "WINDOW w AS (PARTITION BY k ORDER BY event_time, v)",
    "join": JOIN.format(kind=""),
    "join by two columns": "SELECT a.event_time, a.k, b.v FROM a JOIN b ON a.k <=> b.k AND a.v = b.v",
    "left join": JOIN.format(kind="LEFT"),
    "full join": JOIN.format(kind="FULL").replace("a.event_time", "coalesce(a.event_time, b.event_time) AS event_time"),
    "semi join": "SELECT event_time, k, v FROM a WHERE EXISTS (SELECT 1 FROM b WHERE a.k = b.k)",
    "anti join": "SELECT event_time, k, v FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE a.k = b.k)",
    "join of groups": "SELECT a.event_time, a.k, n FROM a JOIN (SELECT k, count(*) AS n FROM b GROUP BY k) c ON a.k = c.k",
    "except": "SELECT event_time, k FROM a EXCEPT SELECT event_time, k FROM b",
    "intersect all": "SELECT event_time, k FROM a INTERSECT ALL SELECT event_time, k FROM b",
    "percentiles": "SELECT max(event_time) AS event_time, k, percentile(v, 0.5D) AS m FROM a GROUP BY k",
}
NOT_BY_KEY = {
    "doubles have two zeros": SUMS.format(key="cast(v AS double)"),
    "texts may be equal without being the same": SUMS.format(key="(k COLLATE UTF8_LCASE)"),
}


TRIED = QUERIES if EXAMPLES else ("running sum", "full join", "running sum by time", "except")


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("name", TRIED)
def test_rows_are_the_same(name, spark):
    case = case_of(QUERIES[name])
    pulls = told_further(case.inputs)
    assert both(spark, replace(case, pulls=pulls), pulls) >= 3


@pytest.mark.parametrize("name", TRIED)
def test_rows_are_the_same_in_random_histories(name, spark):
    case = case_of(QUERIES[name])

    def law(pulls):
        both(spark, replace(case, pulls=pulls), pulls)

    in_random_histories(case, EXAMPLES or 1, law)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("name", NOT_BY_KEY)
def test_keys_that_are_equal_and_not_the_same_are_not_looked_up(name, spark):
    case = case_of(NOT_BY_KEY[name])
    pulls = told_further(case.inputs)
    assert both(spark, replace(case, pulls=pulls), pulls) == 0


LOOKED_UP = [case for case in corpus() if case.name in ("running-sum", "equi-outer-join")]


@pytest.mark.parametrize("case", LOOKED_UP, ids=lambda case: case.name)
def test_a_case_of_the_corpus(case, spark, tmp_path):
    assert hashes_of(spark, case, tmp_path) == HASHES[case.name]


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("name", TRIED)
@pytest.mark.parametrize("is_arranged", [True, False])
def test_a_pull_that_only_advances_a_watermark_reads_no_history(name, is_arranged, spark, tmp_path):
    case = case_of(QUERIES[name])
    runner = Runner(Tuned(spark, **QUICK), case, tmp_path, arranged=is_arranged)
    for pull in told_further(case.inputs)[:5]:
        runner.pull(pull)
    before = [path.name for path in runner.arrangement.glob("run-*")] if runner.arrangement else []
    with mock.patch.object(InputStream, "old", side_effect=AssertionError):
        assert runner.pull(Pull({}, {"a": "2024-02-01T00:00"})).lines == []
    assert ([path.name for path in runner.arrangement.glob("run-*")] if runner.arrangement else []) == before
