"""The index answers as a look at each row does, however the log was written, cut and merged."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from support.archive import model
from support.archive.commits import APPEND, FROM, RETRACT, TO, Row, commit, new_archive, record
from support.examples import examples

from odfpy.archive.index.adding import Sizes
from odfpy.archive.index.search import SearchIndex
from odfpy.archive.question import Question
from odfpy.archive.record import FileRecord, Status
from odfpy.archive.times import DAY

SMALL = Sizes(segment_rows=12, least_rows=3, fanout=2)

WHATS, WHERES, JOBS = ("syslog", "nginx"), ("web1", "web2", "db"), ("job-1", "job-2")
STARTS = st.integers(-20, 40).map(lambda number: number * DAY // 4)
SPANS = st.sampled_from([None, 0, 1, 2, 3, 1000, DAY // 4, DAY // 4 - 1, DAY, 30 * DAY, 4000 * DAY])
TEXTS = st.builds(
    "{}{}".format, st.sampled_from(["", "0123456", "01234567", "0123456789abcdef" * 2]), st.integers(0, 9)
)


@st.composite
def logs(draw: st.DrawFn) -> list[list[Row]]:
    """Commits of rows: files that come, are corrected, withdrawn, expired, taken back, and come again."""
    commits: list[list[Row]] = []
    now: dict[str, FileRecord] = {}
    for _ in range(draw(st.integers(1, 6))):
        rows: list[Row] = []
        for _ in range(draw(st.integers(0, 8))):
            rows += draw(_steps(now))
            now = model.current([row for one in [*commits, rows] for row in one])
        if rows:
            commits.append(rows)
    return commits


@st.composite
def _steps(draw: st.DrawFn, now: dict[str, FileRecord]) -> list[Row]:
    kind = draw(st.sampled_from(["new", "new", "new", "correct", "withdraw", "expire", "retract"]))
    if kind == "new" or not now:
        return [(APPEND, draw(_records(draw(TEXTS))))]
    before = now[draw(st.sampled_from(sorted(now)))]
    if kind == "retract":
        return [(RETRACT, before)]
    after = draw(_records(before.id))
    if kind != "correct":
        status = Status.WITHDRAWN if kind == "withdraw" else Status.EXPIRED
        after = replace(before, status=status, who="op", why="because")
    return [(FROM, before), (TO, after)]


@st.composite
def _records(draw: st.DrawFn, key: str) -> FileRecord:
    start, span = draw(STARTS), draw(SPANS)
    names = {"what": draw(st.sampled_from(WHATS)), "where": draw(st.sampled_from(WHERES))}
    job, taken_in = draw(st.sampled_from([None, *JOBS])), draw(st.integers(0, 2))
    return record(key, start, None if span is None else start + span, work_id=job, create_time=taken_in, **names)


QUESTIONS = st.builds(
    lambda what, where, job, start, span, is_open: (
        Question(what=what, where=where, work_id=job)
        if job
        else Question(what=what, where=where, start=start, end=None if is_open else start + span)
    ),
    st.lists(st.sampled_from(WHATS), min_size=1, unique=True).map(tuple),
    st.lists(st.sampled_from([*WHERES, "nowhere"]), max_size=2, unique=True).map(tuple),
    st.sampled_from([None, None, *JOBS]),
    STARTS,
    st.sampled_from([0, 1, DAY // 4, DAY, 10 * DAY]),
    st.booleans(),
)


def walked(index: SearchIndex, question: Question, size: int) -> list[FileRecord]:
    found, cursor = [], None
    while True:
        page = index.page(question, cursor, size)
        assert len(page.records) <= size
        found += page.records
        if page.next is None:
            return found
        assert len(page.records) == size
        cursor = page.next


def check(index: SearchIndex, rows: list[Row], question: Question, size: int) -> None:
    """Compare all answers with those of the model."""
    now = model.current(rows)
    ids = sorted({record.id for _, record in rows})
    assert walked(index, question, size) == model.answer(now.values(), question)
    since, until = question.start or 0, question.end or DAY
    for what in question.what:
        for where in WHERES:
            wanted = model.latest(now.values(), what, where, since, until)
            assert index.latest(what, where, since=since, until=until) == wanted
            assert index.days(what, where, since=since, until=until) == model.days(
                now.values(), what, where, since, until
            )
        assert index.days(what, since=since, until=until) == model.days(now.values(), what, None, since, until)
        assert _plain(index, what) == model.names(now.values(), what)
    assert _plain(index, None) == model.names(now.values(), None)
    assert index.known([*ids, "nobody"]) == now
    assert index.num_records == len(now)
    histories = model.histories(rows)
    assert index.histories([*ids, "nobody"]) == histories
    for key in ids:
        content = record(key).object
        said = model.histories((op, one) for op, one in rows if one.object == content)
        assert index.histories_of_object(content) == said


def _plain(index: SearchIndex, what: str | None) -> list[tuple[str, int, int, int]]:
    return [(name.name, name.count, name.first, name.last) for name in index.names(what)]


@settings(max_examples=examples(10, 40))
@given(logs().filter(bool), QUESTIONS, st.integers(1, 4))
def test_an_extended_index_and_one_made_anew_answer_as_a_look_at_each_row(
    commits: list[list[Row]], question: Question, size: int
):
    with tempfile.TemporaryDirectory() as folder:
        dataset, rows = new_archive(Path(folder)), []
        for one in commits:
            dataset, rows = commit(dataset, one), rows + one
            check(SearchIndex.of(dataset, sizes=SMALL), rows, question, size)
        shutil.rmtree(dataset.cache / "archive-index")
        check(SearchIndex.of(dataset, sizes=SMALL), rows, question, size)
        shutil.rmtree(dataset.cache / "archive-index")
        check(SearchIndex.of(dataset), rows, question, size)


@settings(max_examples=examples(10, 40))
@given(logs().filter(bool), QUESTIONS, st.integers(1, 3))
def test_pages_that_go_on_while_others_push_are_those_of_the_first_page_without_what_is_gone(
    commits: list[list[Row]], question: Question, size: int
):
    with tempfile.TemporaryDirectory() as folder:
        dataset, rows, found, cursor = new_archive(Path(folder)), [], [], None
        at_first: list[FileRecord] = []
        gone: set[str] = set()
        for number, one in enumerate([*commits, *[[]] * 60]):
            if one:
                dataset, rows = commit(dataset, one), rows + one
            now = model.current(rows)
            kept = {record.id for record in model.shown(now.values())}
            if number == 0:
                at_first = model.answer(now.values(), question)
            page = SearchIndex.of(dataset, sizes=SMALL).page(question, cursor, size)
            assert all(record.id in kept for record in page.records)
            found += page.records
            gone |= {record.id for record in at_first if record.id not in kept}
            cursor = page.next
            if cursor is None:
                break
        assert [record for record in found if record.id not in gone] == [
            record for record in at_first if record.id not in gone
        ]
        assert len({record.id for record in found}) == len(found)


@settings(max_examples=examples(8, 30))
@given(logs().filter(bool), QUESTIONS, st.data())
def test_an_archive_as_it_was_at_a_block_answers_as_it_did_then(
    commits: list[list[Row]], question: Question, data: st.DataObject
):
    with tempfile.TemporaryDirectory() as folder:
        dataset, heads = new_archive(Path(folder)), []
        for rows in commits:
            dataset = commit(dataset, rows)
            heads.append(dataset.state.head)
        SearchIndex.of(dataset, sizes=SMALL)
        number = data.draw(st.integers(0, len(heads) - 1))
        index = SearchIndex.of(dataset.at(heads[number]), sizes=SMALL)
        check(index, [row for one in commits[: number + 1] for row in one], question, 2)
