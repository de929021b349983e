"""An archive in a workspace: what is pushed is found, read and proven; nothing is rewritten."""

from __future__ import annotations

import errno
import io
import os
import shutil
from dataclasses import replace
from pathlib import Path
from threading import Barrier, Thread
from typing import BinaryIO, cast

import pytest

from odfpy.archive import NewFile, Pushed, PushOutcome, Status, open_archive
from odfpy.archive import files as archive_files
from odfpy.archive.errors import (
    CannotCopy,
    FileElsewhere,
    FileRemoved,
    IdTaken,
    NoSuchFile,
    NotAFile,
    NotAnArchive,
    RecordRefused,
    WrongContent,
)
from odfpy.archive.local import LocalArchive, init_archive
from odfpy.archive.preparing import prepare
from odfpy.archive.target_folder import TargetFolder
from odfpy.chain.events import AddData
from odfpy.coordinator.workspace import Workspace
from odfpy.data.multihash import BLAKE3, SHA3_256, Multihash
from odfpy.errors import AlreadyExists, DatasetLocked, NotFound, ObjectNotFound, UsageError
from odfpy.files import try_lock

from .test_record import RECORD

WORDS = {"what": "nginx", "where": "web1", "start": "2024-03-01", "end": "2024-03-02"}


def new(file: Path, **fields: object) -> NewFile:
    words = {"what": "nginx", "where": "web1", "start": 1_709_251_200_000, "end": None}
    return NewFile(file=file, **{**words, **fields})


def outcomes(results: list[Pushed]) -> list[PushOutcome]:
    return [result.outcome for result in results]


def blocks(archive: LocalArchive) -> int:
    return archive.dataset.state.sequence_number or 0


def files_in(folder: Path, names: str) -> list[Path]:
    for name in names:
        (folder / name).write_text(name)
    return [folder / name for name in names]


# --- Pushing ---


def test_a_file_that_is_removed_before_the_commit_is_refused_alone(archive: LocalArchive, tmp_path: Path) -> None:
    files = [new(file) for file in files_in(tmp_path, "ab")]
    with archive.scratch() as scratch:
        prepared = [prepare(file, scratch / file.file.name, BLAKE3, 0) for file in files]
        prepared[0].content.path.unlink()  # as `odf gc` does with a stored file that no record names yet
        gone, other = archive.push_prepared(files, prepared, scratch)
    assert (gone.outcome, other.outcome) == (PushOutcome.REFUSED, PushOutcome.PUSHED)
    assert isinstance(gone.error, ObjectNotFound)
    assert archive.dataset.state.num_records == 1


def test_a_pushed_file_is_found_and_read_as_it_was(archive: LocalArchive, log: Path) -> None:
    (pushed,) = archive.push([log], **WORDS)
    assert pushed.outcome is PushOutcome.PUSHED
    (record,) = archive.list("nginx", where="web1", start="2024-03-01", end="2024-03-05")
    assert record == pushed.record == archive.get(record.id)
    assert (record.path, record.size, record.status) == (str(log), 10, Status.KEPT)
    assert record.object == Multihash.of(b"GET / 200\n", BLAKE3)
    assert archive.open(record).read() == b"GET / 200\n"
    assert pushed.url == f"odf://logs/{record.id}"


def test_files_of_one_push_are_one_commit(archive: LocalArchive, tmp_path: Path) -> None:
    before = blocks(archive)
    assert set(outcomes(archive.push(files_in(tmp_path, "abcdef"), **WORDS))) == {PushOutcome.PUSHED}
    assert blocks(archive) == before + 1
    event = next(archive.dataset.chain.iter_blocks()).block.event
    assert isinstance(event, AddData)
    assert event.extra is not None
    assert event.extra.to_dict() == {"opendatafabric.org/linkedObjects": {"numObjectsNaive": 6, "sizeNaive": 6}}


def test_pushing_again_changes_nothing(archive: LocalArchive, log: Path) -> None:
    (first,) = archive.push([log], **WORDS)
    head = archive.dataset.state.head
    (again,) = archive.push([log], **WORDS)
    assert (again.outcome, again.record) == (PushOutcome.KNOWN, first.record)
    assert archive.dataset.state.head == head


