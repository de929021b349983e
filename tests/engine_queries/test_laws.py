"""The laws of queries with state, over random inputs (ADR 0013, "Streams and states").

Whatever arrives, in whatever cuts: the state of the output is what plain Spark says of the state of the inputs, as far
as the watermarks have closed it, also where the input is such an output itself; only what is there is retracted; what
comes in time gives nothing before the output's watermark; and neither lost checkpoints nor another machine make a
difference. A run of all tests tries a few queries on one history that has it all; `ODF_LAWS=200` all of them on 200
random ones, too.
"""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import replace
from datetime import datetime, timezone
from itertools import accumulate
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st
from support.queries.cases import QUICK, Case, Pull, Runner, Tuned, instant
from support.queries.histories import histories
from support.queries.oracle import Oracle, state_of
from support.queries.stories import FIELDS, told

pytestmark = pytest.mark.spark

EXAMPLES = int(os.environ.get("ODF_LAWS", "0"))


def query(name, text, closed=None, inputs="a", **more):
    """A query over `a`, or `a` and `b`, which are alike."""
    steps = list(text.items()) if isinstance(text, dict) else [(None, text)]
    steps = [(alias or None, query) for alias, query in steps]
    return Case(name, "", steps, dict.fromkeys(inputs, FIELDS), closed or {}, (), **more)


WINDOWS = (
    "SELECT window.start AS event_time, k, count(*) AS n, sum(v) AS s FROM a GROUP BY window(event_time, '6 hours'), k"
)
IN_6_HOURS = "b.event_time >= a.event_time AND b.event_time <= a.event_time + INTERVAL 6 HOURS"

