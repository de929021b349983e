"""What becomes of late rows by the hints of a query: corrected, ignored or alone; how long windows are correctable.

The oracle is plain Spark, to which the hints are comments, over the entries of the changelog that count: which these
are is found out here in Python, entry by entry.
"""

from __future__ import annotations

import os
import random
import re
from collections import Counter
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st
from support.engine.requests import Source, analyze_request, rows_of, success, transform_request
from support.queries.cases import INTERPRETED, Case, Pull, Runner, Tuned, instant, shown
from support.queries.oracle import Oracle, state_of
from support.queries.stories import FIELDS, told

from odfpy.dataset.transform import TemporalTable
from odfpy.engine.contract import TransformResponseInvalidQuery
from odfpy.engine.datafusion.engine import DataFusionEngine
from odfpy.engine.spark.analysis.hints import without_hints
from odfpy.engine.spark.execution import operations
from odfpy.engine.spark.plan.catalyst import Catalyst

pytestmark = pytest.mark.spark

EXAMPLES = int(os.environ.get("ODF_LAWS", "0"))
START = datetime(2024, 1, 1, tzinfo=timezone.utc)
LENGTH = timedelta(hours=5)
WINDOW = timedelta(hours=6)

WINDOWS = "window.start AS event_time, k, count(*) AS n, sum(v) AS s FROM a GROUP BY window(event_time, '6 hours'), k"
JOINED = "a.event_time, a.k, a.v, b.v AS w FROM a LEFT JOIN b ON a.k = b.k"
CLOSED = {"result": "event_time + interval 6 hours <= :a"}


def on_time(_, entry, known):
    return known is None or entry[1] > known


def late_in_a(alias, entry, known):
    return alias == "b" or not on_time(alias, entry, known)


def still_correctable(_, entry, known):
    begin = START + (entry[1] - START) // WINDOW * WINDOW
    return known is None or begin + WINDOW > known - LENGTH


def query(text, counts, closed=None, inputs="a"):
    return pytest.param(Case("late", "", [(None, text)], dict.fromkeys(inputs, FIELDS), closed or {}, ()), counts)


QUERIES = [
    query(f"SELECT /*+ LATE(ignored) */ {WINDOWS}", on_time, CLOSED),
    query(f"SELECT /*+ LATE(only, a) */ {JOINED}", late_in_a, inputs="ab"),
    query(f"SELECT /*+ CORRECTABLE('5h') */ {WINDOWS}", still_correctable, CLOSED),
]


@st.composite
def histories(draw, inputs):
    """Blocks of rows, corrections and retractions of rows that are there, in any order; and watermarks."""
    there = {alias: [] for alias in inputs}
    marks = dict.fromkeys(inputs, -1)
    blocks = []
    for _ in range(draw(st.integers(2, 4))):
        arrived = {alias: [] for alias in inputs}
        for alias in inputs:
            for _ in range(draw(st.integers(0, 5))):
                row = (
                    START + timedelta(hours=draw(st.integers(0, 24))),
                    draw(st.sampled_from(["x", "y", None])),
                    draw(st.integers(0, 2)),
                )
                what = draw(st.sampled_from(["+A", "+A", "-R", "+C"])) if there[alias] else "+A"
                if what != "+A":
                    old = there[alias].pop(draw(st.integers(0, len(there[alias]) - 1)))
                    arrived[alias].append(("-C" if what == "+C" else "-R", *old))
                if what != "-R":
                    arrived[alias].append((what, *row))
                    there[alias].append(row)
            marks[alias] += draw(st.integers(0, 12))
        known = {
            alias: (START + timedelta(hours=mark)).strftime("%Y-%m-%dT%H:%M")
            for alias, mark in marks.items()
            if mark >= 0
        }
        blocks.append(Pull(arrived, known))
    return blocks


def counted(blocks, counts):
    """The entries that count, of each input, after each block."""
    rows, known = {}, {}
    for block in blocks:
        for alias, entries in block.rows.items():
            mark = instant(known[alias]) if alias in known else None
            rows[alias] = rows.get(alias, []) + [entry for entry in entries if counts(alias, entry, mark)]
        known |= block.watermarks
        yield dict(rows)