def test_the_same_file_twice_in_one_push_is_one_record(archive: LocalArchive, log: Path) -> None:
    assert outcomes(archive.push([log, log], **WORDS)) == [PushOutcome.PUSHED, PushOutcome.KNOWN]
    assert len(list(archive.list("nginx", start=0, end="now"))) == 1


def test_one_content_is_stored_once(archive: LocalArchive, tmp_path: Path) -> None:
    shutil.copy(files_in(tmp_path, "a")[0], tmp_path / "b")
    archive.push([tmp_path / "a", tmp_path / "b"], **WORDS)
    archive.push([tmp_path / "a"], **{**WORDS, "where": "web2"})
    records = list(archive.list("nginx", start=0, end="now"))
    assert len(records) == 3
    (name,) = {record.object for record in records}
    assert [one for one in archive.dataset.layout.data if one.code == BLAKE3.code] == [name]


def test_a_refused_file_keeps_no_other_from_its_place(archive: LocalArchive, tmp_path: Path) -> None:
    good, other = files_in(tmp_path, "ab")
    os.mkfifo(tmp_path / "pipe")
    results = archive.push_all(
        [
            new(good),
            new(tmp_path / "missing"),
            new(tmp_path / "pipe"),
            new(good, what="Not A Word", where="B", end=0),
            new(other),
        ]
    )
    assert outcomes(results) == [PushOutcome.PUSHED, *[PushOutcome.REFUSED] * 3, PushOutcome.PUSHED]
    errors = [result.error for result in results[1:4]]
    assert [type(error) for error in errors] == [NotFound, NotAFile, RecordRefused]
    assert isinstance(errors[2], RecordRefused)
    assert len(errors[2].reasons) == 3


def test_a_wrong_record_is_told_before_the_file_is_read(archive: LocalArchive, tmp_path: Path) -> None:
    (result,) = archive.push_all([new(tmp_path / "missing", what="Not A Word")])
    assert isinstance(result.error, RecordRefused)


def test_a_push_of_nothing_good_makes_no_block(archive: LocalArchive, tmp_path: Path) -> None:
    head = archive.dataset.state.head
    assert outcomes(archive.push([tmp_path / "missing"], **WORDS)) == [PushOutcome.REFUSED]
    assert archive.push_all([]) == []
    assert archive.dataset.state.head == head


def test_words_may_be_patterns_over_the_path(archive: LocalArchive, tmp_path: Path) -> None:
    file = tmp_path / "web7" / "job-12.log"
    file.parent.mkdir()
    file.write_bytes(b"")
    (pushed,) = archive.push(
        [file], what=r".*/(?P<a>[a-z]+)-[0-9]+\.log$~{a}", where=".*/(?P<a>[^/]+)/[^/]*$~{a}", start="mtime",
        work_id=r".*-(?P<n>[0-9]+)\.log~etl-{n}",
    )  # fmt: skip
    assert pushed.record is not None
    assert (pushed.record.what, pushed.record.where, pushed.record.work_id) == ("job", "web7", "etl-12")


def test_a_pattern_that_does_not_fit_is_a_reason_among_others(archive: LocalArchive, log: Path) -> None:
    (result,) = archive.push_all([new(log, what="/other/(?P<a>.*)~{a}", where="B")])
    assert isinstance(result.error, RecordRefused)
    assert ["what" in result.error.message, "where" in result.error.message] == [True, True]


def test_the_time_of_modification_is_a_start(archive: LocalArchive, log: Path) -> None:
    os.utime(log, ns=(0, 1_709_294_400_123_999_999))
    (pushed,) = archive.push([log], what="nginx", where="web1", start="mtime", end="mtime")
    assert pushed.record is not None
    assert (pushed.record.start, pushed.record.end) == (1_709_294_400_123, 1_709_294_400_123)


def test_an_end_before_the_time_of_modification_is_refused(archive: LocalArchive, log: Path) -> None:
    os.utime(log, (9, 9))
    (result,) = archive.push_all([new(log, start=None, end=8999)])
    assert isinstance(result.error, RecordRefused)
    assert blocks(archive) == blocks(archive)


def test_a_hash_that_is_given_is_checked(archive: LocalArchive, log: Path) -> None:
    (first,) = archive.push([log], **WORDS)
    assert first.record is not None
    wrong, other, right = archive.push_all(
        [
            new(log, hash="0" * 32),
            new(log, object=Multihash.of(b"x", BLAKE3)),
            new(log, hash=first.record.hash, object=first.record.object),
        ]
    )
    assert isinstance(wrong.error, WrongContent)
    assert isinstance(other.error, WrongContent)
    assert right.outcome is PushOutcome.PUSHED