QUERIES = [
    query("windows", WINDOWS, {"result": "event_time + interval 6 hours <= :a"}),
    query(
        "sliding windows",
        "SELECT window.end AS event_time, max(v) AS m, min(k) AS k FROM a GROUP BY window(event_time, '6 hours', '3 hours')",
        {"result": "event_time <= :a"},
    ),
    query(
        "sessions",
        "SELECT session_window.end AS event_time, session_window.start AS since, k, count(*) AS n FROM a "
        "GROUP BY session_window(event_time, '3 hours'), k",
        {"result": "event_time <= :a"},
    ),
    query("groups", "SELECT k, max(event_time) AS event_time, sum(v) AS s, count(DISTINCT v) AS n FROM a GROUP BY k"),
    query("distinct", "SELECT DISTINCT date_trunc('day', event_time) AS event_time, k FROM a"),
    query(
        "top-2",
        "SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY k ORDER BY v DESC, event_time) AS n FROM a) WHERE n <= 2",
    ),
    query("running sum", "SELECT event_time, k, v, sum(v) OVER (PARTITION BY k ORDER BY event_time, v) AS s FROM a"),
    query(
        "windows, running sum",
        f"SELECT event_time, k, s, sum(s) OVER (PARTITION BY k ORDER BY event_time) AS t FROM ({WINDOWS})",
        {"a": "date_trunc('day', event_time) + make_interval(0, 0, 0, 0, 6 + 6 * int(hour(event_time) / 6)) <= :a"},
    ),
    query(
        "windows, top-1",
        {
            "w": WINDOWS,
            "": "SELECT event_time, k, s FROM w QUALIFY row_number() OVER (PARTITION BY event_time ORDER BY s DESC, k) = 1",
        },
        {"w": "event_time + interval 6 hours <= :a"},
    ),
    query(
        "interval join",
        f"SELECT a.event_time, a.k, a.v, b.v AS w FROM a JOIN b ON a.k = b.k AND {IN_6_HOURS}",
        inputs="ab",
    ),
    query(
        "interval left join",
        f"SELECT a.event_time, a.k, a.v, b.v AS w FROM a LEFT JOIN b ON a.k = b.k AND {IN_6_HOURS}",
        {"result": "w IS NOT NULL OR event_time + interval 6 hours <= :b"},
        "ab",
    ),
    query(
        "interval full join",
        f"SELECT coalesce(a.event_time, b.event_time) AS event_time, a.v AS v, b.v AS w FROM a FULL JOIN b ON a.k = b.k AND {IN_6_HOURS}",
        {
            "result": "(v IS NOT NULL AND w IS NOT NULL) OR (w IS NULL AND event_time + interval 6 hours <= :b) "
            "OR (v IS NULL AND event_time <= :a)"
        },
        "ab",
    ),
    query(
        "interval anti join",
        f"SELECT event_time, k, v FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE a.k = b.k AND {IN_6_HOURS})",
        {"result": "event_time + interval 6 hours <= :b"},
        "ab",
    ),
    query(
        "join, windows",
        "SELECT window.start AS event_time, count(*) AS n, sum(w) AS s FROM "
        f"(SELECT a.event_time, b.v AS w FROM a JOIN b ON a.k = b.k AND {IN_6_HOURS}) GROUP BY window(event_time, '6 hours')",
        {"result": "event_time + interval 6 hours <= least(:a, :b - interval 6 hours)"},
        "ab",
    ),
    query(
        "full join",
        "SELECT coalesce(a.event_time, b.event_time) AS event_time, a.v, b.v AS w FROM a FULL JOIN b ON a.k = b.k",
        inputs="ab",
    ),
    query("except", "SELECT event_time, k FROM a EXCEPT SELECT event_time, k FROM b", inputs="ab"),
    query("intersect all", "SELECT event_time, k FROM a INTERSECT ALL SELECT event_time, k FROM b", inputs="ab"),
    query("not in", "SELECT event_time, k, v FROM a WHERE v NOT IN (SELECT v FROM b)", inputs="ab"),
    query("first three", "SELECT event_time, k, v FROM a ORDER BY v DESC, event_time LIMIT 3"),
    query(
        "days, HAVING",
        "SELECT to_date(event_time) AS event_time, k, count(DISTINCT v) AS n FROM a GROUP BY to_date(event_time), k HAVING count(*) > 1",
        {"result": "event_time + interval 1 day <= :a"},
    ),
    query(
        "windows of times that may be null",
        "SELECT window.start AS event_time, count(*) AS n FROM a GROUP BY window(if(v = 0, null, event_time), '6 hours')",
    ),
    query(
        "windows of a union",
        "SELECT window.start AS event_time, k, count(*) AS n FROM (SELECT * FROM a UNION ALL SELECT * FROM b) "
        "GROUP BY window(event_time, '6 hours'), k",
        {"result": "event_time + interval 6 hours <= :watermark"},
        "ab",
    ),
    query(
        "ranks and neighbours",
        "SELECT event_time, k, v, rank() OVER w AS r, dense_rank() OVER w AS d, lag(v) OVER u AS g, lead(v, 2) OVER u AS h, "
        "count(*) OVER (PARTITION BY k ORDER BY event_time RANGE BETWEEN INTERVAL 3 HOURS PRECEDING AND CURRENT ROW) AS c "
        "FROM a WINDOW w AS (PARTITION BY k ORDER BY event_time), u AS (PARTITION BY k ORDER BY event_time, v)",
    ),
    query(
        "interval self join",
        f"SELECT a.event_time, a.k, b.v FROM a JOIN a AS b ON a.k <=> b.k AND {IN_6_HOURS} AND b.v < a.v",
    ),
    query(
        "null-safe join", "SELECT a.event_time, a.k, b.v FROM a LEFT JOIN b ON a.k <=> b.k AND a.v = b.v", inputs="ab"
    ),
    query(
        "interval semi join",
        f"SELECT event_time, k, v FROM a WHERE EXISTS (SELECT 1 FROM b WHERE a.k = b.k AND {IN_6_HOURS})",
        inputs="ab",
    ),
    query(
        "steps, joined",
        {
            "x": WINDOWS,
            "y": WINDOWS.replace("FROM a", "FROM b"),
            "": "SELECT x.event_time, x.k, x.s - y.s AS d FROM x JOIN y ON x.k <=> y.k AND x.event_time = y.event_time",
        },
        {"x": "event_time + interval 6 hours <= :a", "y": "event_time + interval 6 hours <= :b"},
        "ab",
    ),
]
# Plain Spark may give other last digits, or other rows among equal ones; the bits are the same everywhere.
IN_BITS = [
    query(
        "statistics",
        "SELECT max(event_time) AS event_time, k, sum(v / 3D) AS s, avg(v / 7D) AS a, stddev(v / 7D) AS d, skewness(v / 3D) AS e, "
        "corr(v, v / 3D) AS c, percentile(v / 3D, 0.3D) AS p, median(v) AS m, sort_array(collect_list(v / 3D)) AS l "
        "FROM a GROUP BY k",
    ),
    query(
        "ties",
        "SELECT event_time, k, v, row_number() OVER (PARTITION BY k ORDER BY v) AS n, first_value(event_time) OVER (PARTITION BY k ORDER BY v) AS f, "
        "lag(event_time) OVER (PARTITION BY k ORDER BY v) AS g, avg(v / 7D) OVER (PARTITION BY k ORDER BY v) AS a FROM a",
    ),
    query("first of equal ones", "SELECT event_time, k, v FROM a ORDER BY v LIMIT 3"),
]
# Their outputs are like the inputs of the others.
DERIVED = [
    query(
        "windows",
        "SELECT window.end AS event_time, k, cast(sum(v) AS int) AS v FROM a GROUP BY window(event_time, '6 hours'), k",
    ),
    query("groups", "SELECT max(event_time) AS event_time, k, cast(sum(v) AS int) AS v FROM a GROUP BY k"),
    query(
        "sessions",
        "SELECT session_window.start AS event_time, k, cast(count(*) AS int) AS v FROM a GROUP BY session_window(event_time, '3 hours'), k",
    ),
    query(
        "top-2",
        "SELECT event_time, k, v FROM (SELECT *, row_number() OVER (PARTITION BY k ORDER BY v DESC, event_time) AS n FROM a) WHERE n <= 2",
    ),
    query(
        "interval left join",
        f"SELECT a.event_time, a.k, b.v FROM a LEFT JOIN b ON a.k = b.k AND {IN_6_HOURS}",
        inputs="ab",
    ),
    query("except", "SELECT * FROM a EXCEPT ALL SELECT * FROM b", inputs="ab"),
]


