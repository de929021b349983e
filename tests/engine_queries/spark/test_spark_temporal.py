"""Temporal tables: versions of a changelog, joins as of the time of a row, late rows and corrections.

Times are days of January 2024; rows are written as they would stand in a table: operation, day, then the columns.
"""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.chains.workspaces import feed, root, workspace_with
from support.engine.plans import needless_loops, plans_run, windows_over_everything
from support.engine.requests import Source, analyze_request, rows_of, success, transform_request
from support.engine.spark_here import in_place
from support.queries.cases import QUICK, Tuned
from support.queries.version_logs import LOGS

from odfpy.chain.encoding import load_snapshots
from odfpy.coordinator.workspace import Workspace
from odfpy.data.timestamp import Timestamp
from odfpy.data.vocabulary import OperationType
from odfpy.dataset.transform import TemporalTable
from odfpy.engine.contract import (
    AnalyzeResponseSuccess,
    TransformResponseInvalidQuery,
    TransformResponseNeedsHistory,
)
from odfpy.engine.spark.execution import operations

pytestmark = pytest.mark.spark

EXAMPLES = int(os.environ.get("ODF_LAWS", "1"))
EPOCH = datetime(2023, 12, 31, tzinfo=timezone.utc)
OPEN = datetime(9999, 12, 31, 23, 59, 59, 999000, timezone.utc)

RATES = (pa.field("cur", pa.string()), pa.field("rate", pa.int32()))
FACTS = (pa.field("id", pa.int32()), pa.field("cur", pa.string()))
TAXES = (pa.field("land", pa.string()), pa.field("tax", pa.int32()))

AS_OF = "f.event_time >= r.valid_from AND f.event_time < r.valid_to"
JOIN = f"SELECT f.event_time, f.id, r.rate FROM facts f JOIN rates r ON f.cur = r.cur AND {AS_OF}"
LEFT = JOIN.replace("JOIN", "LEFT JOIN")
FULL = LEFT.replace("LEFT", "FULL").replace("f.event_time", "coalesce(f.event_time, r.valid_from) AS event_time", 1)
UNUSED = (
    "SELECT valid_from AS event_time, rate FROM rates r "
    f"WHERE NOT EXISTS (SELECT * FROM facts f WHERE f.cur = r.cur AND {AS_OF})"
)
LISTED = JOIN.replace("JOIN", ",").replace("ON", "WHERE")


def day(number: float) -> datetime:
    return EPOCH + timedelta(days=number)


def days(moment: datetime) -> str:
    """A time as the number of its day."""
    if moment == OPEN:
        return "open"
    since = moment - EPOCH
    return f"{since / timedelta(days=1):g}" if since % timedelta(minutes=1) == timedelta() else f"{since.days}+"


def line(row: tuple[Any, ...]) -> str:
    shown = (days(value) if isinstance(value, datetime) else "-" if value is None else str(value) for value in row[1:])
    return " ".join([row[0], *shown])


