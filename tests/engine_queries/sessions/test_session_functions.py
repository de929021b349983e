"""Functions over session windows, beside sessions that are made in Python, row by row.

The rows of a session that Spark makes are sessions by themselves until then, so that a function may see a part of them:
Spark itself counts values twice in `count(DISTINCT v), count(DISTINCT w)`. So plain Spark is no judge here.

A run of all tests tries one history of a few combinations; `ODF_LAWS=50` so many of each.
"""

from __future__ import annotations

import os
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.engine.requests import Source
from support.queries.cases import INTERPRETED, QUICK, Case, Pull, Runner, Tuned, answer_of, parsed
from support.queries.histories import START
from support.queries.oracle import net, state_of
from support.queries.stories import FIELDS

pytestmark = pytest.mark.spark

EXAMPLES = int(os.environ.get("ODF_LAWS", "0"))
MANY = {**INTERPRETED, "spark__sql__shuffle__partitions": "3"}
LAST = "2024-02-01T00:00"


@dataclass(frozen=True)
class Session:
    """A session of one key: its rows' values, and its times."""

    start: datetime
    end: datetime
    values: Sequence[int]

    def different(self, one: Callable[[int], int] = lambda value: value) -> int:
        return len({one(value) for value in self.values})


def sessions_of(rows: Iterable[tuple[datetime, str | None, int]], gap: Callable[[int], timedelta]) -> list[Session]:
    """Sessions of the rows (time, key, value), and how long a row lasts by its value."""
    found = []
    for _, of_key in groupby(sorted(rows, key=lambda row: (row[1] or "", row[0])), key=lambda row: row[1]):
        begin, end, values = None, None, []
        for time, _, value in of_key:
            if end is not None and time > end:
                found.append(Session(begin, end, values))
                end = None
            if end is None:
                begin, end, values = time, time, []
            end = max(end, time + gap(value))
            values.append(value)
        found.append(Session(begin, end, values))
    return found


FUNCTIONS: dict[str, Callable[[Session], object]] = {
    "count(*)": lambda one: len(one.values),
    "sum(v / 4D)": lambda one: sum(one.values) / 4,
    "sum(if(v = 1, 1e-20, v / 4D))": lambda one: (
        sum(value for value in one.values if value != 1) / 4 or 1e-20 * one.values.count(1)
    ),
    "avg(v / 4D)": lambda one: sum(one.values) / 4 / len(one.values),
    "sum(DISTINCT v / 4D)": lambda one: sum(set(one.values)) / 4,
    "sum(CAST(v AS DECIMAL(38, 0)))": lambda one: Decimal(sum(one.values)),
    "stddev_pop(v)": lambda one: statistics.pstdev(one.values),
    "sum(v)": lambda one: sum(one.values),
    "max(v / 4D)": lambda one: max(one.values) / 4,
    "percentile(v, 0.5)": lambda one: statistics.median(one.values) + 0.0,
    "count(DISTINCT v)": Session.different,
    "count(DISTINCT v % 2)": lambda one: one.different(lambda value: value % 2),
    "count(DISTINCT v) FILTER (WHERE v > 1)": lambda one: len({value for value in one.values if value > 1}),
    "min(session_window.end) - INTERVAL 1 HOUR": lambda one: one.end - timedelta(hours=1),
    "count(DISTINCT session_window.start)": lambda _: 1,
}
GAPS = {
    "'3 hours'": lambda _: timedelta(hours=3),
    "CASE v WHEN 1 THEN '6 hours' WHEN 2 THEN '30 minutes' ELSE '2 hours' END": lambda value: timedelta(
        hours={1: 6, 2: 0.5}.get(value, 2)
    ),
}
COMBINATIONS = [
    ("sum(v / 4D)", "count(DISTINCT v)"),
    ("avg(v / 4D)", "sum(CAST(v AS DECIMAL(38, 0)))", "count(*)"),
    ("count(DISTINCT v)", "count(DISTINCT v % 2)", "sum(v)"),
    ("sum(DISTINCT v / 4D)", "stddev_pop(v)", "percentile(v, 0.5)"),
    ("min(session_window.end) - INTERVAL 1 HOUR", "sum(if(v = 1, 1e-20, v / 4D))", "max(v / 4D)"),
    ("count(DISTINCT session_window.start)", "count(DISTINCT v) FILTER (WHERE v > 1)"),
]


def query_of(functions: Sequence[str], gap: str) -> str:
    columns = ", ".join(f"{text} AS f{at}" for at, text in enumerate(functions))
    return (
        f"SELECT session_window.end AS event_time, session_window.start AS since, {columns} "
        f"FROM a GROUP BY k, session_window(event_time, {gap})"
    )


