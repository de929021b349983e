"""The query run once as a judge of what an incremental run has made: it finds what is wrong, and what is closed.

A comparison takes about as long as a pull; with `ODF_LAWS` there are more of them. The corpus is compared, too.
"""

from __future__ import annotations

import json
import os
from dataclasses import replace

import pyarrow as pa
import pytest
from support.queries.batch_cases import Compared
from support.queries.cases import QUICK, Case, Pull, Tuned, parsed
from support.queries.stories import FIELDS, told
from support.queries.version_logs import LOGS

from odfpy.codec.tree import to_tree
from odfpy.data.vocabulary import OperationType
from odfpy.dataset.transform import TemporalTable
from odfpy.engine.spark.batch.approximate import ApproximateComparison
from odfpy.engine.spark.batch.job import compare
from odfpy.engine.spark.batch.request import Kind
from odfpy.engine.spark.batch.versions import OPEN, Entry, versions_of, with_commits
from odfpy.errors import InternalError

EXAMPLES = int(os.environ.get("ODF_LAWS", "0"))
DAYS = "SELECT window.start AS event_time, k, count(*) AS n, sum(v) AS s FROM a GROUP BY window(event_time, '1 day'), k"
FIRST_THREE = "SELECT event_time, k, v FROM a ORDER BY v LIMIT 3"
RUNNING = "SELECT event_time, k, v, sum(v) OVER (PARTITION BY k ORDER BY event_time, v) AS s FROM a"


@pytest.fixture
def compared(spark, tmp_path):
    """Runs a query over rows of `a`, one table a pull, each with the watermark after it."""

    def run(query, *pulls, fields=FIELDS, **options):
        steps = list(query.items()) if isinstance(query, dict) else [(None, query)]
        case = Case("batch", "", [(alias or None, text) for alias, text in steps], {"a": fields}, {}, ())
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        folder.mkdir()
        runner = Compared(Tuned(spark, **QUICK), case, folder, **options)
        for rows, watermark in pulls:
            lines = [parsed(f"{op} 2024-01-{rest}", fields) for op, rest in (row.split(maxsplit=1) for row in rows)]
            runner.pull(Pull({"a": lines}, {"a": f"2024-01-{watermark}:00"} if watermark else {}))
        return runner

    return run


FIRST = ["+A 01T01:00 x 1", "+A 01T05:00 y 2", "+A 02T05:00 x 5"]
"""Rows of two days."""


def shown(answer):
    """The differences as text, without the event times that all rows have."""
    found = []
    for one in answer.differences:
        rows = [json.loads(text) if text else None for text in (one.expected, one.found)]
        for row in rows:
            if row is not None:
                del row["event_time"]
        found.append((one.kind.value, *(" ".join(map(str, row.values())) if row else None for row in rows), one.count))
    return found


def judged(runner):
    """What the batch says: why it says nothing, and the differences."""
    answer = runner.compare()
    return answer.obstacle, shown(answer)


AGREES = (None, [])


# --- What it finds ---------------------------------------------------------------------------------------------------


@pytest.mark.spark
def test_rows_that_are_wrong_are_found_by_key(compared):
    made = compared(DAYS, (FIRST, "03T00"))
    right = made.compare()
    assert (right.is_equal, right.found, right.expected) == (True, 3, 3)

    def spoil(rows):
        rows[0]["s"] += 10  # x on the first day
        return [rows[0], *rows[2:], {**rows[2], "k": "z", "offset": 3}]

    made.spoil(spoil)
    found = made.compare()
    assert (found.missing, found.extra, found.differing) == (1, 1, 1)
    assert shown(found) == [
        ("differs", "x 1 1", "x 1 11", 1),
        ("missing", "y 1 2", None, 1),
        ("extra", None, "z 1 5", 1),
    ]
    assert json.loads(found.differences[0].key) == {"event_time": "2024-01-01T00:00:00Z", "k": "x"}
    assert found.differences[0].columns == ("s",)
    only_one = made.compare(most=1)
    assert (len(only_one.differences), only_one.missing, only_one.extra) == (1, 1, 1), "all are counted"