@dataclass
class Story:
    """A transform over inputs that grow, commit by commit, run pull by pull as the coordinator does."""

    spark: Any
    folder: Path
    query: Any
    temporal: tuple[TemporalTable, ...]
    columns: dict[str, tuple[pa.Field, ...]]
    known: dict[str, float] = field(default_factory=dict)
    rows_in_one_task: int = 1_000_000

    def __post_init__(self) -> None:
        self.sources = {alias: Source(self.folder, alias, columns) for alias, columns in self.columns.items()}
        self.pulled = dict.fromkeys(self.sources, 0)
        self.before: dict[str, float] = {}
        self.pulls = self.next_offset = self.commits = self.asked = 0
        self.checkpoint: str | None = None
        self.emitted: list[tuple[Any, ...]] = []
        self.watermark: str | None = None

    def commit(self, alias: str, *rows: str | tuple[Any, ...]) -> None:
        """Rows that come together; each commit has a later system time."""
        self.commits += 1
        found = [self._row(alias, row) if isinstance(row, str) else row for row in rows]
        self.sources[alias].add(found, commit=self.commits)

    def _row(self, alias: str, text: str) -> tuple[Any, ...]:
        op, when, *values = text.split()
        kinds = [one.type for one in self.columns[alias]]
        data = [int(value) if kind == pa.int32() else value for value, kind in zip(values, kinds, strict=True)]
        return (op, day(float(when)), *data)

    def pull(self, **watermarks: float) -> list[str]:
        """What a pull emits; watermarks as days."""
        self.known |= watermarks
        folder = self.folder / f"pull-{self.pulls}"
        folder.mkdir()
        self.pulls += 1
        for history in (False, True):
            inputs = [self._input(alias, history) for alias in self.sources]
            request = transform_request(folder, self.query, *inputs, next_offset=self.next_offset)
            transform = replace(request.transform, temporal_tables=self.temporal)
            request = replace(request, transform=transform, prev_checkpoint_path=self.checkpoint)
            response = operations.transform(self.spark, request, rows_in_one_task=self.rows_in_one_task)
            if not isinstance(response, TransformResponseNeedsHistory):
                break
            self.asked += 1
        rows = [(op, *values) for op, *values in rows_of(success(response))]
        self.watermark = None if response.new_watermark is None else days(response.new_watermark.to_datetime())
        self.next_offset += len(rows)
        self.emitted += rows
        self.pulled = {alias: source.end for alias, source in self.sources.items()}
        self.before = dict(self.known)
        self.checkpoint = request.new_checkpoint_path if Path(request.new_checkpoint_path).exists() else None
        return [line(row) for row in rows]

    def _input(self, alias: str, history: bool) -> Any:
        source, start, before = self.sources[alias], self.pulled[alias], self.before.get(alias)
        return replace(
            source.input(start, watermark=_text(self.known.get(alias))),
            history_paths=tuple(path for path, first, _ in source.slices if first < start) if history else None,
            prev_offset=start - 1 if start else None,
            prev_watermark=None if before is None else Timestamp.parse(_text(before)),
        )

    def state(self) -> Counter[str]:
        """What all that was emitted amounts to."""
        found: Counter[str] = Counter()
        weights = {kind.symbol: kind.weight for kind in OperationType}
        for op, *values in self.emitted:
            found[line(("", *values)).strip()] += weights[op]
        assert all(count >= 0 for count in found.values()), "nothing is retracted that was not there"
        return +found


def _text(number: float | None) -> Any:
    return None if number is None else day(number).isoformat().replace("+00:00", "Z")


@pytest.fixture
def story(spark, tmp_path):
    def make(query: Any = JOIN, *, rates=("cur",), **columns: tuple[pa.Field, ...]) -> Story:
        given = {"facts": FACTS, "rates": RATES, **columns}
        tables = [TemporalTable("rates", tuple(rates))]
        if "taxes" in given:
            tables.append(TemporalTable("taxes", ("land",)))
        return Story(Tuned(spark, **QUICK), tmp_path, query, tuple(tables), given)

    return make


# --- What the rows of a changelog do to versions ---------------------------------------------------------------------

VERSIONS = "SELECT valid_to AS event_time, cur, rate, valid_from FROM rates"


def test_what_the_rows_of_a_changelog_do_to_versions(story):
    """All logs one after the other, each with keys and days of its own, in three pulls that cut some of them."""
    found = story(VERSIONS)
    commits, wanted = [], []
    for number, (log, versions) in enumerate(LOGS.values()):
        name, shift = f"{number:02}", 20 * number
        commits += [[_moved(row, name, shift) for row in commit] for commit in log]
        wanted += [_named(version, name, shift) for version in versions]
    found.commit("facts", "+A 1 0 EUR")
    for start, stop in ((0, 6), (6, len(commits) - 1), (len(commits) - 1, len(commits))):
        for commit in commits[start:stop]:
            found.commit("rates", *commit)
        found.pull(facts=1, rates=1)
    assert sorted(_version(*row.split()) for row in found.state()) == sorted(wanted)
    assert found.asked == 1, "when something is taken back for the first time"


def _moved(row: str, name: str, shift: int) -> str:
    op, when, key, value = row.split()
    return f"{op} {int(when) + shift} {key}{name} {value}"