laws = settings(
    max_examples=EXAMPLES or 1,
    phases=tuple(Phase) if EXAMPLES else (Phase.explicit,),
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(("case", "counts"), QUERIES)
def test_what_counts_is_the_same_in_any_cut_from_checkpoints_and_from_history(case, counts, spark):
    @laws
    @given(histories(tuple(case.inputs)))
    @example(told(case.inputs))
    def law(blocks):
        found = replace(case, pulls=blocks)
        with TemporaryDirectory() as folder:
            kept, lost, whole = (
                Runner(Tuned(spark, spark__sql__shuffle__partitions=count, **INTERPRETED), found, _new(folder, name))
                for name, count in (("kept", 1), ("lost", 3), ("whole", 1))
            )
            oracle = Oracle(Tuned(spark, spark__sql__shuffle__partitions=1, **INTERPRETED), Path(folder))
            emitted = []
            for number, (block, rows) in enumerate(zip(blocks, counted(blocks, counts), strict=True), start=1):
                made = kept.pull(block)
                emitted += made.rows
                lost.checkpoint = None
                assert lost.pull(block).logical_hash == made.logical_hash
                whole.arrive(block)
                assert state_of(emitted) == oracle.answer(found, rows, found.watermarks(number))
            assert state_of(whole.run().rows) == state_of(emitted)

    law()


def test_what_is_ignored_and_what_is_picked_out_are_together_what_came(spark):
    @laws
    @given(histories("a"))
    @example(told("a"))
    def law(blocks):
        with TemporaryDirectory() as folder:
            runners = {
                kind: Runner(Tuned(spark, **INTERPRETED), rows_by(kind), _new(folder, kind))
                for kind in ("corrected", "ignored", "only")
            }
            states = {kind: Counter() for kind in runners}
            for block in blocks:
                for kind, runner in runners.items():
                    states[kind].update(state_of(runner.pull(block).rows))
            together = states["ignored"].copy()
            together.update(states["only"])
            assert _net(together) == _net(states["corrected"])

    law()


def rows_by(kind):
    text = f"SELECT /*+ LATE({kind}) */ event_time, v + 1 AS v FROM a WHERE k IS NOT NULL"
    return Case(kind, "", [(None, text)], {"a": FIELDS}, {}, ())


def _net(counts):
    return {line: count for line, count in counts.items() if count}


def _new(folder, name):
    made = Path(folder) / name
    made.mkdir()
    return made


# --- Examples -------------------------------------------------------------------------------------------------------


def pulled(spark, folder, text, rows, known, **more):
    """What a query makes of a block of rows that comes when the input has a watermark."""
    source = Source(folder, "a", FIELDS).add(rows, known)
    return operations.transform(
        Tuned(spark, **INTERPRETED), transform_request(folder, text, source.input(watermark=known), **more)
    )


ROWS = [
    ("+A", "2024-01-02T00:00:00Z", "early", 1),
    ("-C", "2024-01-02T00:00:00Z", "early", 1),
    ("+C", "2024-01-02T00:00:00.001Z", "moved", 2),
    ("+A", "2024-01-01T00:00:00Z", "late", 3),
    ("-R", "2024-01-01T12:00:00Z", "gone", 4),
]
KNOWN = "2024-01-02T00:00:00Z"


@pytest.mark.parametrize(
    ("hint", "rows", "ignored"),
    [
        ("", ["+A early", "-C early", "+C moved", "+A late", "-R gone"], 0),
        ("/*+ LATE(corrected) */", ["+A early", "-C early", "+C moved", "+A late", "-R gone"], 0),
        ("/*+ LATE(ignored) */", ["+A moved"], 4),
        ("/*+ late('ignored', `a`) */", ["+A moved"], 4),
        ("/*+ LATE(only) */", ["+A early", "-R early", "+A late", "-R gone"], 0),
    ],
)
def test_what_is_late_by_an_event_time_at_or_before_the_watermark(spark, tmp_path, hint, rows, ignored):
    made = success(pulled(spark, tmp_path, f"SELECT {hint} event_time, k FROM a", ROWS, KNOWN))
    assert [f"{op} {k}" for op, k in rows_of(made, "k")] == rows
    assert (made.late_rows, made.ignored_rows) == (2, ignored)


def test_what_comes_before_there_is_a_watermark_is_not_late(spark, tmp_path):
    made = success(pulled(spark, tmp_path, "SELECT /*+ LATE(ignored) */ event_time, k FROM a", ROWS, None))
    assert len(rows_of(made)) == 5
    assert (made.late_rows, made.ignored_rows) == (0, 0)


def test_what_comes_too_late_for_a_window_is_counted(spark, tmp_path):
    made = success(pulled(spark, tmp_path, f"SELECT /*+ CORRECTABLE('2h') */ {WINDOWS}", ROWS, "2024-01-02T06:00:00Z"))
    assert (made.late_rows, made.ignored_rows) == (3, 2)
    made = success(pulled(spark, _new(tmp_path, "b"), f"SELECT {WINDOWS}", ROWS, "2024-01-02T06:00:00Z"))
    assert (made.late_rows, made.ignored_rows) == (3, 0)


@pytest.mark.parametrize(
    ("group", "ends", "ignored"),
    [
        ("to_date(event_time)", {"2024-01-01": 2}, 1),
        ("window(event_time, '1 day', '12 hours').end", {"2024-01-01T12:00": 1, "2024-01-02T00:00": 2}, 2),
        ("session_window(event_time, '12 hours').end", {"2024-01-01T18:00": 1}, 2),
    ],
)
def test_dates_sliding_windows_and_sessions_are_correctable_for_some_time(spark, tmp_path, group, ends, ignored):
    text = f"SELECT /*+ CORRECTABLE('1d') */ {group} AS event_time, count(*) AS n FROM a GROUP BY {group.removesuffix('.end')}"
    source = Source(tmp_path, "a", FIELDS)
    source.add([("+A", "2024-01-01T06:00:00Z", "x", 1)])
    source.add([("+A", "2024-01-01T06:00:00Z", "x", 2)], "2024-01-02T20:00:00Z")
    source.add([("+A", "2024-01-01T06:00:00Z", "x", 3)], "2024-01-04T00:00:00Z")
    request = transform_request(tmp_path, text, source.input(watermark="2024-01-04T00:00:00Z"))
    made = success(operations.transform(Tuned(spark, **INTERPRETED), request))
    assert (made.late_rows, made.ignored_rows) == (2, ignored)
    assert {shown(time): n for _, time, n in rows_of(made, "event_time", "n")} == ends


def test_many_blocks_of_different_sizes(spark, tmp_path):
    dice = random.Random(0)
    source, wanted, number, known = Source(tmp_path, "a", FIELDS), [], 0, START
    for _ in range(24):
        rows = []
        for _ in range(dice.choice((1, 2, 3, 40))):
            rows.append(("+A", START + timedelta(minutes=dice.randrange(600)), "x", number))
            wanted += [number] if rows[-1][1] > known else []
            number += 1
        source.add(rows, f"{known:%Y-%m-%dT%H:%M:%SZ}")
        known += timedelta(minutes=dice.randrange(30))
    text = "SELECT /*+ LATE(ignored) */ event_time, v FROM a"
    request = transform_request(tmp_path, text, source.input())
    made = success(operations.transform(Tuned(spark, **INTERPRETED), request))
    assert [v for _, v in rows_of(made, "v")] == wanted
    assert made.late_rows == made.ignored_rows == number - len(wanted) > 0


@pytest.mark.parametrize(("hint", "rate"), [("", 9), ("/*+ LATE(ignored, b) */", 1)])
def test_a_version_of_a_temporal_table_that_comes_late(spark, tmp_path, hint, rate):
    facts = Source(tmp_path, "a", FIELDS).add([("+A", "2024-01-02T12:00:00Z", "x", 5)])
    versions = Source(tmp_path, "b", FIELDS).add([("+A", "2024-01-01T00:00:00Z", "x", 1)])
    versions.add([("+A", "2024-01-02T00:00:00Z", "x", 9)], "2024-01-03T00:00:00Z")
    known = "2024-01-04T00:00:00Z"
    request = transform_request(
        tmp_path,
        f"SELECT {hint} a.event_time, b.v AS rate FROM a JOIN b"
        " ON a.k = b.k AND a.event_time >= b.valid_from AND a.event_time < b.valid_to",
        *(source.input(watermark=known) for source in (facts, versions)),
    )
    transform = replace(request.transform, temporal_tables=(TemporalTable("b", ("k",)),))
    made = operations.transform(Tuned(spark, **INTERPRETED), replace(request, transform=transform))
    assert rows_of(made, "rate") == [("+A", rate)]


@pytest.mark.parametrize(
    ("text", "words", "place"),
    [
        ("SELECT /*+ LATE(dropped) */ * FROM a", "cannot be `dropped`", "line 1, column 8"),
        ("SELECT /*+ LATE() */ * FROM a", "", ""),
        ("SELECT /*+ LATE(ignored, b) */ * FROM a", "names `b`, which is not an input", "line 1, column 8"),
        (
            "SELECT /*+ LATE(ignored) */ * FROM a WHERE v IN (SELECT /*+ LATE(only) */ v FROM a)",
            "both `ignored` and `only`",
            "column 57",
        ),
        (f"SELECT /*+ CORRECTABLE(7) */ {WINDOWS}", "takes one duration", "column 8"),
        (f"SELECT /*+ CORRECTABLE('7 days') */ {WINDOWS}", "takes one duration", "column 8"),
        (f"SELECT /*+ CORRECTABLE('7d'), CORRECTABLE('8d') */ {WINDOWS}", "both 1w and 1w1d", "column 8"),
        ("SELECT /*+ CORRECTABLE('7d') */ event_time FROM a", "no step groups rows of an input", ""),
        (
            "SELECT /*+ CORRECTABLE('7d') */ k, max(event_time) AS event_time FROM a GROUP BY k",
            "no step groups rows of an input",
            "",
        ),
        ("SELECT /*+ LATE */ * FROM a", "LATE has no kind of late rows", "column 8"),
        ("SELECT /*+ BROADCAST(a) */ * FROM a", "Hints such as BROADCAST are not allowed", "column 8"),
    ],
)
def test_wrong_hints(spark, tmp_path, text, words, place):
    made = operations.analyze(spark, analyze_request(text, Source(tmp_path, "a", FIELDS)))
    assert isinstance(made, TransformResponseInvalidQuery)
    assert words in made.message
    assert place in made.message
    assert made.hint


def test_hints_are_taken_out_before_spark_sees_them_and_all_else_stays_in_its_place(spark):
    text = "WITH x AS (SELECT /*+ LATE(ignored),\n b */ k FROM a) SELECT /*+ CORRECTABLE('7d') */ '/*+ LATE */' FROM x"
    found = without_hints(Catalyst(spark.newSession()), text)
    assert (len(found), found.count("\n")) == (len(text), 1)
    assert " ".join(found.split()) == "WITH x AS (SELECT k FROM a) SELECT '/*+ LATE */' FROM x"


def test_a_misspelt_hint_is_known_for_what_it_was_to_be(spark, tmp_path):
    source = Source(tmp_path, "a", FIELDS)
    made = operations.analyze(spark, analyze_request(f"SELECT /*+ LAET(ignored) */ {WINDOWS}", source))
    assert "Did you mean LATE?" in made.hint


@pytest.mark.parametrize(
    ("hints", "words"),
    [
        ("", "corrected"),
        ("/*+ LATE(ignored) */", "ignored"),
        ("/*+ late(Ignored) */", "ignored"),
        ("/*+ LATE(ignored, b) */", "corrected: `a`; ignored: `b`"),
        ("/*+ CORRECTABLE('7d') */", "corrected; windows are correctable until the watermark is 1w past their end"),
    ],
)
def test_the_analysis_says_what_becomes_of_late_rows(spark, tmp_path, hints, words):
    text = f"SELECT {hints} window.end AS event_time, count(*) AS n FROM (SELECT * FROM a UNION ALL SELECT * FROM b) GROUP BY window(event_time, '1 day')"
    sources = [Source(tmp_path, alias, FIELDS) for alias in "ab"]
    made = operations.analyze(spark, analyze_request(text, *sources))
    assert made.late == words
    assert any("corrections and retractions" in note for note in made.notes) == ("ignored" in words)


def test_datafusion_counts_late_rows_and_has_no_hints(tmp_path):
    source = Source(tmp_path, "a", FIELDS).add(ROWS, KNOWN)
    request = transform_request(tmp_path, "select event_time, k from a", source.input(), engine="datafusion")
    made = success(DataFusionEngine().transform(request))
    assert (made.late_rows, made.ignored_rows) == (2, 0)
    text = "select /*+ LATE(ignored) */ event_time, k, '/*+ LATE(only) */' as t from a"
    refused = DataFusionEngine().analyze(analyze_request(text, source, engine="datafusion"))
    assert isinstance(refused, TransformResponseInvalidQuery)
    assert re.search(r"LATE is not for engine datafusion \(line 1, column 8\)", refused.message)
    said = DataFusionEngine().analyze(analyze_request(text.replace("/*+ LATE(ignored) */", ""), source))
    assert said.late == "passed on"