def test_a_given_id_is_kept_and_belongs_to_one_content(archive: LocalArchive, tmp_path: Path) -> None:
    a, b = files_in(tmp_path, "ab")
    (pushed,) = archive.push_all([new(a, id="abc-1", create_time=5)])
    assert pushed.record is not None
    assert (pushed.record.id, pushed.record.create_time) == ("abc-1", 5)
    again, taken = archive.push_all([new(a, id="abc-1"), new(b, id="abc-1")])
    assert (again.outcome, again.record) == (PushOutcome.KNOWN, pushed.record)
    assert isinstance(taken.error, IdTaken)


def test_an_object_may_be_named_by_another_hash(workspace: Workspace, log: Path) -> None:
    workspace.config.set("archive.hash", "sha3-256")
    (pushed,) = init_archive(workspace, "other").push([log], **WORDS)
    assert pushed.record is not None
    assert pushed.record.object == Multihash.of(b"GET / 200\n", SHA3_256)


@pytest.mark.parametrize("size", [0, 1, 3 << 20, (9 << 20) + 1])
def test_files_of_any_size_come_back(archive: LocalArchive, tmp_path: Path, size: int) -> None:
    data = bytes(range(251)) * (size // 251 + 1)
    (tmp_path / "file").write_bytes(data[:size])
    (pushed,) = archive.push([tmp_path / "file"], **WORDS)
    assert pushed.record is not None
    with archive.open(pushed.record) as stream:
        assert stream.read() == data[:size]
    with archive.open(pushed.record, offset=size // 2) as stream:
        assert stream.read() == data[size // 2 : size]


def test_names_that_are_not_utf_8_want_another_path(archive: LocalArchive, tmp_path: Path) -> None:
    file = tmp_path / os.fsdecode(b"log-\xff")
    file.write_bytes(b"abc")
    refused, taken = archive.push_all([new(file), new(file, path="/logs/log-ff")])
    assert isinstance(refused.error, RecordRefused)
    assert "--path" in refused.error.message
    assert taken.record is not None
    assert archive.open(taken.record).read() == b"abc"


def test_a_full_disk_leaves_the_archive_as_it_was(
    archive: LocalArchive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_target: object, _data: bytes) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    head = archive.dataset.state.head
    monkeypatch.setattr(archive_files, "write_all", full)
    new_files = files_in(tmp_path, "ab")
    with pytest.raises(CannotCopy):
        archive.push(new_files, **WORDS)
    assert archive.dataset.state.head == head
    assert not list(archive.dataset.workspace_folder.scratches.iterdir())


def test_two_may_push_at_once(workspace: Workspace, archive: LocalArchive, tmp_path: Path) -> None:
    workspace.storage.lock_patience = 60
    together = Barrier(4)
    results: list[Pushed] = []

    def push(name: str) -> None:
        own = LocalArchive(workspace, workspace.storage.get("logs"))
        together.wait()
        results.extend(own.push([tmp_path / name, tmp_path / "shared"], **WORDS))

    files_in(tmp_path, "abcd")
    (tmp_path / "shared").write_text("shared")
    threads = [Thread(target=push, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(one.outcome.value for one in results) == ["known"] * 3 + ["pushed"] * 5
    assert len(list(archive.list("nginx", start=0, end="now"))) == 5


def test_a_locked_archive_is_told(workspace: Workspace, archive: LocalArchive, log: Path) -> None:
    workspace.storage.lock_patience = 0
    with archive.dataset.writing(), pytest.raises(DatasetLocked):
        LocalArchive(workspace, workspace.storage.get("logs")).push([log], **WORDS)


# --- Looking ---


def test_the_latest_is_the_one_that_started_last(archive: LocalArchive, tmp_path: Path) -> None:
    a, b, c = files_in(tmp_path, "abc")
    day = 86_400_000
    now = archive_now()
    archive.push_all([new(a, start=now - 3 * day), new(b, start=now - day), new(c, start=now + 3 * day)])
    assert archive.latest("nginx", "web1").path == str(b)
    with pytest.raises(NoSuchFile, match='No "nginx" files found in last 14 days from "web2"'):
        archive.latest("nginx", "web2")


def test_older_files_want_a_larger_lookback(archive: LocalArchive, log: Path) -> None:
    archive.push_all([new(log, start=archive_now() - 20 * 86_400_000)])
    with pytest.raises(NoSuchFile):
        archive.latest("nginx", "web1", lookback=19)
    assert archive.latest("nginx", "web1", lookback=20).path == str(log)


def archive_now() -> int:
    from odfpy.data.timestamp import Timestamp

    return Timestamp.now().millis


def test_what_is_not_there_is_told(archive: LocalArchive) -> None:
    with pytest.raises(NoSuchFile):
        archive.get("nothing")
    assert list(archive.list("nginx", start=0, end="now")) == []
    with pytest.raises(UsageError):
        archive.list("nginx")


def test_damaged_bytes_are_never_handed_out_whole(archive: LocalArchive, log: Path) -> None:
    (pushed,) = archive.push([log], **WORDS)
    assert pushed.record is not None
    path = archive.dataset.layout.data.local_path(pushed.record.object)
    assert path is not None
    for damage in (b"GET / 404\n", b"GET /", b"GET / 200\nmore", b""):
        path.write_bytes(damage)
        with archive.open(pushed.record) as stream, pytest.raises(WrongContent):
            stream.read()


def test_missing_bytes_are_elsewhere_until_somebody_pushes_them_again(archive: LocalArchive, log: Path) -> None:
    (pushed,) = archive.push([log], **WORDS)
    assert pushed.record is not None
    archive.dataset.layout.data.delete(pushed.record.object)
    with pytest.raises(FileElsewhere):
        archive.open(pushed.record)
    assert outcomes(archive.push([log], **WORDS)) == [PushOutcome.KNOWN]
    assert archive.open(pushed.record).read() == b"GET / 200\n"


# --- Fetching ---


def test_a_file_is_fetched_by_address_or_id(archive: LocalArchive, log: Path, tmp_path: Path) -> None:
    (pushed,) = archive.push([log], **WORDS)
    assert pushed.record is not None
    assert pushed.url is not None
    fetched = archive.fetch(pushed.url, folder=tmp_path / "to")
    assert (fetched, fetched.read_bytes()) == (tmp_path / "to" / pushed.record.id, log.read_bytes())
    again = archive.fetch(pushed.record.id, folder=tmp_path / "to", template="{what}/{where}-{start_iso}-{name}")
    assert again == tmp_path / "to" / "nginx" / "web1-2024-03-01T00:00:00.000-nginx.log"
    assert sorted(path.name for path in (tmp_path / "to").iterdir()) == sorted([pushed.record.id, "nginx"])


def test_fetching_again_is_fine_and_another_file_is_never_overwritten(archive: LocalArchive, tmp_path: Path) -> None:
    a, b = files_in(tmp_path, "ab")
    first, second = archive.push([a, b], **WORDS)
    assert first.url is not None
    assert second.url is not None
    target = archive.fetch(first.url, folder=tmp_path / "to", template="same")
    assert archive.fetch(first.url, folder=tmp_path / "to", template="same") == target
    with pytest.raises(AlreadyExists):
        archive.fetch(second.url, folder=tmp_path / "to", template="same")
    assert target.read_text() == "a"


def test_a_fetch_goes_on_where_the_last_one_broke_off(archive: LocalArchive, tmp_path: Path) -> None:
    data = os.urandom(3 << 20)
    (tmp_path / "file").write_bytes(data)
    (pushed,) = archive.push([tmp_path / "file"], **WORDS)
    assert pushed.record is not None
    part = tmp_path / "to" / f".odf-part-{pushed.record.object}"
    part.parent.mkdir()
    part.write_bytes(data[: 1 << 20])
    asked = []

    class Watched(LocalArchive):
        def open(self, record: object, *, offset: int = 0) -> object:
            asked.append(offset)
            return super().open(record, offset=offset)

    watched = Watched(archive._workspace, archive.dataset)
    assert watched.fetch(pushed.record.id, folder=tmp_path / "to").read_bytes() == data
    assert asked == [1 << 20]
    assert not part.exists()


def test_a_wrong_part_is_thrown_away(archive: LocalArchive, log: Path, tmp_path: Path) -> None:
    (pushed,) = archive.push([log], **WORDS)
    assert pushed.record is not None
    part = tmp_path / "to" / f".odf-part-{pushed.record.object}"
    part.parent.mkdir()
    part.write_bytes(b"wrong")
    with pytest.raises(WrongContent):
        archive.fetch(pushed.record.id, folder=tmp_path / "to")
    assert archive.fetch(pushed.record.id, folder=tmp_path / "to").read_bytes() == log.read_bytes()


def test_two_who_fetch_the_same_content_at_once_do_not_share_a_part(
    archive: LocalArchive, log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (pushed,) = archive.push([log], **WORDS)
    record = pushed.record
    assert record is not None
    folder = TargetFolder(tmp_path / "to")

    def lock_late(file: BinaryIO) -> bool:
        monkeypatch.undo()
        folder.write("first", lambda at: archive.open(record, offset=at), record)
        return try_lock(file)

    monkeypatch.setattr("odfpy.archive.target_folder.try_lock", lock_late)
    folder.write("second", lambda at: archive.open(record, offset=at), record)
    assert {file.name: file.read_bytes() for file in folder.path.iterdir()} == {
        "first": log.read_bytes(),
        "second": log.read_bytes(),
    }


def test_of_a_source_that_does_not_end_no_more_is_written_than_there_should_be(
    archive: LocalArchive, log: Path, tmp_path: Path
) -> None:
    (pushed,) = archive.push([log], **WORDS)
    record = pushed.record
    assert record is not None
    part = tmp_path / f".odf-part-{record.object}"
    part.write_bytes(log.read_bytes()[:2])
    given = 0

    class Endless(io.RawIOBase):
        def read(self, size: int = -1) -> bytes:
            nonlocal given
            given += size
            assert given < 10 * record.size
            return bytes(size)

    with pytest.raises(WrongContent):
        TargetFolder(tmp_path).write("name", lambda _: cast("BinaryIO", Endless()), record)
    assert given == record.size - 1
    assert not part.exists()


def test_addresses_of_other_archives_are_refused(archive: LocalArchive, log: Path) -> None:
    archive.push([log], **WORDS)
    for address in ("odf://other/abc", "https://example.com/logs/v0/archive/files/abc/data", "s3://bucket/abc/data"):
        with pytest.raises(UsageError):
            archive.fetch(address)


# --- Corrections and withdrawals ---


def test_a_correction_is_a_pair_of_rows_with_who_and_why(archive: LocalArchive, log: Path) -> None:
    (pushed,) = archive.push([log], **WORDS)
    assert pushed.record is not None
    (changed,) = archive.change([pushed.record.id], who="ann", why="wrong host", where="web2")
    assert changed == replace(pushed.record, where="web2", who="ann", why="wrong host")
    assert archive.get(pushed.record.id) == changed
    assert [one.id for one in archive.list("nginx", where="web2", start=0, end="now")] == [changed.id]
    assert list(archive.list("nginx", where="web1", start=0, end="now")) == []
    rows = archive._workspace.tail("logs", 10).select(["op", "id", "where", "who", "why"]).to_pylist()
    assert [tuple(row.values()) for row in rows] == [
        (0, changed.id, "web1", None, None),
        (2, changed.id, "web1", None, None),
        (3, changed.id, "web2", "ann", "wrong host"),
    ]


def test_a_correction_that_changes_nothing_makes_no_block(archive: LocalArchive, log: Path) -> None:
    (pushed,) = archive.push([log], **WORDS)
    assert pushed.record is not None
    head = archive.dataset.state.head
    assert archive.change([pushed.record.id], who="ann", why="x", where="web1") == []
    assert archive.dataset.state.head == head


@pytest.mark.parametrize("values", [{"where": "Not A Word"}, {"end": 0}, {"path": "relative"}])
def test_a_correction_that_breaks_a_rule_changes_nothing(
    archive: LocalArchive, tmp_path: Path, values: dict[str, object]
) -> None:
    results = archive.push(files_in(tmp_path, "ab"), **WORDS)
    head = archive.dataset.state.head
    with pytest.raises(RecordRefused):
        archive.change([one.record.id for one in results if one.record], who="ann", why="x", **values)
    assert archive.dataset.state.head == head


@pytest.mark.parametrize(("who", "why"), [("", "x"), ("ann", " ")])
def test_nobody_changes_a_record_without_a_name_and_a_reason(
    archive: LocalArchive, log: Path, who: str, why: str
) -> None:
    (pushed,) = archive.push([log], **WORDS)
    assert pushed.record is not None
    with pytest.raises(RecordRefused):
        archive.withdraw([pushed.record.id], who=who, why=why)


def test_a_withdrawn_file_is_not_found_but_known(archive: LocalArchive, log: Path) -> None:
    (pushed,) = archive.push([log], **WORDS)
    assert pushed.record is not None
    (gone,) = archive.withdraw([pushed.record.id], who="ann", why="has passwords in it")
    assert (gone.status, gone.who, gone.why) == (Status.WITHDRAWN, "ann", "has passwords in it")
    assert gone.released is not None
    assert list(archive.list("nginx", start=0, end="now")) == []
    assert archive.get(gone.id) == gone
    (refused,) = archive.push([log], **WORDS)
    assert isinstance(refused.error, RecordRefused)
    assert "withdrawn by ann: has passwords in it" in refused.error.message


def test_bytes_of_a_withdrawn_file_say_that_they_were_removed(archive: LocalArchive, log: Path) -> None:
    (pushed,) = archive.push([log], **WORDS)
    assert pushed.record is not None
    (gone,) = archive.withdraw([pushed.record.id], who="ann", why="has passwords in it")
    archive.dataset.layout.data.delete(gone.object)
    with pytest.raises(FileRemoved, match="by ann: has passwords in it"):
        archive.open(gone)


def test_a_correction_of_a_removed_file_does_not_take_the_place_of_its_withdrawal(
    archive: LocalArchive, log: Path
) -> None:
    (pushed,) = archive.push([log], **WORDS)
    assert pushed.record is not None
    archive.withdraw([pushed.record.id], who="ann", why="has passwords in it")
    (corrected,) = archive.change([pushed.record.id], who="bob", why="wrong host", where="web2")
    archive.dataset.layout.data.delete(corrected.object)
    with pytest.raises(FileRemoved, match="by ann: has passwords in it"):
        archive.open(corrected)
    (refused,) = archive.push([log], **WORDS)
    assert "withdrawn by ann: has passwords in it" in str(refused.error)


def test_what_was_withdrawn_is_not_withdrawn_again_and_does_not_expire(archive: LocalArchive, log: Path) -> None:
    (pushed,) = archive.push([log], **WORDS)
    assert pushed.record is not None
    now = archive_now()
    archive.change([pushed.record.id], who="policy", why="a day is over", status=Status.EXPIRED, released=now)
    (gone,) = archive.withdraw([pushed.record.id], who="ann", why="has passwords in it")
    head = archive.dataset.state.head
    assert archive.withdraw([gone.id], who="bob", why="x") == []
    assert archive.change([gone.id], who="policy", why="a day is over", status=Status.EXPIRED, released=now) == []
    assert (archive.dataset.state.head, archive.get(gone.id)) == (head, gone)


# --- Which archive ---


def test_the_only_archive_is_meant_or_the_one_that_is_set(workspace: Workspace) -> None:
    with pytest.raises(NotAnArchive, match="has no archive"):
        open_archive(workspace=workspace)
    init_archive(workspace, "logs")
    assert open_archive(workspace=workspace).name == "logs"
    init_archive(workspace, "images")
    with pytest.raises(NotAnArchive, match="images, logs"):
        open_archive(workspace=workspace)
    assert open_archive("images", workspace=workspace.root).name == "images"
    workspace.config.set("archive.name", "logs")
    assert open_archive(workspace=Workspace.open(workspace.root)).name == "logs"


def test_other_datasets_are_no_archives(workspace: Workspace) -> None:
    from support.chains.workspaces import root

    from odfpy.chain.encoding import load_snapshots

    workspace.add(load_snapshots(root("append", "{kind: Append}"), "append"))
    with pytest.raises(NotAnArchive, match="append"):
        open_archive("append", workspace=workspace)
    with pytest.raises(AlreadyExists):
        init_archive(workspace, "append")


def test_an_archive_without_records_has_its_columns_and_links(archive: LocalArchive) -> None:
    schema = archive.dataset.state.schema
    assert schema is not None
    field = schema.field("object")
    assert field is not None
    assert field.extra is not None
    assert field.extra.to_dict()["opendatafabric.org/type"] == {
        "kind": "ObjectLink",
        "linkType": {"kind": "Multihash"},
    }
    assert RECORD.checked()