def _named(version: str, name: str, shift: int) -> str:
    key, rate, span = version.split()
    begin, end = (
        one if one == "open" else f"{int(one.rstrip('+')) + shift}{'+' * one.count('+')}" for one in span.split("-")
    )
    return f"{key}{name} {rate} {begin}-{end}"


def _version(end: str, cur: str, rate: str, begin: str) -> str:
    return f"{cur} {rate} {begin}-{end}"


# --- Joins -----------------------------------------------------------------------------------------------------------


def test_a_fact_is_given_once_when_both_watermarks_have_passed_it(story):
    found = story()
    found.commit("rates", "+A 1 EUR 10")
    found.commit("facts", "+A 2 1 EUR", "+A 4 2 EUR", "+A 6 3 EUR")
    assert found.pull(rates=1, facts=6) == []
    assert found.watermark == "1"
    found.commit("rates", "+A 3 EUR 11")
    assert found.pull(rates=5) == ["+A 2 1 10", "+A 4 2 11"]
    assert found.watermark == "5"
    found.commit("facts", "+A 7 4 EUR")
    assert found.pull(rates=9, facts=7) == ["+A 6 3 11", "+A 7 4 11"]
    assert found.watermark == "7"
    assert found.asked == 0, "no history was needed"


def test_what_is_late_corrects_the_rows_it_has_to_do_with(story):
    found = story(LEFT)
    found.commit("rates", "+A 2 EUR 10", "+A 2 USD 5")
    found.commit("facts", "+A 1 1 EUR", "+A 3 2 EUR", "+A 6 3 EUR", "+A 6 4 USD")
    assert found.pull(rates=8, facts=8) == ["+A 1 1 -", "+A 3 2 10", "+A 6 3 10", "+A 6 4 5"]
    found.commit("facts", "+A 4 5 EUR", "-R 1 1 EUR")
    assert found.pull() == ["-R 1 1 -", "+A 4 5 10"]
    found.commit("rates", "+A 5 EUR 11", "-C 2 USD 5", "+C 2 USD 6")
    assert found.pull() == ["-R 6 3 10", "+A 6 3 11", "-R 6 4 5", "+A 6 4 6"]
    found.commit("rates", "-R 9 EUR 11")
    found.commit("facts", "+A 8.5 6 EUR", "+A 9 7 EUR")
    assert found.pull(rates=9, facts=9) == ["+A 8.5 6 11", "+A 9 7 -"]
    assert found.asked == 2, "nothing was late at the end"


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("query", [JOIN, JOIN.replace("f.cur = r.cur AND ", ""), LEFT, FULL, LISTED])
def test_no_window_has_all_rows_in_one_partition_and_what_is_equal_is_not_looped_over(story, query):
    found = story(query)
    with plans_run() as plans:
        found.commit("rates", "+A 2 EUR 10", "+A 3 USD 5")
        found.commit("facts", "+A 1 1 EUR", "+A 3 2 EUR", "+A 6 3 EUR", "+A 6 4 USD")
        found.pull(rates=8, facts=8)
        found.commit("rates", "-C 2 EUR 10", "+C 2 EUR 11")
        assert found.pull()
    assert found.asked == 1, "the rate is one of the past"
    assert plans
    assert [told for plan in plans for told in windows_over_everything(plan)] == []
    assert [told for plan in plans for told in needless_loops(plan)] == []


def test_a_window_over_everything_and_a_needless_loop_are_seen(spark):
    spark.range(3).createOrReplaceTempView("some")
    queries = {
        "SELECT row_number() OVER (ORDER BY id) FROM some": (1, 0),
        "SELECT row_number() OVER (PARTITION BY id ORDER BY id) FROM some": (0, 0),
        "SELECT /*+ SHUFFLE_REPLICATE_NL(a) */ * FROM some a JOIN some b ON a.id = b.id AND a.id < 5": (0, 1),
        "SELECT /*+ SHUFFLE_REPLICATE_NL(a) */ * FROM some a JOIN some b ON a.id < b.id": (0, 0),
    }
    with plans_run() as plans:
        for query in queries:
            spark.sql(query).collect()
    assert [(len(windows_over_everything(plan)), len(needless_loops(plan))) for plan in plans] == [*queries.values()]