def run(spark, case, pulls, after):
    """All pulls; `after` gets the runner's rows so far after each of them."""
    with TemporaryDirectory() as folder:
        runner = Runner(Tuned(spark, **QUICK), case, Path(folder), arranged=True)
        oracle = Oracle(Tuned(spark, **QUICK), Path(folder))
        for number, pull in enumerate(pulls):
            after(number, runner.pull(pull), oracle)


BY_NAME = {case.name: case for case in QUERIES}
TRIED = QUERIES if EXAMPLES else [BY_NAME[name] for name in ("windows, running sum", "interval left join")]
laws = settings(
    max_examples=EXAMPLES or 1,
    phases=tuple(Phase) if EXAMPLES else (Phase.explicit,),
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.parametrize("case", TRIED, ids=lambda case: case.name)
def test_the_state_of_the_output_is_the_batch_answer(case, spark):
    @laws
    @given(histories(tuple(case.inputs)))
    @example(told(case.inputs))
    def law(pulls):
        found = replace(case, pulls=pulls)
        emitted, given_rows = [], {alias: [] for alias in case.inputs}

        def after(number, made, oracle):
            emitted.extend(made.rows)
            for alias, rows in pulls[number].rows.items():
                given_rows[alias] += rows
            assert state_of(emitted) == oracle.answer(found, given_rows, found.watermarks(number + 1))

        run(spark, found, pulls, after)

    law()


@pytest.mark.parametrize("case", TRIED if EXAMPLES else TRIED[:1], ids=lambda case: case.name)
def test_what_comes_in_time_gives_nothing_before_the_watermark(case, spark):
    @laws
    @given(histories(tuple(case.inputs), in_time=True))
    @example(told(case.inputs, in_time=True))
    def law(pulls):
        reached = [None]

        def after(_, made, __):
            if reached[0] is not None:
                assert all(_time(row[1]) > instant(reached[0]) for row in made.rows), (made.lines, reached)
            assert reached[0] is None or (made.reaches is not None and made.reaches >= reached[0])
            reached[0] = made.reaches

        run(spark, replace(case, pulls=pulls), pulls, after)

    law()


def _time(value):
    return value if isinstance(value, datetime) else datetime(value.year, value.month, value.day, tzinfo=timezone.utc)


APPENDING = ("windows", "sliding windows", "interval join", "interval left join", "windows of a union", "join, windows")


@pytest.mark.parametrize("name", APPENDING if EXAMPLES else APPENDING[:1])
def test_rows_that_are_only_appended_are_the_same_rows_in_any_cut(name, spark):
    case = BY_NAME[name]

    @laws
    @given(histories(tuple(case.inputs), in_time=True))
    @example(told(case.inputs, in_time=True))
    def law(pulls):
        def rows_in(cuts):
            rows = Counter()
            run(spark, replace(case, pulls=cuts), cuts, lambda _, made, __: rows.update(made.lines))
            return rows

        whole = Pull(
            {alias: [row for pull in pulls for row in pull.rows[alias]] for alias in case.inputs}, pulls[-1].watermarks
        )
        assert rows_in(pulls) == rows_in([whole])

    law()


@pytest.mark.parametrize("case", [*QUERIES, *IN_BITS] if EXAMPLES else IN_BITS[:1], ids=lambda case: case.name)
def test_another_machine_without_some_checkpoints_gives_the_same_bits(case, spark):
    other = {**QUICK, "spark__sql__shuffle__partitions": "3", "spark__sql__autoBroadcastJoinThreshold": "-1"}
    split = {"spark__sql__files__maxPartitionBytes": "400", "spark__sql__files__openCostInBytes": "0"}

    @laws
    @given(histories(tuple(case.inputs)), st.lists(st.booleans(), min_size=4, max_size=4))
    @example(told(case.inputs), [False, False, True, False])
    def law(pulls, lost):
        with TemporaryDirectory() as one, TemporaryDirectory() as two:
            here = Runner(Tuned(spark, **QUICK), case, Path(one))
            there = Runner(Tuned(spark, **other, **split), case, Path(two), {"row_group_size": 2}, rows_in_one_task=1)
            for pull, is_lost in zip(pulls, lost, strict=False):
                if is_lost:
                    there.checkpoint = None
                assert there.pull(pull) == here.pull(pull)

    law()


@pytest.mark.parametrize("first", DERIVED if EXAMPLES else DERIVED[:1], ids=lambda case: case.name)
def test_a_derivative_of_a_derivative_is_the_batch_answer_over_what_the_first_one_stands_for(first, spark):
    of_one = [case for case in QUERIES if list(case.inputs) == ["a"]]

    @laws
    @given(histories(tuple(first.inputs)), st.sampled_from(of_one))
    @example(told(first.inputs), BY_NAME["running sum"])
    def law(pulls, second):
        below, between = replace(first, pulls=pulls), []
        run(spark, below, pulls, lambda _, made, __: between.append(made))
        reached = list(accumulate((made.reaches for made in between), lambda one, other: max(one or "", other or "")))
        chained = [
            Pull({"a": made.rows}, {"a": mark} if mark else {}) for made, mark in zip(between, reached, strict=True)
        ]
        emitted, given_rows, found = [], {"a": []}, replace(second, pulls=chained)

        def after(number, made, oracle):
            emitted.extend(made.rows)
            given_rows["a"] += chained[number].rows["a"]
            assert state_of(emitted) == oracle.answer(found, given_rows, found.watermarks(number + 1))

        run(spark, found, chained, after)

    law()
