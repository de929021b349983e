"""Rows that outer joins make, pull by pull: their partners come, go and come back, and the answer is that of SQL.

A run of all tests tries one random query; `ODF_LAWS=200` that many.
"""

from __future__ import annotations

import os
from random import Random

import pyarrow as pa
import pytest
from support.engine.requests import Source, analyze_request
from support.queries.cases import QUICK, Case, Pull, Runner, Tuned, parsed
from support.queries.oracle import Oracle, state_of
from support.queries.random_joins import Joins, random_pulls

from odfpy.engine.spark.execution import operations

pytestmark = pytest.mark.spark

EXAMPLES = int(os.environ.get("ODF_LAWS", "0"))
FIELDS = (pa.field("k", pa.int32()), pa.field("j", pa.int32()))
SHOWN = "m.event_time, m.k, m.j, n.j AS nj, o.k AS ok, o.j AS oj"
BY_WHAT_MAY_BE_MISSING = "m LEFT JOIN n ON m.k = n.k AND coalesce(m.j, 0) = coalesce(n.j, 0)"
IN_6_HOURS = "n.event_time BETWEEN m.event_time AND m.event_time + INTERVAL 6 HOURS"
LATER_PARTNER = [
    {"m": "+A 00 1 5", "n": "+A 00 9 9", "o": "+A 00 9 9"},
    {"m": "+A 00 9 8", "n": "+A 00 8 8", "o": "+A 00 1 -"},
    {"n": "+A 00 1 5", "o": "+A 00 1 5"},
]
"""Row (1, 5) of `m` gets a partner where `n` has none; then `n` has one, too."""

STORIES = {
    "what a missing row has is another value than the key": (
        f"SELECT {SHOWN} FROM {BY_WHAT_MAY_BE_MISSING} LEFT JOIN o ON m.k = o.k AND coalesce(n.j, 0) = coalesce(o.j, 0)",
        LATER_PARTNER,
    ),
    "NULL of a missing row equals NULL": (
        f"SELECT {SHOWN} FROM m LEFT JOIN n ON m.k = n.k AND m.j = n.j LEFT JOIN o ON m.k = o.k AND n.j <=> o.j",
        LATER_PARTNER[:2],
    ),
    "EXISTS beside other conditions remembers partners": (
        f"SELECT m.event_time, m.k, m.j, EXISTS (SELECT 1 FROM n WHERE m.k = n.k AND {IN_6_HOURS}) AS e FROM m",
        [{"m": "+A 10 1 5", "n": "+A 10 1 0", "watermarks": "12"}, {"n": "+A 13 1 0", "watermarks": "13"}],
    ),
}


@pytest.mark.parametrize("name", STORIES)
def test_every_pull_gives_what_sql_says(name, spark, tmp_path):
    query, story = STORIES[name]
    pulls = [
        Pull(
            {alias: [_row(line[alias])] if alias in line else [] for alias in "mno"},
            dict.fromkeys("mno", f"2024-01-01T{line['watermarks']}:00") if "watermarks" in line else {},
        )
        for line in story
    ]
    compare(spark, tmp_path, query, pulls)


@pytest.mark.parametrize("seed", range(EXAMPLES or 1))
def test_every_pull_of_random_joins_gives_what_sql_says(seed, spark, tmp_path):
    dice = Random(seed)
    compare(spark, tmp_path, Joins(dice).query(), random_pulls(dice))


def compare(spark, folder, query, pulls):
    """What a query emits amounts to what plain Spark answers, after each pull."""
    inputs = tuple(pulls[0].rows)
    case = Case("outer joins", "", [(None, query)], dict.fromkeys(inputs, FIELDS), {}, pulls)
    runner, oracle = Runner(Tuned(spark, **QUICK), case, folder), Oracle(Tuned(spark, **QUICK), folder)
    emitted, arrived = [], {alias: [] for alias in inputs}
    for pull in pulls:
        emitted += runner.pull(pull).rows
        for alias, rows in pull.rows.items():
            arrived[alias] += rows
        assert state_of(emitted) == oracle.answer(case, arrived, {}), query


def _row(line: str) -> tuple[object, ...]:
    op, hour, *values = line.split()
    return parsed(" ".join([op, f"2024-01-01T{hour}:00", *values]), FIELDS)


KEYS = {
    "SELECT x.k, y.k AS yk FROM (SELECT k FROM m GROUP BY k) x FULL JOIN (SELECT k FROM n GROUP BY k) y ON x.k = y.k": None,
    "SELECT x.k, y.k AS yk FROM (SELECT k FROM m GROUP BY k) x JOIN (SELECT k FROM n GROUP BY k) y ON x.k <=> y.k": (
        "k",
    ),
    "SELECT x.k, EXISTS (SELECT 1 FROM n WHERE n.k = x.k) AS e FROM (SELECT k FROM m GROUP BY k) x": ("k",),
    "SELECT i, count(*) AS c FROM (SELECT row_number() OVER (PARTITION BY k ORDER BY j) AS i FROM m UNION ALL SELECT j FROM n) "
    "GROUP BY i HAVING i <= 1": ("i",),
}
"""What rows are known by: a full join makes a row of NULLs for either side; a number of one part of UNION is any in another."""


def test_the_key_of_the_output_is_one(spark, tmp_path):
    sources = [Source(tmp_path, alias, FIELDS) for alias in "mn"]
    found = {}
    for query in KEYS:
        request = analyze_request(f"SELECT timestamp'2024-01-01' AS event_time, * FROM ({query})", *sources)
        found[query] = operations.analyze(spark, request).primary_key
    assert found == KEYS


def test_the_time_of_a_partner_that_may_be_missing_has_no_watermark(spark, tmp_path):
    query = f"SELECT (SELECT n.event_time FROM n WHERE m.k = n.k AND {IN_6_HOURS}) AS event_time, m.k FROM m"
    made = operations.analyze(spark, analyze_request(query, *(Source(tmp_path, alias, FIELDS) for alias in "mn")))
    assert made.watermark is None
