"""The uploader: what is in a queue comes into the archive once, whatever happens on the way."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from io import FileIO
from pathlib import Path
from typing import Any

import pytest

from odfpy.archive.archive import Archive
from odfpy.archive.pushing import NewFile, Pushed
from odfpy.archive.queue.enqueue import Enqueued
from odfpy.archive.queue.folder import QueueFolder, QueueGone, UploaderFolder
from odfpy.archive.queue.uploader import Ingest, Uploader, UploadLimits, UploadSummary
from odfpy.errors import OdfError, TransferError, UsageError
from odfpy.testing.archives import FolderArchive

Put = Callable[..., Enqueued]

SHORT = UploadLimits(timeout=0.05, gather=0.05, retry=0.01, longest=0.02)


class Told:
    """What an uploader tells."""

    def __init__(self) -> None:
        self.ingests: list[Ingest] = []
        self.refused: list[tuple[str, OdfError]] = []
        self.changed = threading.Condition()

    def ingest(self, one: Ingest) -> None:
        with self.changed:
            self.ingests.append(one)
            self.changed.notify_all()

    def refuse(self, bundle: Path, error: OdfError) -> None:
        with self.changed:
            self.refused.append((bundle.name, error))
            self.changed.notify_all()

    def wait_for(self, condition: Callable[[], bool]) -> None:
        with self.changed:
            assert self.changed.wait_for(condition, 60)

    def pushed(self) -> int:
        return sum(len(one.results) for one in self.ingests)


@pytest.fixture
def told() -> Told:
    return Told()


def uploader(queue: QueueFolder, archive: Archive, told: Told, limits: UploadLimits = SHORT) -> Uploader:
    return Uploader(queue, lambda: archive, limits, on_ingest=told.ingest, on_refused=told.refuse)


@contextmanager
def running(working: Uploader) -> Iterator[list[UploadSummary]]:
    """An uploader in a thread, which is stopped in the end."""
    done: list[UploadSummary] = []
    thread = threading.Thread(target=lambda: done.append(working.run()))
    thread.start()
    try:
        yield done
    finally:
        working.stop()
        thread.join(60)
        assert not thread.is_alive()


def contents(archive: FolderArchive) -> list[bytes]:
    return sorted((archive.path / "contents" / str(record.object)).read_bytes() for record in archive.records())


def names(queue: QueueFolder) -> list[str]:
    return sorted(queue.waiting())


# --- What is there, and what comes -----------------------------------------------------------------------------------


def test_what_waits_is_pushed_as_it_was_said(queue: QueueFolder, store: FolderArchive, put: Put, told: Told) -> None:
    enqueued = put(b"hello", end=2000, work_id="job-1")
    summary = uploader(queue, store, told).run()
    (record,) = store.records()
    assert record.metadata() == enqueued.metadata.to_dict()
    assert contents(store) == [b"hello"]
    assert (summary.pushed, summary.known, summary.refused, summary.trouble) == (1, 0, 0, None)
    assert names(queue) == []
    assert list((queue.path / ".work").iterdir()) == []


def test_what_comes_later_is_pushed_without_looking(
    queue: QueueFolder, store: FolderArchive, put: Put, told: Told
) -> None:
    with running(uploader(queue, store, told, UploadLimits(gather=0, sweep=9999))):
        put(b"one")
        told.wait_for(lambda: told.pushed() == 1)
        put(b"two", start=2)
        told.wait_for(lambda: told.pushed() == 2)
    assert contents(store) == [b"one", b"two"]


def test_what_another_program_copies_into_the_folder_is_pushed(
    queue: QueueFolder, store: FolderArchive, put: Put, told: Told
) -> None:
    bundle = put(b"hello").bundle
    data = bundle.read_bytes()
    bundle.unlink()
    with running(uploader(queue, store, told, UploadLimits(gather=0, sweep=9999))):
        with (queue.path / "by hand").open("wb") as file:
            file.write(data[:700])
            file.flush()
            file.write(data[700:])
        told.wait_for(lambda: told.pushed() == 1)
    assert contents(store) == [b"hello"]


def test_hidden_files_and_folders_are_left_alone(
    queue: QueueFolder, store: FolderArchive, put: Put, told: Told
) -> None:
    put(b"hidden").bundle.rename(queue.path / ".ignoreme")
    put(b"hidden").bundle.rename(queue.path / ".tmp-ignoreme")
    put(b"hidden").bundle.rename(queue.path.parent / "aside")
    (queue.path / "folder").mkdir()
    with running(uploader(queue, store, told, replace(SHORT, timeout=None))):
        (queue.path.parent / "aside").rename(queue.path / ".ignoreme too")
        put(b"seen", start=5)
        told.wait_for(lambda: told.pushed() >= 1)
    assert b"seen" in contents(store)
    assert b"hidden" not in contents(store)
    assert {".ignoreme", ".ignoreme too", ".tmp-ignoreme", "folder"} <= {path.name for path in queue.path.iterdir()}


def test_without_inotify_the_folder_is_looked_through(
    queue: QueueFolder, store: FolderArchive, put: Put, told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    from odfpy.archive.queue import watch

    monkeypatch.setattr(watch, "_inotify", lambda _: None)
    with running(uploader(queue, store, told, UploadLimits(gather=0, sweep=0.02))):
        put(b"hello")
        told.wait_for(lambda: told.pushed() == 1)


def test_a_name_that_was_lost_is_found_by_a_sweep(
    queue: QueueFolder, store: FolderArchive, put: Put, told: Told
) -> None:
    """A hard link makes no event that says a file is complete."""
    bundle = put(b"hello").bundle
    bundle.rename(queue.path / ".aside")
    with running(uploader(queue, store, told, UploadLimits(gather=0, sweep=0.05))):
        os.link(queue.path / ".aside", queue.path / "linked")
        told.wait_for(lambda: told.pushed() == 1)


def test_more_names_than_are_remembered_at_once(
    queue: QueueFolder, store: FolderArchive, put: Put, told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    from odfpy.archive.queue import uploader as module

    monkeypatch.setattr(module, "_NAMES", 3)
    for number in range(10):
        put(b"%d" % number, start=number)
    assert uploader(queue, store, told).run().pushed == 10


# --- Batches and workers ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limits", "commits"),
    [
        (SHORT, [10]),
        (replace(SHORT, files=4), [4, 4, 2]),
        (replace(SHORT, files=1), [1] * 10),
        (replace(SHORT, size=250), [3, 3, 3, 1]),
        (replace(SHORT, size=1), [1] * 10),
    ],
)
def test_many_small_files_are_one_commit_within_limits(
    queue: QueueFolder, store: FolderArchive, put: Put, told: Told, limits: UploadLimits, commits: list[int]
) -> None:
    for number in range(10):
        put(b"%0100d" % number, start=number)
    uploader(queue, store, told, limits).run()
    assert store.commits == commits


def test_a_file_waits_for_others_of_its_commit(queue: QueueFolder, store: FolderArchive, put: Put, told: Told) -> None:
    limits = UploadLimits(gather=60, files=3)
    with running(uploader(queue, store, told, limits)):
        for number in range(3):
            put(b"%d" % number, start=number)
        told.wait_for(lambda: told.pushed() == 3)
    assert store.commits == [3]


def test_workers_push_at_the_same_time(queue: QueueFolder, store: FolderArchive, put: Put, told: Told) -> None:
    meeting = threading.Barrier(3, timeout=60)

    class Meeting(FolderArchive):
        def push_all(self, files: Sequence[NewFile]) -> list[Pushed]:
            meeting.wait()
            return super().push_all(files)

    for number in range(3):
        put(b"%d" % number, start=number)
    limits = replace(SHORT, workers=3, files=1)
    working = Uploader(queue, lambda: Meeting(store.path), limits, on_ingest=told.ingest)
    assert working.run().pushed == 3


@pytest.mark.parametrize("limits", [{"workers": 0}, {"workers": -1}, {"files": 0}])
def test_nobody_works_with_no_workers(limits: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="must be at least 1"):
        UploadLimits(**limits)


def test_several_uploaders_share_a_queue(queue: QueueFolder, store: FolderArchive, put: Put) -> None:
    for number in range(60):
        put(b"%d" % number, start=number)
    ones = [Told() for _ in range(3)]
    workers = [uploader(queue, FolderArchive(store.path), one, replace(SHORT, files=5)) for one in ones]
    threads = [threading.Thread(target=one.run) for one in workers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sum(one.summary.pushed for one in workers) == 60
    assert sum(one.summary.known for one in workers) == 0
    assert len(list(store.records())) == 60


# --- What is wrong ---------------------------------------------------------------------------------------------------


def reason(queue: QueueFolder, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((queue.path / "poison" / f"{name}.reason.json").read_bytes())
    return found


def test_a_refused_bundle_stays_in_the_poison_folder_with_its_reason(
    queue: QueueFolder, store: FolderArchive, put: Put, told: Told
) -> None:
    put(b"good")
    wrong = put(b"wrong", start=2).bundle
    data = wrong.read_bytes().replace(b"wrong", b"WRONG", 1)
    wrong.write_bytes(data)
    summary = uploader(queue, store, told).run()
    assert (summary.pushed, summary.refused) == (1, 1)
    assert contents(store) == [b"good"]
    assert (queue.path / "poison" / wrong.name).read_bytes() == data
    assert hashlib.blake2b(b"WRONG", digest_size=16).hexdigest() in reason(queue, wrong.name)["error"]
    (one,) = queue.refused()
    assert (one["name"], one["code"]) == (wrong.name, "E845")


def test_what_is_no_bundle_is_poison_and_others_go_on(
    queue: QueueFolder, store: FolderArchive, put: Put, told: Told
) -> None:
    for name, data in (("empty", b""), ("text.tar", b"hello"), ("zeros", bytes(20_000))):
        (queue.path / name).write_bytes(data)
        os.utime(queue.path / name, (0, 0))
    os.mkfifo(queue.path / "pipe")
    (queue.path / "link").symlink_to("/etc/passwd")
    put(b"good")
    with running(uploader(queue, store, told, replace(SHORT, timeout=None))):
        told.wait_for(lambda: len(told.refused) == 5 and told.pushed() == 1)
    assert names(queue) == []
    assert reason(queue, "link")["reasons"] == ["link is not a regular file"]
    assert (queue.path / "poison" / "link").readlink() == Path("/etc/passwd")


def test_metadata_that_breaks_rules_is_poison_with_all_reasons(
    queue: QueueFolder, store: FolderArchive, put: Put, told: Told
) -> None:
    bundle = put(b"x").bundle
    bundle.write_bytes(bundle.read_bytes().replace(b'"log"', b'"LOG"').replace(b'"web1"', b'"WEB1"'))
    os.utime(bundle, (0, 0))
    uploader(queue, store, told).run()
    assert len(reason(queue, bundle.name)["reasons"]) == 2


def test_poison_of_one_name_does_not_hide_that_of_another(
    queue: QueueFolder, store: FolderArchive, put: Put, told: Told
) -> None:
    for number in range(3):
        (queue.path / "same").write_bytes(b"%d" % number)
        os.utime(queue.path / "same", (0, 0))
        uploader(queue, store, told).run()
    kept = [one["name"] for one in queue.refused()]
    assert {(queue.path / "poison" / name).read_bytes() for name in kept} == {b"0", b"1", b"2"}


@pytest.mark.parametrize("letter", ["a", "\u00e4", "\u5b57"])
def test_no_name_is_too_long_to_be_poison(
    queue: QueueFolder, store: FolderArchive, put: Put, told: Told, letter: str
) -> None:
    put(b"good")
    longest = letter * (255 // len(letter.encode()))
    files = [longest[:-1] + end for end in ("1", "2")]
    for _ in range(2):
        for number, name in enumerate(files):
            (queue.path / name).write_bytes(b"%d" % number)
            os.utime(queue.path / name, (0, 0))
        uploader(queue, store, told).run()
    kept = list(queue.refused())
    assert sorted((queue.path / "poison" / one["name"]).read_bytes() for one in kept) == [b"0", b"0", b"1", b"1"]
    assert len(list((queue.path / "poison").iterdir())) == 8
    assert contents(store) == [b"good"]


def test_a_full_disk_does_not_stay_full_of_what_could_not_be_unpacked(
    queue: QueueFolder, store: FolderArchive, put: Put, told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    left: list[Path] = []
    put(b"hello")

    def write(file: FileIO, data: bytes) -> None:
        left.extend(queue.path.glob(".work/*/content-*"))
        file.write(data[:2])
        if len(left) < 3:
            raise OSError(errno.ENOSPC, "No space left on device")
        file.write(data[2:])

    monkeypatch.setattr("odfpy.archive.queue.bundle.write_all", write, raising=False)
    assert uploader(queue, store, told).run().pushed == 1
    assert [one.error is not None for one in told.ingests] == [True, True, False]
    assert len(left) == len(set(left)) == 3  # only that which is being written, each time
    assert contents(store) == [b"hello"]


def test_a_file_that_somebody_still_writes_is_no_poison(
    queue: QueueFolder, store: FolderArchive, put: Put, told: Told
) -> None:
    bundle = put(b"hello").bundle
    data = bundle.read_bytes()
    bundle.unlink()
    file = (queue.path / "slow").open("wb")
    file.write(data[:1000])
    file.flush()
    with file:
        uploader(queue, store, told).run()  # it is new, and no bundle yet
        assert names(queue) == ["slow"]
        assert told.refused == []
        file.write(data[1000:])
    uploader(queue, store, told).run()
    assert contents(store) == [b"hello"]


def test_the_same_file_again_is_known_and_leaves_the_queue(
    queue: QueueFolder, store: FolderArchive, put: Put, told: Told
) -> None:
    for _ in range(3):
        put(b"hello")
    summary = uploader(queue, store, told).run()
    assert (summary.pushed, summary.known) == (1, 2)
    assert names(queue) == []


def test_an_id_that_another_file_has_is_refused(queue: QueueFolder, store: FolderArchive, put: Put, told: Told) -> None:
    put(b"one", id="same")
    put(b"two", id="same")
    summary = uploader(queue, store, told).run()
    assert (summary.pushed, summary.refused) == (1, 1)


# --- The archive is away ---------------------------------------------------------------------------------------------


class Away(FolderArchive):
    """An archive that cannot be reached for some time, or never for some files."""

    def __init__(self, path: Path, times: int = 0, never: bytes | None = None) -> None:
        super().__init__(path)
        self.times = times
        self.never = never
        self.tries: list[int] = []

    def push_all(self, files: Sequence[NewFile]) -> list[Pushed]:
        self.tries.append(len(files))
        if self.times:
            self.times -= 1
            raise TransferError("nobody is there")
        if self.never is not None and any(new.file.read_bytes() == self.never for new in files):
            raise ZeroDivisionError
        return super().push_all(files)


def test_while_the_archive_is_away_it_tries_again(
    queue: QueueFolder, store: FolderArchive, put: Put, told: Told
) -> None:
    away = Away(store.path, times=5)
    put(b"hello")
    with running(uploader(queue, away, told, replace(SHORT, timeout=None))):
        told.wait_for(lambda: told.pushed() == 1)
    assert contents(store) == [b"hello"]
    assert [one.error is None for one in told.ingests] == [False] * 5 + [True]


def test_tries_become_rarer(queue: QueueFolder, store: FolderArchive, put: Put, told: Told) -> None:
    away = Away(store.path, times=6)
    for number in range(32):
        put(b"%d" % number, start=number)
    limits = UploadLimits(gather=0.05, retry=0.001, longest=0.016)
    with running(uploader(queue, away, told, limits)):
        told.wait_for(lambda: told.pushed() == 32)
    waits = [one.again for one in told.ingests if one.error is not None]
    for number, seconds in enumerate(waits[:6]):
        full = min(0.016, 0.001 * 2**number)
        assert full / 2 <= seconds <= full
    assert away.tries[:6] == [32, 16, 8, 4, 2, 1]


def test_an_archive_that_stays_away_keeps_nothing_from_the_queue(
    queue: QueueFolder, store: FolderArchive, put: Put, told: Told
) -> None:
    for number in range(3):
        put(b"%d" % number, start=number)
    before = names(queue)
    summary = uploader(queue, Away(store.path, times=10**9), told).run()
    assert isinstance(summary.trouble, TransferError)
    assert names(queue) == before
    assert list((queue.path / ".work").iterdir()) == []


def test_a_file_on_which_the_archive_breaks_keeps_no_other_from_its_place(
    queue: QueueFolder, store: FolderArchive, put: Put, told: Told
) -> None:
    for number in range(7):
        put(b"%d" % number, start=number)
    with running(uploader(queue, Away(store.path, never=b"3"), told, replace(SHORT, timeout=None))):
        told.wait_for(lambda: told.pushed() == 6)
    assert contents(store) == [b"0", b"1", b"2", b"4", b"5", b"6"]
    assert len(names(queue)) == 1
    assert told.refused == []


def test_an_archive_that_cannot_be_opened_is_told_at_once(queue: QueueFolder, put: Put) -> None:
    def no_archive() -> Archive:
        raise UsageError("there is none")

    put(b"hello")
    with pytest.raises(UsageError, match="there is none"):
        Uploader(queue, no_archive, SHORT).run()
    assert len(names(queue)) == 1


# --- Ends ------------------------------------------------------------------------------------------------------------


def test_it_finishes_the_push_under_way_and_gives_back_the_rest(
    queue: QueueFolder, store: FolderArchive, put: Put, told: Told
) -> None:
    for number in range(6):
        put(b"%d" % number, start=number)
    under_way, go_on = threading.Event(), threading.Event()

    class Slow(FolderArchive):
        def push_all(self, files: Sequence[NewFile]) -> list[Pushed]:
            under_way.set()
            assert go_on.wait(60)
            return super().push_all(files)

    working = uploader(queue, Slow(store.path), told, replace(SHORT, files=2, timeout=None))
    with running(working):
        assert under_way.wait(60)
        working.stop()
        go_on.set()
    assert working.summary.pushed == 2
    assert len(names(queue)) == 4
    assert list((queue.path / ".work").iterdir()) == []


def test_a_stop_before_it_runs_ends_it(queue: QueueFolder, store: FolderArchive, told: Told) -> None:
    working = uploader(queue, store, told, replace(SHORT, timeout=None))
    working.stop()
    working.run()


def test_a_stop_ends_the_wait_for_the_archive(queue: QueueFolder, store: FolderArchive, put: Put, told: Told) -> None:
    put(b"hello")
    limits = UploadLimits(gather=0, retry=9999, longest=9999)
    with running(uploader(queue, Away(store.path, times=10**9), told, limits)):
        told.wait_for(lambda: len(told.ingests) == 1)
    assert len(names(queue)) == 1


def test_a_queue_that_goes_is_told(queue: QueueFolder, store: FolderArchive, put: Put, told: Told) -> None:
    working = uploader(queue, store, told, replace(SHORT, timeout=None))
    errors: list[QueueGone] = []

    def run() -> None:
        with pytest.raises(QueueGone) as caught:
            working.run()
        errors.append(caught.value)

    put(b"hello")
    thread = threading.Thread(target=run)
    thread.start()
    told.wait_for(lambda: told.pushed() == 1)
    queue.path.rename(queue.path.with_name("elsewhere"))
    thread.join(60)
    assert len(errors) == 1
    with pytest.raises(QueueGone):
        uploader(queue, store, told).run()


# --- What others have left -------------------------------------------------------------------------------------------


def test_what_a_dead_uploader_has_taken_is_pushed(
    queue: QueueFolder, store: FolderArchive, put: Put, told: Told
) -> None:
    place = UploaderFolder(queue)
    for number in range(3):
        bundle = put(b"%d" % number, start=number).bundle
        assert place.claim(bundle.name) is not None
    uploader(queue, store, told).run()
    assert contents(store) == []  # it lives
    os.close(place._lock)  # as the system does for a process that has gone
    uploader(queue, store, told).run()
    assert contents(store) == [b"0", b"1", b"2"]
    assert list((queue.path / ".work").iterdir()) == []


def test_a_bundle_is_given_back_beside_one_of_its_name(queue: QueueFolder, put: Put) -> None:
    place = UploaderFolder(queue)
    name = put(b"one").bundle.name
    taken = place.claim(name)
    assert taken is not None
    assert put(b"one").bundle.name == name
    assert place.claim(name) is None  # one of that name is being pushed
    assert place.give_back(taken) != name
    assert len(names(queue)) == 2
    place.close()


def test_of_two_only_one_takes_a_bundle(queue: QueueFolder, put: Put) -> None:
    first, second = UploaderFolder(queue), UploaderFolder(queue)
    name = put(b"one").bundle.name
    assert (first.claim(name) is None, second.claim(name) is None) == (False, True)
    first.close()
    second.close()