@pytest.mark.spark
def test_rows_without_a_key_are_compared_as_a_whole_and_as_often_as_they_are_there(compared):
    made = compared(RUNNING, (["+A 01T01:00 x 1", "+A 01T02:00 x 1", "+A 01T02:00 x 1"], "02T00"))
    assert made.compare().is_equal
    made.spoil(lambda rows: [rows[0], rows[0], rows[1], rows[2] | {"s": 7}])
    wrong = [("extra", None, "x 1 1", 1), ("missing", "x 1 3", None, 1), ("extra", None, "x 1 7", 1)]
    assert shown(made.compare()) == wrong


@pytest.mark.spark
def test_a_window_that_is_not_over_is_neither_missing_nor_too_early(compared):
    made = compared(DAYS, (FIRST, "02T06"))
    right = made.compare()
    assert (right.is_equal, right.expected) == (True, 2)
    made.spoil(lambda rows: [*rows, {**rows[0], "event_time": rows[0]["event_time"].replace(day=2), "offset": 2}])
    assert [one.kind for one in made.compare().differences] == [Kind.EXTRA], "given before its time"


@pytest.mark.spark
@pytest.mark.parametrize("hint", ["LATE(ignored)", "LATE(only)"])
def test_late_rows_count_as_the_query_wants_it(compared, hint):
    made = compared(
        DAYS.replace("SELECT", f"SELECT /*+ {hint} */"),
        (FIRST, "02T06"),
        (["+A 01T07:00 x 9", "+A 02T06:00 y 3", "+A 03T01:00 x 1"], "04T00"),
    )
    found = made.compare()
    assert (found.obstacle, shown(found), found.expected) == (None, [], 4 if hint == "LATE(ignored)" else 2)


@pytest.mark.spark
def test_late_rows_that_take_back_what_is_not_there_make_groups_uncertain(compared):
    late = ["-C 01T05:00 y 2", "+C 01T05:00 y 3"]
    made = compared(DAYS.replace("SELECT", "SELECT /*+ LATE(only) */"), (FIRST, "02T06"), (late, "04T00"))
    found = made.compare()
    assert (found.obstacle, found.taken_back) == (None, 1)


@pytest.mark.spark
def test_what_cannot_be_compared_is_said(compared):
    correctable = compared(DAYS.replace("SELECT", "SELECT /*+ CORRECTABLE('1d') */"), (FIRST, "03T00"))
    found = correctable.compare()
    assert "correctable for 1d" in found.obstacle
    assert found.is_equal, "nothing is said of rows"
    operations = compared("SELECT event_time, k, op AS o, offset AS at FROM a", (FIRST, "03T00"))
    assert "it shows `offset` and `op`" in operations.compare().obstacle
    star = compared("SELECT event_time, struct(*) AS s FROM a", (FIRST, "03T00"))
    assert "it shows `offset` and `op`" in star.compare().obstacle
    rows = compared("SELECT event_time, k FROM (SELECT * FROM a) WHERE v > 1", (FIRST, "03T00"))
    assert judged(rows) == AGREES, "columns that are passed on, and left out later, are not shown"
    assert "another query" in rows.compare(query_changed=True).obstacle


@pytest.mark.spark
@pytest.mark.parametrize("query", ["SELECT * FROM a", "SELECT a.*, v * 2 AS w FROM a WHERE v > 1", "TABLE a"])
def test_a_star_stands_for_the_data(compared, query):
    made = compared(query, (FIRST, "02T06"), (["-C 01T05:00 y 2", "+C 01T05:00 y 3"], "04T00"))
    assert judged(made) == AGREES


@pytest.mark.spark
def test_a_retraction_of_what_is_not_there_passes_row_by_row_and_makes_groups_uncertain(compared):
    never = ["-R 01T03:00 z 7", *FIRST]
    rows = compared("SELECT event_time, k, v FROM a", (never, "03T00"))
    found = rows.compare()
    assert (found.is_equal, found.expected, found.taken_back) == (True, 2, 0)
    assert compared("SELECT * FROM a", (never, "03T00")).compare().is_equal
    groups = compared("SELECT max(event_time) AS event_time, k, count(*) AS n FROM a GROUP BY k", (never, "03T00"))
    found = groups.compare()
    assert found.taken_back == 1
    assert "takes back 1 row" in found.remarks[0]


