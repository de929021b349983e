"""The rows of the table "The watermark that comes out" in docs/engine.md, each with queries that it is about."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pytest
from support.engine_requests import Source, analyze_request
from support.query_cases import Case, Pull, instant, run_case

from odfpy.engine.contract import AnalyzeResponseSuccess
from odfpy.engine.spark import operations
from odfpy.engine.spark.describe import in_words
from odfpy.engine.spark.incremental.times import Least, Of

pytestmark = pytest.mark.spark

PAGE = Path(__file__).resolve().parents[2] / "docs" / "engine.md"
FIELDS = (pa.field("k", pa.string()), pa.field("v", pa.int32()))
A, B = "the watermark of `a`", "the watermark of `b`"
NEAR = "a.k = b.k AND b.event_time BETWEEN a.event_time AND a.event_time + INTERVAL 2 HOURS"
BY_HOUR = "SELECT window.start AS event_time, count(*) AS n FROM a GROUP BY window(event_time, '1 hour')"
FIRST_OPEN = f"just before the start of the first window that is open at {A}"

PROMISES = {
    "that of the input, unchanged": {
        "SELECT event_time, k FROM a WHERE v > 0": A,
        "SELECT DISTINCT event_time, k FROM a": A,
        "SELECT event_time, k FROM a EXCEPT SELECT event_time, k FROM b": f"the least of: {A}, {B}",
        "SELECT event_time, k FROM a UNION ALL SELECT event_time, k FROM b": f"the least of: {A}, {B}",
    },
    "`date_trunc(...)`, plus an interval, or any function that never decreases": {
        "SELECT date_trunc('day', event_time) AS event_time, k FROM a": f"just before `date_trunc('day', a.event_time)` at {A}",
        "SELECT DISTINCT event_time + INTERVAL 1 HOUR AS event_time, k FROM a": f"1 h after {A}",
        "SELECT to_date(event_time) AS event_time, count(*) AS n FROM a GROUP BY to_date(event_time)": (
            f"just before `to_date(a.event_time)` at {A}"
        ),
    },
    "the start of a window": {BY_HOUR: FIRST_OPEN},
    "the end of a window": {BY_HOUR.replace("start", "end"): A},
    "the left time of an interval join": {
        f"SELECT a.event_time, b.v FROM a JOIN b ON {NEAR}": f"the least of: {A}, 2 h before {B}",
        f"SELECT a.event_time, b.v FROM a, b WHERE {NEAR}": f"the least of: {A}, 2 h before {B}",
        f"SELECT a.event_time, b.v FROM a LEFT JOIN b ON {NEAR}": f"the least of: {A}, 2 h before {B}",
    },
    "the greatest or least time of a group, `max(event_time)`": {
        "SELECT max(event_time) AS event_time, k FROM a GROUP BY k, window(event_time, '1 hour')": FIRST_OPEN,
        "SELECT max(event_time) AS event_time, k FROM a GROUP BY k": None,
    },
    "the time that a window function orders by, and it looks back only": {
        "SELECT event_time, sum(v) OVER (PARTITION BY k ORDER BY event_time) AS s FROM a": A,
        "SELECT event_time, lead(v) OVER (PARTITION BY k ORDER BY event_time) AS s FROM a": None,
    },
    "anything else": {
        "SELECT a.event_time, b.v FROM a JOIN b ON a.k = b.k": None,
        "SELECT event_time, k FROM a ORDER BY v DESC, event_time LIMIT 2": None,
    },
}


def test_every_row_of_the_table_is_true(spark, tmp_path):
    rows = re.findall(r"^\| (.+?) \|", PAGE.read_text("utf-8").split("| event time of the output |")[1], re.MULTILINE)
    table = rows[: rows.index("anything else") + 1]
    assert table == list(PROMISES)
    sources = [Source(tmp_path, alias, FIELDS) for alias in "ab"]
    found = {}
    for query in (query for queries in PROMISES.values() for query in queries):
        used = [source for source in sources if source.alias == "a" or " b " in f"{query} "]
        made = operations.analyze(spark, analyze_request(query, *used))
        assert isinstance(made, AnalyzeResponseSuccess), made
        assert bool(made.notes) is (made.watermark is None)
        assert not any("not an input's event time" in note for note in made.notes), "of most of them it is"
        found[query] = made.watermark
    assert found == {query: says for queries in PROMISES.values() for query, says in queries.items()}


def test_the_least_of_what_is_the_least_is_said_once():
    found = Least((Least((Of(0), Of(1))), Of(2), Of(0)))
    assert in_words(found, "abc") == f"the least of: {A}, {B}, the watermark of `c`"


def test_what_is_said_in_words_is_what_comes_out(spark, tmp_path):
    query = "SELECT max(event_time) AS event_time, k FROM a GROUP BY k, window(event_time, '1 hour')"
    row = ("+A", instant("2024-01-01T01:20"), "x", 1)
    pulls = [Pull({"a": [row]}, {"a": "2024-01-01T01:30"}), Pull({"a": []}, {"a": "2024-01-01T02:30"})]
    made = run_case(spark, Case("late", "", [(None, query)], {"a": FIELDS}, {}, pulls), tmp_path)
    assert [(list(one.lines), one.reaches) for one in made] == [
        ([], "2024-01-01T00:59:59.999"),
        (["+A 2024-01-01T01:20 x"], "2024-01-01T01:59:59.999"),
    ]
