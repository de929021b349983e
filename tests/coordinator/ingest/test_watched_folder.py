"""Which files of a folder are new and complete."""

from __future__ import annotations

from pathlib import Path

from support.processes.leases import has_leases

from odfpy.chain.events import SourceState
from odfpy.coordinator.ingest.watched_folder import FileStamp, WatchedFolder, files_in, is_being_written
from odfpy.data.timestamp import Timestamp


def stamp(name: str, size: int = 1) -> FileStamp:
    return FileStamp(name, size, Timestamp(0))


A, B = stamp("a.csv"), stamp("b.csv")


def test_a_file_is_ready_once_it_has_not_changed_for_a_while() -> None:
    folder = WatchedFolder(settle=1)
    assert folder.ready([A], now=10) == []
    assert folder.ready([A], now=10.9) == []
    assert folder.ready([A], now=11) == [A]


def test_a_file_that_grows_is_waited_for() -> None:
    folder = WatchedFolder(settle=1)
    for now, size in enumerate((1, 2, 3)):
        assert folder.ready([stamp("a.csv", size)], now) == []
    assert folder.ready([stamp("a.csv", 3)], now=3) == [stamp("a.csv", 3)]


def test_a_file_that_was_away_begins_anew() -> None:
    folder = WatchedFolder(settle=1)
    assert folder.ready([A], now=0) == folder.ready([], now=1) == folder.ready([A], now=2) == []


def test_files_that_are_ready_come_in_the_order_of_their_names() -> None:
    folder = WatchedFolder(settle=0)
    assert folder.ready([B, A], now=0) == [A, B]


def test_a_file_is_taken_in_once_and_a_changed_one_is_another() -> None:
    folder = WatchedFolder(settle=0, taken_in=[A])
    assert folder.ready([A, B], now=0) == [B]
    folder.mark_ingested(B)
    changed = stamp("b.csv", 2)
    assert folder.ready([A, changed], now=1) == [changed]
    assert folder.was_ingested_before(changed)
    assert not folder.was_ingested_before(stamp("c.csv"))


def test_a_bad_file_is_left_alone_until_it_changes() -> None:
    folder = WatchedFolder(settle=0)
    folder.refuse(A)
    assert folder.ready([A, B], now=0) == [B]
    assert folder.ready([stamp("a.csv", 2)], now=1) == [stamp("a.csv", 2)]


def test_a_postponed_file_comes_later() -> None:
    folder = WatchedFolder(settle=1)
    folder.ready([A], now=0)
    folder.postpone(A, until=20)
    assert folder.ready([A], now=19) == []
    assert folder.ready([A], now=20) == [A]


def test_a_stamp_is_remembered_in_the_chain() -> None:
    odd = FileStamp("a b  c.csv", 12, Timestamp.parse("2024-03-01T12:00:00.123456789Z"))
    state = odd.as_state("default")
    assert state.value == "a b  c.csv 2024-03-01T12:00:00.123456789Z 12"
    assert FileStamp.of_state(state) == odd
    for other in (
        SourceState("default", "odf/etag", state.value),
        SourceState("default", state.kind, "non sense"),
        SourceState("default", state.kind, "a b c"),
    ):
        assert FileStamp.of_state(other) is None


def test_what_counts_as_a_file(tmp_path: Path) -> None:
    for name in ("a.csv", "b.json", ".hidden", "c.csv.part", "d.tmp", "e.csv~"):
        (tmp_path / name).write_text(name)
    (tmp_path / "folder").mkdir()
    (tmp_path / "link.csv").symlink_to(tmp_path / "a.csv")
    (tmp_path / "broken.csv").symlink_to(tmp_path / "nowhere")
    assert sorted(found.name for found in files_in(tmp_path)) == ["a.csv", "b.json", "link.csv"]
    assert sorted(found.name for found in files_in(tmp_path, "*.csv")) == ["a.csv", "link.csv"]


def test_a_file_that_somebody_writes_is_known_where_the_system_tells(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    with path.open("w") as file:
        file.write("half")
        assert is_being_written(path) == has_leases(tmp_path)
    assert not is_being_written(path)
    with path.open():
        assert not is_being_written(path)
    assert not is_being_written(tmp_path / "nowhere")