@pytest.mark.spark
def test_sums_of_fractions_are_the_same_in_any_order(compared):
    fields = (pa.field("k", pa.string()), pa.field("v", pa.float64()))
    rows = [f"+A 01T0{at % 9}:00 x {value}" for at, value in enumerate((0.1, 0.7, -0.3, 1e9, -1e9, 0.2, 0.6))]
    made = compared(DAYS, (rows, "02T00"), fields=fields)
    assert made.compare().is_equal
    made.spoil(lambda found: [found[0] | {"s": found[0]["s"] + 1e-3}])
    assert made.compare().differing == 1


@pytest.mark.spark
def test_a_sum_that_cancels_out_is_near_by_the_size_of_the_others(compared):
    fields = (pa.field("k", pa.string()), pa.field("v", pa.float64()))
    totals = "SELECT max(event_time) AS event_time, k, sum(v) AS s FROM a GROUP BY k"
    rows = ["+A 01T01:00 x 0.1", "+A 01T02:00 x 0.2", "+A 01T02:00 y 5.5"]
    made = compared(totals, (rows, None), (["+A 01T03:00 x -0.3"], None), fields=fields)
    assert made.compare().is_equal


@pytest.mark.spark
@pytest.mark.parametrize("query", [DAYS, FIRST_THREE, RUNNING] if EXAMPLES else [DAYS])
def test_whatever_happens_the_batch_agrees_after_every_pull(spark, tmp_path, query):
    case = Case("story", "", [(None, query)], {"a": FIELDS}, {}, ())
    runner = Compared(Tuned(spark, **QUICK), case, tmp_path)
    for pull in told("a"):
        runner.pull(pull)
        assert judged(runner) == AGREES


# --- What queries wait for, and which operators they have -------------------------------------------------------------

DAILY = "SELECT window.start AS event_time, count(*) AS n, sum(v) AS s FROM ({}) GROUP BY window(event_time, '1 day')"
WINDOWED = "SELECT window.start AS event_time, count(*) AS n FROM a GROUP BY window({})"
SESSIONS = "SELECT session_window.end AS event_time, k, count(*) AS n FROM a GROUP BY session_window({}, '8 hours'), k"
GROUPED = "SELECT {0} AS event_time, count(*) AS n FROM a GROUP BY {0}"
LAST_OF = "SELECT max(event_time) AS event_time, k, sum(v) AS v FROM a GROUP BY {}, k"
NEAR = "b.k = a.k AND b.event_time BETWEEN a.event_time AND a.event_time + INTERVAL {}"
PAIRS = "VALUES ('x', 1), ('y', 2), ('x', 3) AS t(x, y)"

