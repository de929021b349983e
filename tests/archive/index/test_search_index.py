"""What the index finds, and in which order; its pages; where it is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from support.archive import model
from support.archive.commits import APPEND, FROM, TO, commit, commit_table, new_archive, record

from odfpy.archive.errors import InvalidCursor
from odfpy.archive.index.search import SearchIndex
from odfpy.archive.question import Question
from odfpy.archive.record import FileRecord, Status
from odfpy.archive.rows import table_of
from odfpy.archive.times import FIRST, LAST
from odfpy.coordinator.storage.results import Progress
from odfpy.coordinator.storage.stored_dataset import StoredDataset

ALL = Question(what=("syslog",), start=FIRST, end=LAST)


@pytest.fixture
def archive(tmp_path: Path) -> StoredDataset:
    return new_archive(tmp_path / "workspace")


def ids(records: tuple[FileRecord, ...]) -> list[str]:
    return [record.id for record in records]


def pushed(dataset: StoredDataset, *records: FileRecord) -> StoredDataset:
    return commit(dataset, [(APPEND, one) for one in records])


def test_an_archive_without_records_has_an_index_without_answers(archive: StoredDataset):
    index = SearchIndex.of(archive)
    assert (index.num_records, index.page(ALL, None, 10).records, index.names()) == (0, (), [])
    assert index.latest("syslog", "web1", since=FIRST, until=LAST) is None
    assert index.get("a") is None
    assert index.head == str(archive.state.head)


def test_a_range_is_inclusive_at_both_ends_and_a_file_without_end_lasts_a_moment(archive: StoredDataset):
    index = SearchIndex.of(pushed(archive, record("moment", 100), record("long", 0, 100), record("late", 101, 200)))

    def found(start: int, end: int) -> list[str]:
        return ids(index.page(Question(what=("syslog",), start=start, end=end), None, 10).records)

    assert found(100, 100) == ["long", "moment"]
    assert found(101, 101) == ["late"]
    assert found(200, 300) == ["late"]
    assert found(201, 300) == []
    assert found(-5, 0) == ["long"]


def test_a_file_may_last_as_long_as_there_are_years(archive: StoredDataset):
    index = SearchIndex.of(pushed(archive, record("ever", FIRST, LAST), record("a", 5, 6)))
    assert ids(index.page(Question(what=("syslog",), start=5, end=5), None, 10).records) == ["ever", "a"]
    assert ids(index.page(Question(what=("syslog",), start=LAST, end=LAST), None, 10).records) == ["ever"]


def test_ids_whose_beginnings_are_the_same_are_in_their_order(archive: StoredDataset):
    texts = ["12345678", "123456789", "1234567", "12345678a", "12345678" * 16, "1", "12345678-"]
    index = SearchIndex.of(pushed(archive, *(record(text, 7) for text in texts)))
    assert ids(index.page(ALL, None, 10).records) == sorted(texts)


def test_many_records_are_found_across_blocks_and_chunks(archive: StoredDataset):
    dice = np.random.default_rng(5)
    starts = dice.integers(0, 3_000, 30_000).tolist()
    spans = dice.choice([0, 5, 400, 10**6], 30_000, p=[0.5, 0.3, 0.199, 0.001]).tolist()
    records = [
        record(f"{number:032x}", start, start + span, where=f"web{number % 3}", work_id=f"job-{number % 7000}")
        for number, (start, span) in enumerate(zip(starts, spans, strict=True))
    ]
    index = SearchIndex.of(pushed(archive, *records))
    for question in (
        Question(what=("syslog",), start=1_500, end=1_510),
        Question(what=("syslog",), where=("web1",), start=2_999, end=4_000),
        Question(what=("syslog", "none"), work_id="job-6999"),
    ):
        found, cursor = [], None
        while len(found) == 0 or cursor is not None:
            page = index.page(question, cursor, 100)
            found, cursor = [*found, *page.records], page.next
        assert found == model.answer(records, question)
    assert index.get(f"{29_999:032x}") == records[-1]


def test_what_was_withdrawn_is_not_found_but_its_record_is_there(archive: StoredDataset):
    kept, gone, expired = record("kept", 1), record("gone", 2), record("expired", 3)
    dataset = pushed(archive, kept, gone, expired)
    SearchIndex.of(dataset)
    withdrawn = replace(gone, status=Status.WITHDRAWN, who="me", why="wrong file")
    past = replace(expired, status=Status.EXPIRED, who="retention", why="7 days")
    index = SearchIndex.of(commit(dataset, [(FROM, gone), (TO, withdrawn), (FROM, expired), (TO, past)]))
    assert index.page(ALL, None, 10).records == (kept, past)
    assert index.latest("syslog", "web1", since=0, until=10) == past
    assert index.get("gone") == withdrawn
    assert index.histories_of_object(gone.object) == index.histories(["gone"]) == {"gone": [gone, withdrawn]}
    assert index.num_records == 3


def test_the_latest_has_the_greatest_start_then_time_of_arrival_then_id(archive: StoredDataset):
    index = SearchIndex.of(
        pushed(
            archive,
            record("long", 1, 10**9, create_time=9),
            record("a", 50, 60, create_time=3),
            record("b", 50, create_time=3),
            record("c", 50, 70, create_time=2),
            record("later", 80),
        )
    )
    assert index.latest("syslog", "web1", since=0, until=79) == index.get("b")
    assert index.latest("syslog", "web1", since=55, until=79) == index.get("a")
    assert index.latest("syslog", "web1", since=75, until=79) == index.get("long")
    assert index.latest("syslog", "web1", since=75, until=0) is None
    assert index.latest("syslog", "web2", since=0, until=100) is None


def test_rows_that_are_no_records_are_left_out(archive: StoredDataset):
    good = table_of([record("good", 1)], [APPEND])
    rows = [good]
    for column, value in {"object": "nonsense", "status": "unheard of"}.items():
        at = good.schema.get_field_index(column)
        rows.append(good.set_column(at, column, pa.array([value])).set_column(2, "id", pa.array([column])))
    index = SearchIndex.of(commit_table(archive, pa.concat_tables(rows)))
    assert ids(index.page(ALL, None, 10).records) == ["good"]
    assert index.num_records == 1


def test_an_object_is_found_in_whatever_base_its_name_was_written(archive: StoredDataset):
    here = record("a", 1)
    table = table_of([here], [APPEND])
    other = pa.array(["F" + str(here.object)[1:].upper()])
    index = SearchIndex.of(
        commit_table(archive, table.set_column(table.schema.get_field_index("object"), "object", other))
    )
    assert index.histories_of_object(here.object) == {"a": [here]}


@pytest.mark.parametrize("cursor", ["", "x", "é", "A" * 10_000, "W10", "WzEsMl0", "bnVsbA", "W1tbW1tbW1tb", "MQ=="])
def test_nonsense_is_no_cursor(archive: StoredDataset, cursor: str):
    index = SearchIndex.of(pushed(archive, record("a", 1)))
    with pytest.raises(InvalidCursor, match="Not a cursor"):
        index.page(ALL, cursor, 1)


def test_a_cursor_is_good_for_its_question_and_its_archive_only(tmp_path: Path, archive: StoredDataset):
    index = SearchIndex.of(pushed(archive, record("a", 1), record("b", 2), record("c", 3)))
    cursor = index.page(ALL, None, 1).next
    assert cursor is not None
    assert ids(index.page(ALL, cursor, 5).records) == ["b", "c"]
    other = SearchIndex.of(pushed(new_archive(tmp_path / "other"), record("a", 1), record("b", 2)))
    for asked, question in (
        (index, replace(ALL, where=("web1",))),
        (index, replace(ALL, end=LAST - 1)),
        (index, Question(what=("syslog",), work_id="job")),
        (other, ALL),
    ):
        with pytest.raises(InvalidCursor):
            asked.page(question, cursor, 1)
    for place in range(len(cursor)):
        changed = cursor[:place] + ("A" if cursor[place] != "A" else "B") + cursor[place + 1 :]
        with pytest.raises(InvalidCursor):
            index.page(ALL, changed, 1)


def test_an_index_that_is_up_to_date_is_opened_and_not_written(archive: StoredDataset):
    dataset = pushed(archive, record("a", 1))
    SearchIndex.of(dataset)
    before = {path: path.stat().st_mtime_ns for path in dataset.cache.rglob("archive-index/*")}
    told: list[Progress] = []
    assert SearchIndex.of(dataset, told.append).num_records == 1
    assert {path: path.stat().st_mtime_ns for path in dataset.cache.rglob("archive-index/*")} == before
    assert told == []


def test_an_index_is_extended_with_new_rows_alone(archive: StoredDataset):
    dataset = pushed(archive, *(record(f"a{number}", number) for number in range(3_000)))
    SearchIndex.of(dataset)
    old = set(dataset.cache.rglob("archive-index/segment-*"))
    told: list[Progress] = []
    index = SearchIndex.of(pushed(dataset, record("b", 1)), told.append)
    assert old < set(dataset.cache.rglob("archive-index/segment-*"))
    assert [(one.done, one.total, one.unit) for one in told] == [(1, 1, "records")]
    assert index.num_records == 3_001


def test_many_pushes_leave_few_segments(archive: StoredDataset):
    dataset = archive
    for number in range(40):
        dataset = pushed(dataset, record(f"a{number}", number))
        index = SearchIndex.of(dataset)
    assert len(index.segments) == 1
    assert len(list(dataset.cache.rglob("archive-index/*"))) == 2
    assert index.num_records == 40


def test_a_dataset_that_was_loaded_before_a_commit_does_not_set_the_index_back(archive: StoredDataset):
    old = pushed(archive, record("a", 1))
    assert old.state.next_offset == 1  # it has been read
    new = pushed(old, record("b", 2))
    SearchIndex.of(new)
    files = set(new.cache.rglob("archive-index/*"))
    assert SearchIndex.of(old).num_records == 2
    assert set(new.cache.rglob("archive-index/*")) == files


def test_branches_have_an_index_each(archive: StoredDataset):
    dataset = pushed(archive, record("a", 1))
    SearchIndex.of(dataset)
    branch = dataset.on("try")
    head = dataset.state.head
    assert head is not None
    branch.layout.refs.compare_and_swap("head", None, head)
    branch = pushed(branch.reloaded(), record("b", 2))
    assert SearchIndex.of(branch).num_records == 2
    assert SearchIndex.of(dataset.reloaded()).num_records == 1
