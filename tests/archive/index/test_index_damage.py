"""An index that is damaged, of somebody else, or behind a rewritten history answers right all the same."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from zlib import crc32

import pytest
from support.archive.commits import APPEND, FROM, TO, commit, new_archive, record
from support.examples import examples

from odfpy import Workspace
from odfpy.archive.index.adding import Sizes
from odfpy.archive.index.catalog import FILE
from odfpy.archive.index.search import SearchIndex
from odfpy.archive.question import Question
from odfpy.archive.times import FIRST, LAST
from odfpy.coordinator.maintenance.compact import CompactOptions
from odfpy.coordinator.storage.stored_dataset import StoredDataset
from odfpy.errors import ObjectNotFound, OdfError

ALL = Question(what=("syslog", "nginx"), start=FIRST, end=LAST)
SIZES = Sizes(segment_rows=40, least_rows=4, fanout=2)
RECORDS = [record(f"a{number}", number, number + 3, work_id=f"job-{number % 9}") for number in range(100)]


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> StoredDataset:
    """An archive with corrections, whose index has several segments."""
    dataset = new_archive(tmp_path_factory.mktemp("prepared"))
    for first in range(0, 100, 25):
        dataset = commit(dataset, [(APPEND, one) for one in RECORDS[first : first + 25]])
        SearchIndex.of(dataset, sizes=SIZES)
    moved = record("a3", 1_000, where="web2")
    dataset = commit(dataset, [(FROM, RECORDS[3]), (TO, moved)])
    assert len(SearchIndex.of(dataset, sizes=SIZES).segments) > 2
    return dataset


@pytest.fixture
def archive(prepared: StoredDataset, tmp_path: Path) -> StoredDataset:
    """A copy of it."""
    place = tmp_path / "workspace"
    shutil.copytree(prepared.workspace_folder.root, place)
    return Workspace.open(place).storage.get("logs")


def folder(dataset: StoredDataset) -> Path:
    return dataset.cache / "archive-index"


def answers(dataset: StoredDataset) -> list[object]:
    """Something that every part of the index is read for."""
    index = SearchIndex.of(dataset, sizes=SIZES)
    names = [index.names(), index.names("syslog"), index.days("syslog", since=0, until=10**6), index.num_records]
    times = [index.page(ALL, None, 30).records, index.latest("syslog", "web1", since=0, until=50)]
    jobs = [index.page(Question(what=("syslog",), work_id=f"job-{number}"), None, 30).records for number in range(9)]
    there = index.page(Question(what=("syslog",), where=("web1", "web2"), start=90, end=2_000), None, 30)
    known = [index.known([one.id for one in RECORDS]), index.histories_of_object(RECORDS[3].object)]
    return [*names, *times, *jobs, there.records, *known]


@pytest.fixture(scope="module")
def right(prepared: StoredDataset) -> list[object]:
    return answers(prepared)


def put_back(archive: StoredDataset, prepared: StoredDataset) -> list[Path]:
    """Bring the index back to how it was; gives its files."""
    shutil.rmtree(folder(archive), ignore_errors=True)
    return sorted(Path(shutil.copytree(folder(prepared), folder(archive))).iterdir())


def test_a_byte_that_is_flipped_anywhere_changes_no_answer(
    prepared: StoredDataset, archive: StoredDataset, right: list[object]
):
    for number, original in enumerate(sorted(folder(prepared).iterdir())):
        file, data, times = folder(archive) / original.name, original.read_bytes(), original.stat()
        for place in range(number, len(data), max(1, len(data) // examples(3, 15))):
            put_back(archive, prepared)
            file.write_bytes(data[:place] + bytes([data[place] ^ 0x10]) + data[place + 1 :])
            os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
            assert answers(archive) == right, (file.name, place)


@pytest.mark.parametrize("part", [0.0, 0.1, 0.5, 0.99])
def test_a_file_that_is_cut_off_changes_no_answer(
    prepared: StoredDataset, archive: StoredDataset, right: list[object], part: float
):
    for file in put_back(archive, prepared):
        put_back(archive, prepared)
        os.truncate(file, int(file.stat().st_size * part))
        assert answers(archive) == right


@pytest.mark.parametrize("text", [b"", b"garbage", b"\0" * 5000, b"{}\na3c1d6a0\n", b"[1]\n6d2b2f1c\n"])
def test_garbage_in_the_place_of_a_file_changes_no_answer(
    prepared: StoredDataset, archive: StoredDataset, right: list[object], text: bytes
):
    for file in put_back(archive, prepared):
        put_back(archive, prepared)
        file.write_bytes(text)
        assert answers(archive) == right


def test_files_that_are_missing_are_made_again(prepared: StoredDataset, archive: StoredDataset, right: list[object]):
    for file in put_back(archive, prepared):
        put_back(archive, prepared)
        file.unlink()
        assert answers(archive) == right


def test_a_list_of_another_format_is_not_used(archive: StoredDataset, right: list[object]):
    file = folder(archive) / FILE
    text = (
        file.read_bytes()
        .rsplit(b"\n", 2)[0]
        .replace(b'"format": 1', b'"format": 2')
        .replace(b'"rows": 1', b'"rows": 9')
    )
    file.write_bytes(text + f"\n{crc32(text):08x}\n".encode())
    assert answers(archive) == right


def test_an_open_index_outlives_its_files_and_notices_damage_in_them(archive: StoredDataset, right: list[object]):
    index = SearchIndex.of(archive, sizes=SIZES)
    for path in folder(archive).glob("segment-*"):
        path.write_bytes(b"\xff" * path.stat().st_size)
    assert index.page(ALL, None, 30).records == right[4]
    index = SearchIndex.of(archive, sizes=SIZES)
    shutil.rmtree(folder(archive))
    assert index.page(ALL, None, 30).records == right[4]


def test_the_index_of_another_archive_is_not_used(archive: StoredDataset, tmp_path: Path, right: list[object]):
    other = commit(new_archive(tmp_path / "other"), [(APPEND, record("foreign", 5))])
    SearchIndex.of(other)
    shutil.rmtree(folder(archive))
    shutil.copytree(folder(other), folder(archive))
    assert answers(archive) == right


def test_a_head_that_was_set_back_has_the_index_made_again(archive: StoredDataset):
    SearchIndex.of(archive, sizes=SIZES)
    workspace = Workspace.open(archive.workspace_folder.root)
    blocks = archive.chain.in_order(archive.state.head)
    workspace.maintenance.reset("logs", str(blocks[-2].block.sequence_number))
    dataset = workspace.storage.get("logs")
    index = SearchIndex.of(dataset, sizes=SIZES)
    assert index.get("a3") == RECORDS[3]
    dataset = commit(dataset, [(APPEND, record("new", 7))])
    assert SearchIndex.of(dataset, sizes=SIZES).num_records == 101


def test_a_history_that_was_compacted_gives_the_same_answers(archive: StoredDataset, right: list[object]):
    workspace = Workspace.open(archive.workspace_folder.root)
    result = workspace.maintenance.compact("logs", CompactOptions())
    assert result.new_head != result.old_head
    assert answers(workspace.storage.get("logs")) == right


def test_a_slice_that_is_missing_is_an_error_and_leaves_no_index(archive: StoredDataset):
    shutil.rmtree(folder(archive))
    data = sorted((archive.folder / "data").iterdir())
    data[0].rename(archive.folder / "elsewhere")
    with pytest.raises(ObjectNotFound, match="Missing data file"):
        SearchIndex.of(archive)
    assert not (folder(archive) / FILE).exists()


def test_no_place_for_an_index_is_an_error(archive: StoredDataset):
    shutil.rmtree(folder(archive))
    folder(archive).write_text("in the way")
    with pytest.raises(OdfError, match="search index of logs cannot be written"):
        SearchIndex.of(archive)
