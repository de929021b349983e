"""Copies of archives with all records and some files: the others come from where the copy is from."""

from __future__ import annotations

from pathlib import Path

import pytest

from odfpy.archive import open_archive
from odfpy.archive.errors import FileElsewhere, WrongContent
from odfpy.archive.local import LocalArchive
from odfpy.coordinator.workspace import Workspace
from odfpy.data.multihash import Multihash

from .test_local_archive import WORDS, files_in


@pytest.fixture
def public(tmp_path: Path) -> str:
    """The URL of a repository, a folder."""
    (tmp_path / "public").mkdir()
    return (tmp_path / "public").as_uri()


@pytest.fixture
def copy(archive: LocalArchive, workspace: Workspace, public: str, tmp_path: Path) -> LocalArchive:
    """A copy with the file `a` only, of an archive with `a` and `b`."""
    archive.push(files_in(tmp_path, "a"), **WORDS)
    archive.push(files_in(tmp_path, "b"), **{**WORDS, "what": "syslog"})
    assert all(result.error is None for result in workspace.push(["logs"], to=f"{public}/logs"))
    elsewhere = Workspace.init(tmp_path / "elsewhere")
    (result,) = elsewhere.pull([f"{public}/logs"], as_name="logs", files="what=nginx")
    assert result.error is None
    found = open_archive("logs", workspace=elsewhere)
    assert isinstance(found, LocalArchive)
    return found


def named(archive: LocalArchive, what: str) -> str:
    (record,) = archive.list(what, start=0, end="now")
    return record.id


def has(archive: LocalArchive, what: str) -> bool:
    return archive.get(named(archive, what)).object in archive.dataset.layout.data


def test_a_copy_has_all_records_and_the_files_that_were_wanted(copy: LocalArchive) -> None:
    assert [has(copy, what) for what in ("nginx", "syslog")] == [True, False]


def test_other_files_are_fetched_from_where_the_copy_is_from(copy: LocalArchive, tmp_path: Path) -> None:
    assert copy.fetch(named(copy, "syslog"), folder=tmp_path / "to").read_text() == "b"
    with copy.open(copy.get(named(copy, "syslog"))) as stream:
        assert stream.read() == b"b"
    assert not has(copy, "syslog")


def test_wrong_bytes_from_elsewhere_are_never_taken(copy: LocalArchive, tmp_path: Path) -> None:
    name = copy.get(named(copy, "syslog")).object
    (tmp_path / "public" / "logs" / "data" / str(name)).write_bytes(b"x")
    with pytest.raises(WrongContent):
        copy.fetch(named(copy, "syslog"), folder=tmp_path / "to")
    assert not list((tmp_path / "to").iterdir())


def test_what_nobody_has_is_told_with_the_reason(copy: LocalArchive, tmp_path: Path) -> None:
    name = copy.get(named(copy, "syslog")).object
    (tmp_path / "public" / "logs" / "data" / str(name)).unlink()
    with pytest.raises(FileElsewhere, match=f"Missing object: .*{name}"):
        copy.open(copy.get(named(copy, "syslog")))


def test_a_server_asks_nobody_else(copy: LocalArchive) -> None:
    served = LocalArchive(copy._workspace, copy.dataset, asks_elsewhere=False)
    with pytest.raises(FileElsewhere, match="fetches no files from other copies"):
        served.open(served.get(named(served, "syslog")))


def test_a_later_pull_with_all_files_completes_the_copy(copy: LocalArchive) -> None:
    (result,) = copy._workspace.pull(["logs"], files="all")
    assert result.error is None
    assert has(copy, "syslog")
    assert all(report.ok for report in copy._workspace.verify(all=True))


def test_a_copy_that_has_more_is_completed_too(copy: LocalArchive, tmp_path: Path) -> None:
    copy.push(files_in(tmp_path, "c"), **{**WORDS, "what": "own"})
    (result,) = copy.workspace.pull(["logs"], files="all")
    assert result.error is None
    ahead, files = result.notes
    assert (ahead.startswith("it has 1 block more than "), files) == (True, "1 file (1 byte)")
    assert [has(copy, what) for what in ("nginx", "syslog", "own")] == [True] * 3


def test_verification_of_a_partial_copy_finds_nothing_wrong(copy: LocalArchive) -> None:
    (report,) = copy._workspace.verify(["logs"])
    assert report.ok


def test_a_compressed_archive_gives_what_was_pushed(
    workspace: Workspace, archive: LocalArchive, public: str, tmp_path: Path
) -> None:
    workspace.config.set("archive.compression", "zstd")
    text = b"GET /index.html 200\n" * 10_000
    (tmp_path / "text").write_bytes(text)
    (pushed,) = archive.push([tmp_path / "text"], **WORDS)
    assert pushed.record is not None
    folder = archive.dataset.folder
    assert (folder / "packed" / str(pushed.record.object)).stat().st_size * 10 < len(text)
    assert pushed.record.object == Multihash.of(text, pushed.record.object.algorithm)
    assert archive.open(pushed.record).read() == text
    assert archive.open(pushed.record, offset=100_000).read() == text[100_000:]
    assert all(report.ok for report in workspace.verify(all=True))
    assert all(result.error is None for result in workspace.push(["logs"], to=f"{public}/logs"))
    assert (tmp_path / "public" / "logs" / "data" / str(pushed.record.object)).read_bytes() == text


def test_compressed_files_are_no_garbage_until_they_were_let_go(
    workspace: Workspace, archive: LocalArchive, tmp_path: Path
) -> None:
    from odfpy.archive.retention.releasing import released_objects

    workspace.config.set("archive.compression", "zstd")
    (tmp_path / "text").write_bytes(b"GET /index.html 200\n" * 10_000)
    (pushed,) = archive.push([tmp_path / "text"], **WORDS)
    assert pushed.record is not None
    packed = archive.dataset.folder / "packed" / str(pushed.record.object)
    list(workspace.maintenance.gc(may_remove=released_objects))
    assert packed.exists()
    archive.withdraw([pushed.record.id], who="ann", why="wrong")
    list(workspace.maintenance.gc())
    assert packed.exists()
    list(workspace.maintenance.gc(may_remove=released_objects))
    assert not packed.exists()
    assert all(report.ok for report in workspace.verify(all=True))