def right_of(functions: Sequence[str], gap: str, rows: Iterable[tuple]) -> dict[str, int]:
    sessions = sessions_of(rows, GAPS[gap])
    return dict(state_of(("+A", one.end, one.start, *(FUNCTIONS[text](one) for text in functions)) for one in sessions))


def derived(spark, query: str, pulls: Sequence[Pull], folder: Path, **options) -> dict[str, int]:
    folder.mkdir(exist_ok=True)
    runner = Runner(spark, Case("sessions", "", [(None, query)], {"a": FIELDS}, {}, ()), folder, **options)
    made = [runner.pull(pull) for pull in [*pulls, Pull({}, {"a": LAST})]]
    return dict(state_of(row for one in made for row in one.rows))


def answered(spark, query: str, rows: Iterable[tuple], folder: Path) -> dict[str, int]:
    folder.mkdir(exist_ok=True)
    source = Source(folder, "a", FIELDS).add([("+A", *row) for row in rows])
    return dict(state_of(("+A", *row.values()) for row in answer_of(spark, query, source, folder / "out")))


def compare(spark, functions: Sequence[str], gap: str, pulls: Sequence[Pull]) -> None:
    query = query_of(functions, gap)
    rows = list(net(row for pull in pulls for row in pull.rows["a"]).elements())
    right = right_of(functions, gap, rows)
    with TemporaryDirectory() as few, TemporaryDirectory() as many, TemporaryDirectory() as sql:
        assert derived(Tuned(spark, **QUICK), query, pulls, Path(few)) == right
        if EXAMPLES:
            assert derived(Tuned(spark, **MANY), query, pulls, Path(many), rows_in_one_task=1) == right
        if rows:
            assert answered(Tuned(spark, **MANY), query, rows, Path(sql)) == right


rows_of_one_pull = st.lists(
    st.tuples(
        st.just("+A"),
        st.integers(0, 20).map(lambda hours: START + timedelta(hours=hours)),
        st.sampled_from(["x", "y", None]),
        st.integers(0, 3),
    ),
    max_size=8,
)
histories = st.lists(rows_of_one_pull.map(lambda rows: Pull({"a": rows}, {})), min_size=1, max_size=3)
TOLD = [
    Pull({"a": [parsed(f"+A 2024-01-01T{line}", FIELDS) for line in lines]}, {"a": f"2024-01-01T{mark}"})
    for lines, mark in (
        (["00:00 x 1", "02:00 x 2", "04:00 x 1", "01:00 y 1", "02:00 y 1"], "03:00"),
        (
            ["05:00 x 1", "12:00 x 3", "12:00 - 1", "14:00 - 2", "16:00 - 1", "15:00 x 3", "18:00 x 1", "04:30 y 2"],
            "14:00",
        ),
    )
]


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("functions", COMBINATIONS, ids=" and ".join)
def test_functions_see_whole_sessions(functions, spark):
    gap = list(GAPS)[COMBINATIONS.index(functions) % len(GAPS)]
    compare(spark, functions, gap, TOLD)


def test_any_functions_see_whole_sessions_in_any_history(spark):
    @settings(max_examples=EXAMPLES or 1, suppress_health_check=list(HealthCheck), deadline=None)
    @given(
        st.lists(st.sampled_from(list(FUNCTIONS)), min_size=1, max_size=5, unique=True),
        st.sampled_from(list(GAPS)),
        histories,
    )
    def tried(functions, gap, pulls):
        compare(spark, functions, gap, pulls)

    tried()


@pytest.mark.parametrize(
    ("function", "numbers"), [("count(*)", (2, 1, 2, 3, 5)), ("count(DISTINCT v)", (1, 1, 1, 2, 2))]
)
def test_rollup_gives_totals_beside_sessions(function, numbers, spark, tmp_path):
    lines = ["00:00 x 1", "02:00 x 1", "09:00 x 2", "01:00 y 1", "02:00 y 1"]
    rows = [parsed(f"+A 2024-01-01T{line}", FIELDS)[1:] for line in lines]
    query = (
        f"SELECT max(event_time) AS event_time, session_window.start AS since, k, {function} AS n "
        "FROM a GROUP BY ROLLUP (k, session_window(event_time, '3 hours'))"
    )
    groups = ("02:00 00:00 x", "09:00 09:00 x", "02:00 01:00 y", "09:00 - x", "09:00 - -", "02:00 - y")
    right = {
        " ".join(f"2024-01-01T{one}" if ":" in one else one for one in f"{group} {number}".split()): 1
        for group, number in zip(groups, (*numbers, numbers[2]), strict=True)
    }
    made = derived(Tuned(spark, **QUICK), query, [Pull({"a": [("+A", *row) for row in rows]}, {})], tmp_path / "made")
    assert made == answered(Tuned(spark, **QUICK), query, rows, tmp_path / "asked") == right