EQUAL = {
    # Times that are computed
    "windows of an earlier time": WINDOWED.format("event_time - INTERVAL 3 DAYS, '1 day'"),
    "windows of a later time": WINDOWED.format("event_time + INTERVAL 1 DAY, '1 day'"),
    "sliding windows of a time that is truncated": WINDOWED.format("date_trunc('day', event_time), '6 hours', '2 hours'"),
    "windows of a time a month later": WINDOWED.format("event_time + INTERVAL 1 MONTH, '1 day'"),
    "windows of midnights a month later": WINDOWED.format("date_trunc('day', event_time) + INTERVAL 1 MONTH, '1 day'"),
    "sessions of an earlier time": SESSIONS.format("event_time - INTERVAL 1 DAY"),
    "sessions of a time that is truncated": SESSIONS.format("date_trunc('day', event_time)"),
    "sessions of a time a month later": SESSIONS.format("event_time + INTERVAL 1 MONTH"),
    "groups of a time a month later": GROUPED.format("date_trunc('hour', event_time + INTERVAL 1 MONTH)"),
    "groups by a unit that varies": GROUPED.format("date_trunc(if(event_time > to_date(event_time), 'day', 'hour'), event_time)"),
    "an interval of months": f"SELECT a.event_time, a.v, b.v AS w FROM a LEFT JOIN b ON {NEAR.format('1 MONTH')}",
    # The last time of a group, and windows of it
    "the last time of windows": DAILY.format(LAST_OF.format("window(event_time, '2 hours')")),
    "the last time of windows of another time": DAILY.format(LAST_OF.format("window(event_time - INTERVAL 1 DAY, '2 hours')")),
    "the last time of an hour": DAILY.format(LAST_OF.format("date_trunc('hour', event_time)")),
    "the last time of a group with a later name": DAILY.format(LAST_OF.format("date_trunc('hour', event_time + INTERVAL 1 HOUR)")),
    # Constants
    "constants among rows": DAILY.format("SELECT event_time, v FROM a UNION ALL SELECT timestamp'2024-01-01 01:00', 1 "
    "UNION ALL SELECT timestamp'2024-01-02 10:00', 2"),
    "constants beside rows": DAILY.format(f"SELECT event_time, y AS v FROM a JOIN {PAIRS} ON a.k = t.x"),
    "a range that stays": DAILY.format("SELECT coalesce(event_time, timestamp'2024-01-01') AS event_time, v FROM range(3) r "
    "LEFT JOIN a ON r.id < a.v"),
    "constants that are looked at together": DAILY.format(f"SELECT event_time, v FROM a JOIN (SELECT DISTINCT x FROM {PAIRS}) t ON a.k = t.x"),
    "constants in NOT IN": DAILY.format("SELECT event_time, v FROM a WHERE v NOT IN (SELECT id FROM range(2, 9))"),
    "constants in EXCEPT": DAILY.format("SELECT event_time, v FROM a EXCEPT SELECT timestamp'2024-01-01 20:00', 0"),
    "constants of a step": {
        "c": f"SELECT x, y FROM {PAIRS}",
        "": DAILY.format("SELECT event_time, y AS v FROM a JOIN c ON a.k = c.x"),
    },
    "constants beside results": DAILY.format("SELECT event_time, y AS v FROM (SELECT window.end AS event_time, k FROM a "
    f"GROUP BY window(event_time, '1 hour'), k) w JOIN {PAIRS} ON w.k = t.x"),
    # Order
    "ORDER BY in a subquery": DAILY.format("SELECT * FROM a ORDER BY v"),
    "DISTRIBUTE BY in a subquery": DAILY.format("SELECT * FROM a DISTRIBUTE BY k SORT BY v"),
    "LIMIT above an ordered subquery": "SELECT event_time, v FROM (SELECT event_time, v FROM a ORDER BY v DESC) LIMIT 2",
    # Subqueries
    "EXISTS beside another condition": DAILY.format(f"SELECT * FROM a WHERE v = 0 OR EXISTS (SELECT * FROM b WHERE {NEAR.format('2 HOURS')})"),
    "NOT EXISTS beside another condition": "SELECT event_time, v FROM a WHERE v = 0 OR NOT EXISTS (SELECT * FROM b WHERE b.k = a.k)",
    "a subquery of one row": "SELECT event_time, (SELECT DISTINCT b.k FROM b WHERE b.k = a.k) AS c FROM a",
    "a subquery of constants": DAILY.format("SELECT event_time, (SELECT y FROM VALUES ('x', 1) AS t(x, y) WHERE x = a.k) AS v FROM a"),
    "LATERAL of expressions": DAILY.format("SELECT event_time, w AS v FROM a, LATERAL (SELECT a.v + 1 AS w)"),
    "LATERAL with an aggregate": "SELECT a.event_time, a.k, w FROM a, LATERAL (SELECT max(b.v) AS w FROM b WHERE b.k = a.k)",
    "LATERAL with the first row": "SELECT a.event_time, a.v, w FROM a, LATERAL (SELECT b.v AS w, b.event_time AS t FROM b "
    "WHERE b.k = a.k ORDER BY w DESC, t LIMIT 1)",
    "LATERAL with a window function": "SELECT a.event_time, y, n FROM a, "
    f"LATERAL (SELECT y, count(*) OVER () AS n FROM {PAIRS} WHERE x = a.k)",
    "LATERAL over sessions": {
        "s": SESSIONS.format("event_time"),
        "": "SELECT a.event_time, a.v, w FROM a, LATERAL (SELECT sum(n) AS w FROM s WHERE s.k = a.k)",
    },
}  # fmt: skip
"""The days and sessions of the story are open after its second pull and closed after its third."""
TRIED = dict.fromkeys([*list(EQUAL)[::4], "LATERAL with an aggregate", "LATERAL over sessions"])


