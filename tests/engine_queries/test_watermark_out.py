"""The rows of the table "The watermark that comes out" in docs/engine.md, each with queries that it is about."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from support.engine.requests import Source, analyze_request
from support.queries.cases import QUICK, Case, Pull, Tuned, instant, run_case

from odfpy.engine.contract import AnalyzeResponseSuccess
from odfpy.engine.spark.execution import operations
from odfpy.engine.spark.execution.describe import in_words
from odfpy.engine.spark.plan.times import Clock, LeastOf, ShiftedBy, SourceWatermark, check_advance
from odfpy.errors import InternalError

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
    "`date_trunc(...)`, plus an interval, or any non-decreasing function": {
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
    found = LeastOf((LeastOf((SourceWatermark(0), SourceWatermark(1))), SourceWatermark(2), SourceWatermark(0)))
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


# --- Functions that decrease ------------------------------------------------------------------------------------------

MONTH_LATER = (
    "date_trunc('hour', event_time + INTERVAL 1 MONTH)",
    "date_trunc('hour', event_time - INTERVAL 1 MONTH)",
    "date_trunc('hour', event_time + make_interval(0, 1))",
    "date_trunc('hour', timestampadd(MONTH, 1, event_time))",
)
GROUPED = [f"SELECT {later} AS event_time, count(*) AS n FROM a GROUP BY {later}" for later in MONTH_LATER]
GROUPED.append(
    "SELECT window.start AS event_time, count(*) AS n FROM a GROUP BY window(event_time + INTERVAL 1 MONTH, '1 hour')"
)
END_OF_JANUARY = [
    (["2023-01-30T12:10", "2023-01-30T13:30"], "2023-01-30T13:30"),
    (["2023-01-31T12:20"], "2023-01-31T12:20"),
    (["2023-03-30T12:40", "2023-03-31T12:20"], "2023-03-31T12:20"),
    (["2023-05-05T00:00"], "2023-05-05T00:00"),
]


def pulled(spark, folder, query, story, fields=FIELDS):
    """What each pull gives: lines, watermark. Rows of a story are times; a watermark comes with them."""
    pulls = [Pull({"a": [("+A", instant(time), "x", 1) for time in times]}, {"a": mark}) for times, mark in story]
    made = run_case(Tuned(spark, **QUICK), Case("story", "", [(None, query)], {"a": fields}, {}, pulls), folder)
    return [([*one.lines], one.reaches) for one in made]


@pytest.mark.parametrize("query", GROUPED)
def test_a_group_of_times_a_month_later_is_there_once_at_the_end_of_months_too(spark, tmp_path, query):
    state = Counter()
    for lines, reaches in pulled(spark, tmp_path, query, END_OF_JANUARY):
        assert reaches is None
        for line in lines:
            operation, *row = line.split()
            state[tuple(row)] += {"+A": 1, "+C": 1, "-C": -1, "-R": -1}[operation]
    there = [row for row, times in state.items() if times]
    assert all(state[row] == 1 for row in there)
    assert len({time for time, _ in there}) == len(there)
    assert sum(int(n) for _, n in there) == sum(len(times) for times, _ in END_OF_JANUARY)


@pytest.mark.parametrize(
    "query",
    [
        *GROUPED,
        "SELECT event_time + INTERVAL 1 MONTH AS event_time, k FROM a",
        "SELECT DISTINCT event_time + INTERVAL 1 MONTH AS event_time, k FROM a",
        "SELECT window.start AS event_time, count(*) AS n FROM a GROUP BY window(event_time + INTERVAL 1 MONTH, '2 hours', '1 hour')",
        "SELECT session_window.end AS event_time, k FROM a GROUP BY session_window(event_time + INTERVAL 1 MONTH, '2 hours'), k",
        "SELECT window.end AS event_time FROM a GROUP BY window(timestamp_seconds(-unix_seconds(event_time)), '1 hour')",
    ],
)
def test_of_a_time_that_may_decrease_no_watermark_is_known(spark, tmp_path, query):
    made = operations.analyze(spark, analyze_request(query, Source(tmp_path, "a", FIELDS)))
    assert isinstance(made, AnalyzeResponseSuccess), made
    assert made.watermark is None
    assert any("The watermark will not advance" in note for note in made.notes)


def test_a_window_waits_for_the_time_that_it_is_made_of(spark, tmp_path):
    query = "SELECT window.start AS event_time, count(*) AS n FROM a GROUP BY window(event_time - INTERVAL 30 DAYS, '1 hour')"
    story = [
        (["2024-03-01T10:10"], "2024-03-01T10:10"),
        (["2024-03-01T10:40"], "2024-03-01T10:40"),
        (["2024-03-01T11:05"], "2024-03-01T11:05"),
    ]
    assert pulled(spark, tmp_path, query, story) == [
        ([], "2024-01-31T09:59:59.999"),
        ([], "2024-01-31T09:59:59.999"),
        (["+A 2024-01-31T10:00 2"], "2024-01-31T10:59:59.999"),
    ]


def test_windows_of_times_that_are_cut_off_wait_until_none_of_them_comes(spark, tmp_path):
    query = "SELECT window.start AS event_time, count(*) AS n FROM a GROUP BY window(date_trunc('day', event_time), '2 hours', '1 hour')"
    story = [
        (["2024-03-01T10:10"], "2024-03-01T10:10"),
        (["2024-03-01T23:40"], "2024-03-01T23:40"),
        (["2024-03-02T01:05"], "2024-03-02T01:05"),
    ]
    assert pulled(spark, tmp_path, query, story) == [
        ([], "2024-02-29T22:59:59.999"),
        ([], "2024-02-29T22:59:59.999"),
        (["+A 2024-02-29T23:00 2", "+A 2024-03-01T00:00 2"], "2024-03-01T22:59:59.999"),
    ]


def test_a_session_waits_for_the_time_that_it_is_made_of(spark, tmp_path):
    query = (
        "SELECT session_window.end AS event_time, count(*) AS n FROM a "
        "GROUP BY session_window(event_time - INTERVAL 1 DAY, '1 hour')"
    )
    story = [
        (["2024-03-02T10:00"], "2024-03-02T10:00"),
        (["2024-03-02T10:40"], "2024-03-02T10:40"),
        (["2024-03-02T12:00"], "2024-03-02T12:00"),
    ]
    assert pulled(spark, tmp_path, query, story) == [
        ([], "2024-03-01T10:00"),
        ([], "2024-03-01T10:40"),
        (["+A 2024-03-01T11:40 2"], "2024-03-01T12:00"),
    ]


@pytest.mark.parametrize(
    "group", ["last_day(event_time)", "date_trunc('day', event_time + INTERVAL 30 DAYS)", "event_time + INTERVAL 1 DAY"]
)
def test_the_greatest_time_of_a_group_that_is_known_by_a_later_time_has_no_watermark(spark, tmp_path, group):
    query = f"SELECT max(event_time) AS event_time, count(*) AS n FROM a GROUP BY {group}"
    story = [(["2024-03-10T00:00"], "2024-03-10T00:00"), (["2024-04-20T00:00"], "2024-04-20T00:00")]
    assert {reaches for _, reaches in pulled(spark, tmp_path, query, story)} == {None}


def test_the_last_watermark_that_there_is_can_be_reached_and_passed(spark, tmp_path):
    later = "SELECT event_time + INTERVAL 1 DAY AS event_time, k FROM a"
    story = [(["2024-03-01T10:00"], "2024-03-01T10:00"), ([], "9999-12-31T23:59:59.999")]
    for number, query in enumerate((later, later.replace("SELECT", "SELECT DISTINCT"))):
        folder = tmp_path / str(number)
        folder.mkdir()
        made = pulled(spark, folder, query, story)
        assert [lines for lines, _ in made] == [["+A 2024-03-02T10:00 x"], []]
        assert made[-1][1] == "9999-12-31T23:59:59.999"


def test_a_watermark_that_would_go_back_is_a_fault_of_the_engine():
    was, now = Clock(None, [20_000_000]), Clock(None, [30_000_000])
    check_advance([SourceWatermark(0), ShiftedBy(SourceWatermark(0), 5)], was, now)
    check_advance([SourceWatermark(0)], now, was)  # a source that has been made anew
    with pytest.raises(InternalError, match="from 1970-01-01T00:00:20Z to 1970-01-01T00:00:10Z"):
        check_advance([_Falling()], was, now)


class _Falling:
    """A function that decreases."""

    def at(self, clock):
        return 40_000_000 - clock.watermarks[0]