def test_two_temporal_tables_in_one_query(story):
    query = """
        SELECT f.event_time, f.id, r.rate, t.tax FROM rates r
        JOIN facts f ON f.cur = r.cur AND f.event_time BETWEEN r.valid_from AND r.valid_to
        LEFT JOIN taxes t ON t.land = substr(f.cur, 1, 1) AND t.valid_from <= f.event_time AND f.event_time < t.valid_to
    """
    found = story(query, taxes=TAXES)
    found.commit("rates", "+A 1 EUR 10", "+A 1 USD 5")
    found.commit("taxes", "+A 3 E 20")
    found.commit("facts", "+A 2 1 EUR", "+A 4 2 EUR", "+A 4 3 USD", "+A 4 4 CHF", "+A 6 5 EUR")
    assert found.pull(rates=7, taxes=4, facts=7) == ["+A 2 1 10 -", "+A 4 2 10 20", "+A 4 3 5 -"]
    assert found.watermark == "4"
    found.commit("taxes", "+A 5 E 21", "+A 1 U 30")
    assert found.pull(taxes=6) == ["-R 4 3 5 -", "+A 4 3 5 30", "+A 6 5 10 21"]
    found.commit("rates", "-C 1 EUR 10", "+C 6 EUR 12")
    assert found.pull() == ["+A 6 5 12 21"], "BETWEEN: at the end of one version and the beginning of the next"


def test_exists_beside_other_conditions_is_said_of_each_fact_and_of_each_version(story):
    known = f"EXISTS (SELECT 1 FROM rates r WHERE f.cur = r.cur AND {AS_OF}) OR f.id = 0"
    found = story(f"SELECT f.event_time, f.id, {known} AS known FROM facts f")
    found.commit("rates", "+A 2 EUR 10")
    found.commit("facts", "+A 1 1 EUR", "+A 3 2 EUR", "+A 3 0 USD", "+A 6 3 EUR")
    assert found.pull(rates=5, facts=6) == ["+A 1 1 False", "+A 3 0 True", "+A 3 2 True"]
    found.commit("rates", "-R 4 EUR 10")
    assert found.pull(rates=6) == ["+A 6 3 False"]


def test_a_version_is_said_to_be_unused_when_it_has_ended(story):
    used = f"EXISTS (SELECT 1 FROM facts f WHERE f.cur = r.cur AND {AS_OF}) OR r.rate = 0"
    found = story(f"SELECT valid_from AS event_time, rate, {used} AS used FROM rates r")
    found.commit("rates", "+A 1 EUR 10", "+A 3 EUR 11", "+A 1 USD 0")
    found.commit("facts", "+A 2 1 EUR")
    assert found.pull(rates=4, facts=4) == ["+A 1 10 True"]
    found.commit("rates", "+A 5 EUR 12", "+A 5 USD 1")
    assert found.pull(rates=6, facts=6) == ["+A 1 0 True", "+A 3 11 False"]
    found.commit("facts", "+A 7 2 EUR")
    assert found.pull(rates=7, facts=7) == ["+A 5 12 True"]


def test_a_step_as_a_temporal_table_and_what_stands_on_a_join(story):
    daily = (
        "SELECT window.end AS event_time, cur, max(rate) AS rate FROM rates GROUP BY window(event_time, '1 day'), cur"
    )
    steps = [
        ("best", daily),
        ("priced", JOIN.replace("rates r", "best r")),
        (None, "SELECT window.end AS event_time, sum(rate) AS total FROM priced GROUP BY window(event_time, '2 days')"),
    ]
    found = story(steps)
    found.temporal = (TemporalTable("best", ("cur",)),)
    found.commit("rates", "+A 1 EUR 9", "+A 1.5 EUR 10", "+A 3 EUR 11")
    found.commit("facts", "+A 2 1 EUR", "+A 3 2 EUR", "+A 5 3 EUR", "+A 6 4 EUR")
    assert found.pull(rates=6, facts=6) == ["+A 4 20", "+A 6 11"]
    found.commit("rates", "+A 1.2 EUR 30")
    assert found.pull() == ["-C 4 20", "+C 4 60"]