@pytest.mark.slow_after(2)
@pytest.mark.spark
@pytest.mark.parametrize("name", EQUAL if EXAMPLES else TRIED)
def test_the_batch_waits_for_what_the_engine_waits_for(spark, tmp_path, name):
    steps = EQUAL[name] if isinstance(EQUAL[name], dict) else {"": EQUAL[name]}
    inputs = "ab" if any(" b " in text for text in steps.values()) else "a"
    case = Case(
        name, "", [(alias or None, text) for alias, text in steps.items()], dict.fromkeys(inputs, FIELDS), {}, ()
    )
    runner = Compared(Tuned(spark, **QUICK), case, tmp_path)
    for pull in told(inputs):
        runner.pull(pull)
        assert judged(runner) == AGREES


@pytest.mark.spark
def test_hours_of_a_time_that_is_a_millisecond_earlier_are_over_as_soon_as_they_can_be(compared):
    """Nothing comes at or before 13:00, so that what comes is at or after 13:00 when it is a millisecond earlier."""
    earlier = "SELECT event_time - INTERVAL '0.001' SECOND AS t FROM a"
    query = f"SELECT date_trunc('hour', t) AS event_time, count(*) AS n FROM ({earlier}) GROUP BY date_trunc('hour', t)"
    made = compared(query, (["+A 01T12:30 x 1"], "01T13:00"))
    found = made.compare()
    assert (found.obstacle, shown(found), found.expected) == (None, [], 1)


# --- Temporal tables -------------------------------------------------------------------------------------------------

AS_OF = "f.k = r.k AND f.event_time >= r.valid_from AND f.event_time < r.valid_to"
RATES = {
    "inner": f"SELECT f.event_time, f.k, f.v, r.v AS rate FROM a f JOIN b r ON {AS_OF}",
    "outer": f"SELECT f.event_time, f.k, f.v, r.v AS rate FROM a f LEFT JOIN b r ON {AS_OF}",
    "unused versions": "SELECT valid_from AS event_time, k, v FROM b r "
    f"WHERE NOT EXISTS (SELECT * FROM a f WHERE {AS_OF})",
    "EXISTS beside another condition": f"SELECT f.event_time, f.v FROM a f WHERE f.v = 0 OR EXISTS (SELECT * FROM b r WHERE {AS_OF})",
    "unused versions beside others": "SELECT valid_from AS event_time, k, v FROM b r "
    f"WHERE v = 2 OR NOT EXISTS (SELECT * FROM a f WHERE {AS_OF})",
    "subquery": f"SELECT f.event_time, f.v, (SELECT r.v FROM b r WHERE {AS_OF}) AS rate FROM a f",
    "windows": "SELECT window.start AS event_time, sum(rate * v) AS s FROM (SELECT f.event_time, f.v, r.v AS rate FROM a f, b r "
    f"WHERE {AS_OF}) GROUP BY window(event_time, '6 hours')",
}


@pytest.mark.slow_after(1)
@pytest.mark.spark
@pytest.mark.parametrize("name", RATES if EXAMPLES else ["outer", "unused versions beside others", "windows"])
def test_rows_wait_for_the_versions_of_their_time(spark, tmp_path, name):
    case = Case("rates", "", [(None, RATES[name])], {"a": FIELDS, "b": FIELDS}, {}, ())
    runner = Compared(Tuned(spark, **QUICK), case, tmp_path, temporal=[TemporalTable("b", ("k",))])
    for number, pull in enumerate(told("ab")):
        runner.pull(pull)
        if number == 2 or EXAMPLES:
            assert judged(runner) == AGREES