def test_a_temporal_table_as_a_table(story):
    query = "SELECT max(event_time) AS event_time, sum(rate) AS total FROM rates WHERE valid_to = TIMESTAMP'9999-12-31 23:59:59.999'"
    found = story(query)
    found.commit("rates", "+A 1 EUR 10", "+A 2 USD 5")
    assert found.pull(rates=2) == ["+A 2 15"]
    found.commit("rates", "+A 3 EUR 11", "-R 4 USD 5")
    assert found.pull(rates=4) == ["-C 2 15", "+C 3 11"]


# --- What cannot be, and what is known at `odf add` ------------------------------------------------------------------


@pytest.fixture
def analyzed(spark, tmp_path):
    sources = [Source(tmp_path, "facts", FACTS), Source(tmp_path, "rates", RATES)]

    def analyze(query: Any, *tables: TemporalTable) -> Any:
        request = analyze_request(query, *sources)
        return operations.analyze(spark, replace(request, transform=replace(request.transform, temporal_tables=tables)))

    return analyze


@pytest.mark.parametrize(
    ("tables", "message", "hint"),
    [
        ([("rates", ())], "`rates` has no primary key", "primaryKey"),
        ([("rates", ("currency",))], "`rates` has no column `currency`", "`cur`, `rate`"),
        ([("rates", ("event_time",))], "contains the event time", "omit it"),
        ([("prices", ("cur",))], "`prices` is neither an input nor an earlier step", "`facts`, `rates`"),
        ([("rates", ("cur",)), ("rates", ("rate",))], "`rates` is declared twice", "Once"),
    ],
)
def test_wrong_tables(analyzed, tables, message, hint):
    made = analyzed(JOIN, *(TemporalTable(*table) for table in tables))
    assert isinstance(made, TransformResponseInvalidQuery)
    assert message in made.message
    assert hint in made.hint


@pytest.mark.parametrize("moment", ["f.event_time", "TIMESTAMP '2024-01-01'"])
def test_the_join_of_flink_is_told_in_our_words(analyzed, moment):
    query = f"SELECT f.event_time FROM facts f JOIN rates FOR SYSTEM_TIME AS OF {moment} AS r ON f.cur = r.cur"
    made = analyzed(query, TemporalTable("rates", ("cur",)))
    assert isinstance(made, TransformResponseInvalidQuery)
    assert "`temporalTables`" in made.hint
    assert "versions.valid_from" in made.hint


@pytest.mark.parametrize(
    ("step", "message"),
    [
        ("SELECT event_time AS t, cur FROM rates", "`r` has no column `event_time` with times"),
        ("SELECT event_time, cur, 1 AS valid_to FROM rates", "`r` already has a column `valid_to`"),
        ("SELECT max(event_time) AS event_time, cur FROM rates GROUP BY cur", "`r` has no watermark"),
    ],
)
def test_wrong_steps(analyzed, step, message):
    made = analyzed([("r", step), (None, "SELECT * FROM r")], TemporalTable("r", ("cur",)))
    assert isinstance(made, TransformResponseInvalidQuery)
    assert message in made.message


def test_what_a_join_is_and_how_far_its_watermark_goes(analyzed):
    table = TemporalTable("rates", ("cur",))
    made = analyzed(JOIN, table)
    assert isinstance(made, AnalyzeResponseSuccess), made
    assert (made.steps[0].query_class, made.notes) == ("temporal-table join", ())
    derived = f"WITH r AS (SELECT * FROM rates) {JOIN.replace('rates r', 'r')}"
    assert analyzed(derived, table).notes == ()
    listed = analyzed(LISTED, table)
    assert (listed.steps[0].query_class, listed.notes) == ("temporal-table join", ())
    unused = analyzed(FULL, table)
    assert unused.steps[0].query_class == "temporal-table join"
    assert "will not advance" in unused.notes[0], "a version ends long after it began"
    shown = analyzed(JOIN.replace("r.rate", "r.valid_to"), table)
    assert "will not advance" in shown.notes[0], "rows change when a version ends, however long ago they were"
    assert "temporal" not in analyzed(JOIN.split("AND", maxsplit=1)[0], table).steps[0].query_class


# --- Any story -------------------------------------------------------------------------------------------------------


@dataclass
class Model:
    """Versions by the rules, told one row after the other."""

    begun: dict[tuple[Any, ...], list[Any]] = field(default_factory=dict)
    ends: list[list[Any]] = field(default_factory=list)
    clock: float = 0
    rows: int = 0

    def commit(self, rows: list[tuple[str, float, str, int]]) -> None:
        before = self.clock
        self.clock = max([before, *(when for op, when, _, _ in rows if op in ("+A", "+C"))])
        told = self.clock if self.clock > before else before + 1 / 86_400_000
        for number, (_, when, key, value) in enumerate(rows):
            self.rows += 1
            self._row(rows, number, (when, key, value), told)

    def _row(self, rows: Any, number: int, content: tuple[float, str, int], told: float) -> None:
        (op, when, key, _), known = rows[number], self.begun.get(content)
        if op in ("+A", "+C"):
            found = self.begun.setdefault(content, [0, 0])
            found[:] = found[0] + 1, self.rows
            self.ends = [end for end in self.ends if end[1] != key or not end[3] or when > end[0]]
        elif op == "-C":
            if known and rows[number + 1][1] <= when:
                known[0] -= 1
        elif known is None:
            self.ends.append([when, key, self.rows, False])
        elif self.present[key]:
            known[0] -= 1
        else:
            self.ends.append([told, key, self.rows, True])

    present: Counter[str] = field(default_factory=Counter)

    def versions(self) -> list[tuple[str, int, float, float]]:
        events: dict[tuple[str, float], tuple[int, int | None]] = {}
        told = [(key, when, order, value) for (when, key, value), (count, order) in self.begun.items() if count > 0]
        for key, when, order, value in told + [(end[1], end[0], end[2], None) for end in self.ends]:
            if order > events.get((key, when), (0, 0))[0]:
                events[key, when] = (order, value)
        found = []
        for (key, when), (_, value) in events.items():
            later = [other for name, other in events if name == key and other > when]
            if value is not None:
                found.append((key, value, when, min(later, default=1e9)))
        return found


@st.composite
def stories(draw):
    """Commits of rates and facts, each with the watermarks of the pull that it is the last of, if it is."""
    live: dict[str, list[tuple[float, int]]] = {"EUR": [], "USD": []}
    facts: list[tuple[float, int, str]] = []
    told, marks = [], {"rates": 0, "facts": 0}
    for number in range(draw(st.integers(3, 7))):
        rows = []
        for key in draw(st.sets(st.sampled_from(["EUR", "USD"]), max_size=2).map(sorted)):
            kind = draw(st.sampled_from(["+A", "+A", "C", "-R"]))
            when, value = draw(st.integers(1, 9)), number * 10 + len(rows)
            if kind == "+A" or not live[key]:
                rows.append(("+A", when, key, value))
                live[key].append((when, value))
                continue
            old = live[key].pop(draw(st.integers(0, len(live[key]) - 1)))
            if kind == "C":
                rows += [("-C", old[0], key, old[1]), ("+C", when, key, value)]
                live[key].append((when, value))
            else:
                rows.append(("-R", old[0], key, old[1]))
        new = [
            (draw(st.integers(1, 9)), 100 * number + at, draw(st.sampled_from(["EUR", "USD"])))
            for at in range(draw(st.integers(0, 2)))
        ]
        taken = [facts.pop(0)] if facts and draw(st.booleans()) else []
        facts += new
        marks = {name: mark + draw(st.integers(0, 4)) for name, mark in marks.items()}
        lines = [("+A", *row) for row in new] + [("-R", *row) for row in taken]
        told.append((rows, lines, dict(marks) if draw(st.booleans()) else None))
    return [*told[:-1], (*told[-1][:2], marks)]


QUERIES = {"left": LEFT, "full": FULL, "unused": UNUSED, "listed": LISTED}