@pytest.mark.slow
@pytest.mark.spark
def test_versions_of_a_step_are_those_of_its_changelog_or_of_its_result(spark, tmp_path):
    """Row by row a step has a changelog, in which a retraction ends a version; a GROUP BY has a result only.

    Constants have no changelog: beside rows they change nothing of theirs, among rows there is no more than a result.
    """
    for name, step in {
        "row by row": "SELECT event_time, k, v FROM b WHERE v > 0 DISTRIBUTE BY k",
        "beside constants": "SELECT event_time, k || y AS k, v FROM b JOIN VALUES (1, ''), (2, 'a'), (3, '') AS t(x, y) ON b.v = t.x",
        "constants among rows": "SELECT event_time, k, v FROM b UNION ALL SELECT timestamp'2024-01-01 01:00', 'x', 9",
        "grouped": "SELECT window.end AS event_time, k, max(v) AS v FROM b GROUP BY window(event_time, '2 hours'), k",
    }.items():
        steps = [("c", step), (None, RATES["inner"].replace("b r", "c r"))]
        case = Case(name, "", steps, {"a": FIELDS, "b": FIELDS}, {}, ())
        folder = tmp_path / name
        folder.mkdir()
        runner = Compared(Tuned(spark, **QUICK), case, folder, temporal=[TemporalTable("c", ("k",))])
        for pull in told("ab"):
            runner.pull(pull)
        assert judged(runner) == AGREES


@pytest.mark.parametrize("story", LOGS)
def test_what_the_rows_of_a_changelog_do_to_versions(story):
    commits, wanted = LOGS[story]
    milli, day = 1_000, 86_400_000_000
    rows = [(row.split(), system) for system, commit in enumerate(commits) for row in commit]
    gained = [
        max((int(w[1]) for w, s in rows if s == system and w[0] in ("+A", "+C")), default=None)
        for system in range(len(commits))
    ]
    known = with_commits([(system, None if latest is None else latest * day) for system, latest in enumerate(gained)])
    entries = {}
    for offset, ((op, when, key, value), system) in enumerate(rows):
        kind = next(one for one in OperationType if one.symbol == op)
        entry = Entry((when, key, value), int(when) * day, kind, system, (0, offset), known[system])
        entries.setdefault(key, []).append(entry)

    def text(time):
        return "open" if time == OPEN else f"{time // day}{'+' if time % day == milli else ''}"

    found = [
        f"{key} {data[2]} {text(begin)}-{text(end)}"
        for key, log in entries.items()
        for data, begin, end in versions_of(log)
    ]
    assert sorted(found) == sorted(wanted)


# --- Parts of it -----------------------------------------------------------------------------------------------------


def test_fractions_are_near_by_their_size_or_by_that_of_their_column():
    schema = pa.schema([("k", pa.string()), ("v", pa.float64()), ("l", pa.list_(pa.float64())), ("f", pa.float32())])
    nearness = ApproximateComparison(schema, [None, 1e6, None, None])
    row = ("x", 0.1 + 0.2, [1.0, float("nan")], 0.1)
    assert nearness.differing(row, ("x", 0.3, [1.0 + 1e-12, float("nan")], 0.1 + 1e-8)) == []
    assert nearness.differing(row, ("y", 0.31, [1.0], 0.11)) == [0, 1, 2, 3]
    assert nearness.differing(("x", 0.0, None, None), ("x", 1e-7, None, None)) == [], "the rest of a sum of millions"
    assert nearness.differing(("x", None, None, None), ("x", 0.0, None, None)) == [1]


@pytest.mark.spark
def test_a_process_that_has_loaded_what_it_checks_gives_no_answer(compared):
    import odfpy.engine.spark.incremental  # noqa: F401

    request = compared(DAYS, (FIRST, "03T00")).request()
    with pytest.raises(InternalError, match=r"loaded what it is to check: odfpy\.engine\.spark\."):
        compare(None, json.dumps(to_tree(replace(request, most=1))))