@pytest.mark.parametrize(
    ("name", "rows_in_one_task"),
    [*((name, 1_000_000) for name in QUERIES), ("left", 1), ("full", 1)],
    ids=[*QUERIES, "left, in tasks of one row", "full, in tasks of one row"],
)
def test_in_any_cut_the_output_is_the_join_over_what_is_closed(spark, tmp_path_factory, name, rows_in_one_task):
    query, columns = QUERIES[name], {"facts": FACTS, "rates": RATES}

    @settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck), database=None)
    @given(commits=stories())
    def law(commits):
        table, folder = (TemporalTable("rates", ("cur",)),), tmp_path_factory.mktemp("story")
        found = Story(Tuned(spark, **QUICK), folder, query, table, columns, rows_in_one_task=rows_in_one_task)
        model, facts = Model(), Counter()
        for rates, lines, marks in commits:
            if rates:
                found.commit("rates", *((op, day(when), key, value) for op, when, key, value in rates))
            if lines:
                found.commit("facts", *((op, day(when), number, key) for op, when, number, key in lines))
            for op, _, key, _ in rates:
                model.present[key] += 1 if op in ("+A", "+C") else -1
            model.commit(rates)
            for op, *row in lines:
                facts[tuple(row)] += 1 if op == "+A" else -1
            if marks is not None:
                found.pull(**marks)
                assert found.state() == _closed(query, model, facts, min(marks.values()))

    law()


def _closed(query: str, model: Model, facts: Counter[Any], watermark: float) -> Counter[str]:
    wanted: Counter[str] = Counter()
    versions = model.versions()
    unused = [version for version in versions if version[3] <= watermark]
    for (when, number, key), count in facts.items():
        if count > 0 and when <= watermark:
            in_force = [
                (cur, rate, begin, end) for cur, rate, begin, end in versions if cur == key and begin <= when < end
            ]
            assert len(in_force) <= 1
            unused = [version for version in unused if version not in in_force]
            rate = in_force[0][1] if in_force else "-"
            if query != UNUSED and not (query == LISTED and not in_force):
                wanted[f"{when} {number} {rate}"] += count
    if query in (FULL, UNUSED):
        wanted.update(line(("", day(begin), *([None] * (query == FULL)), rate)).strip() for _, rate, begin, _ in unused)
    return wanted


# --- A snapshot as a temporal table, as the coordinator runs it ------------------------------------------------------

DERIVED = """
kind: DatasetSnapshot
version: 1
content:
  name: named
  kind: Derivative
  metadata:
    - kind: SetTransform
      inputs: [{datasetRef: flights, alias: flights}, {datasetRef: airlines, alias: airlines}]
      transform:
        kind: Sql
        engine: spark
        temporalTables: [{name: airlines, primaryKey: [id]}]
        query: |
          SELECT f.event_time, f.name AS flight, a.name AS airline FROM flights f
          LEFT JOIN airlines a ON f.id = a.id AND f.event_time >= a.valid_from AND f.event_time < a.valid_to
"""


def test_a_snapshot_root_says_what_was_in_force(monkeypatch, spark, tmp_path):
    in_place(monkeypatch, spark)
    workspace = workspace_with(tmp_path / "w", root("flights", "{kind: Append}"), root("airlines"))
    feed(workspace, "airlines", "1 Alpha", "2 Beta", day=1)
    feed(workspace, "flights", "1 F1", "2 F2", day=2)
    feed(workspace, "airlines", "1 Alpha-and-Co", day=3)
    workspace.add(load_snapshots(DERIVED, "named.yaml"))
    assert [result.error for result in workspace.pull(["named"])] == [None]
    assert _named_flights(workspace) == ["F1 Alpha", "F2 Beta"]
    feed(workspace, "flights", "1 F3", "2 F4", day=4)
    feed(workspace, "airlines", "1 Alpha-and-Co", "3 Gamma", day=5)
    assert [result.error for result in workspace.pull(["named"])] == [None]
    assert _named_flights(workspace) == ["F1 Alpha", "F2 Beta", "F3 Alpha-and-Co", "F4 None"]
    (report,) = workspace.verify(["named"])
    assert report.ok, report.findings


def _named_flights(workspace: Workspace) -> list[str]:
    return [f"{row['flight']} {row['airline']}" for row in workspace.tail("named", 100).to_pylist()]
