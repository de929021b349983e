"""Files into a queue: all reasons at once, and nothing half there."""

from __future__ import annotations

import fcntl
import gzip
import hashlib
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from odfpy.archive.errors import CannotCopy, FileChanged, NotAFile, RecordRefused, WrongContent
from odfpy.archive.pushing import NewFile
from odfpy.archive.queue import bundle as bundles
from odfpy.archive.queue import usage
from odfpy.archive.queue.bundle import opened_bundle
from odfpy.archive.queue.enqueue import Enqueued, enqueue
from odfpy.archive.queue.folder import QueueFolder, QueueGone
from odfpy.archive.queue.usage import QueueFull, QueueLimits
from odfpy.data.multihash import SHA3_256, Multihash
from odfpy.errors import NotFound

DATA = b"something that has happened\n"


@pytest.fixture
def queue(tmp_path: Path) -> QueueFolder:
    return QueueFolder(tmp_path / "queue", QueueLimits(free=0))


@pytest.fixture
def log(tmp_path: Path) -> Path:
    (tmp_path / "it.log").write_bytes(DATA)
    os.utime(tmp_path / "it.log", (1_700_000_000.5, 1_700_000_000.5))
    return tmp_path / "it.log"


def new(file: Path, **fields: Any) -> NewFile:
    return NewFile(**({"file": file, "what": "log", "where": "web1", "start": 1000} | fields))


def content_of(enqueued: Enqueued) -> bytes:
    copy = enqueued.bundle.parent.parent / "copy"
    copy.unlink(missing_ok=True)
    with opened_bundle(enqueued.bundle) as opened:
        assert opened.metadata == enqueued.metadata
        opened.extract(copy)
    return copy.read_bytes()


def visible(queue: QueueFolder) -> list[str]:
    return sorted(queue.waiting())


def all_of(queue: QueueFolder) -> set[str]:
    return {path.name for path in queue.path.iterdir()}


def test_a_file_waits_as_a_bundle_with_its_metadata(queue: QueueFolder, log: Path) -> None:
    enqueued = enqueue(queue, new(log, end=2000, work_id="job-1"))
    log.unlink()  # the queue has a copy
    assert content_of(enqueued) == DATA
    assert enqueued.metadata.to_dict() == {
        "version": 0,
        "start": 1000,
        "end": 2000,
        "path": str(log),
        "work_id": "job-1",
        "where": "web1",
        "what": "log",
        "id": enqueued.metadata.id,
        "hash": hashlib.blake2b(DATA, digest_size=16).hexdigest(),
    }
    assert visible(queue) == [f"{enqueued.metadata.id}.tar"]


def test_without_a_start_it_is_when_the_file_was_modified(queue: QueueFolder, log: Path) -> None:
    assert enqueue(queue, new(log, start=None)).metadata.start == 1_700_000_000_500


def test_words_may_be_patterns(queue: QueueFolder, log: Path) -> None:
    assert enqueue(queue, new(log, what=r".*/(?P<n>[a-z]+)\.log$~{n}")).metadata.what == "it"


def test_another_path_may_be_recorded(queue: QueueFolder, log: Path) -> None:
    assert enqueue(queue, new(log, path="/var/log/it.log")).metadata.path == "/var/log/it.log"


def test_packed_content_changes_nothing_of_what_is_said(queue: QueueFolder, log: Path) -> None:
    enqueued = enqueue(queue, new(log), compress=True)
    assert gzip.decompress(content_of(enqueued)) == DATA
    assert enqueued.metadata.path == str(log)


@pytest.mark.parametrize("compress", [False, True])
def test_the_same_file_enqueued_twice_has_one_id(queue: QueueFolder, log: Path, compress: bool) -> None:
    first, second = (enqueue(queue, new(log), compress=compress) for _ in range(2))
    assert first.metadata == second.metadata
    assert first.bundle != second.bundle  # nothing that waits is replaced


def test_ids_follow_from_the_hash_of_the_archive(queue: QueueFolder, log: Path) -> None:
    assert enqueue(queue, new(log)).metadata.id != enqueue(queue, new(log), algorithm=SHA3_256).metadata.id


def test_all_reasons_are_told_at_once_and_the_file_is_not_read(queue: QueueFolder, tmp_path: Path) -> None:
    wrong = new(tmp_path / "nowhere", what="A", where="", work_id="null1", start=5, end=4, path="x", id="/")
    with pytest.raises(RecordRefused) as caught:
        enqueue(queue, wrong)
    assert [reason.split(" ", 1)[0] for reason in caught.value.reasons] == [
        *("what", "where", "work_id", "end", "path", "id"),
    ]
    assert visible(queue) == []


def test_a_pattern_that_does_not_match_is_one_of_the_reasons(queue: QueueFolder, log: Path) -> None:
    with pytest.raises(RecordRefused) as caught:
        enqueue(queue, new(log, what="/nowhere/(?P<n>.*)~{n}", where="W"))
    assert len(caught.value.reasons) == 2


def test_a_hash_that_is_given_is_checked(queue: QueueFolder, log: Path) -> None:
    enqueue(queue, new(log, hash=hashlib.blake2b(DATA, digest_size=16).hexdigest()))
    with pytest.raises(WrongContent):
        enqueue(queue, new(log, hash="0" * 32))
    with pytest.raises(WrongContent):
        enqueue(queue, new(log, object=Multihash.of(b"else", SHA3_256)))
    assert len(all_of(queue)) == 2  # the good one, and `.work`


def test_what_is_no_file_is_refused(queue: QueueFolder, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path, error in ((tmp_path, NotAFile), (tmp_path / "pipe", NotAFile), (tmp_path / "nothing", NotFound)):
        with pytest.raises(error):
            enqueue(queue, new(path))
    assert all_of(queue) == {".work"}


def test_a_file_that_changes_meanwhile_is_refused(
    queue: QueueFolder, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = bundles._copy

    def copy_and_change(source: Any, write: Any) -> None:
        copy(source, write)
        with log.open("ab") as file:
            file.write(b"more")

    monkeypatch.setattr(bundles, "_copy", copy_and_change)
    with pytest.raises(FileChanged, match="nothing of it was enqueued"):
        enqueue(queue, new(log))
    assert all_of(queue) == {".work"}


# --- No room ---------------------------------------------------------------------------------------------------------


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """The disk is full, as far as this process can tell."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("most", [0, 100, 600, 5000])
def test_a_full_disk_leaves_nothing_behind(queue: QueueFolder, tmp_path: Path, most: int) -> None:
    import signal

    (tmp_path / "large").write_bytes(bytes(8000))
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        with largest_file(most), pytest.raises(CannotCopy, match="nothing was enqueued"):
            enqueue(queue, new(tmp_path / "large"))
    finally:
        signal.signal(signal.SIGXFSZ, before)
    assert all_of(queue) == {".work"}


def test_a_queue_takes_so_many_files(tmp_path: Path, log: Path) -> None:
    queue = QueueFolder(tmp_path / "queue", QueueLimits(files=2, free=0))
    for start in (1, 2):
        enqueue(queue, new(log, start=start))
    with pytest.raises(QueueFull, match="2 files already, 2 are allowed"):
        enqueue(queue, new(log, start=3))
    assert len(visible(queue)) == 2


def test_a_queue_takes_so_many_bytes(tmp_path: Path, log: Path) -> None:
    queue = QueueFolder(tmp_path / "queue", QueueLimits(size=5000, free=0))
    enqueue(queue, new(log))
    (tmp_path / "large").write_bytes(bytes(2000))
    with pytest.raises(QueueFull, match="5000 are allowed"):
        enqueue(queue, new(tmp_path / "large"))


def test_a_queue_leaves_room_on_the_disk(tmp_path: Path, log: Path) -> None:
    queue = QueueFolder(tmp_path / "queue", QueueLimits(free=1 << 62))
    with pytest.raises(QueueFull, match="free on its disk"):
        enqueue(queue, new(log))


def test_what_an_uploader_has_taken_counts(tmp_path: Path, log: Path) -> None:
    from odfpy.archive.queue.folder import UploaderFolder

    queue = QueueFolder(tmp_path / "queue", QueueLimits(files=1, free=0))
    enqueued = enqueue(queue, new(log))
    place = UploaderFolder(queue)
    assert place.claim(enqueued.bundle.name) is not None
    with pytest.raises(QueueFull):
        enqueue(queue, new(log, start=2))
    place.close()
    assert visible(queue) == [enqueued.bundle.name]


def test_a_long_queue_is_not_counted_each_time(tmp_path: Path, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(usage, "_SHORT", 2)
    monkeypatch.setattr(usage, "_TIMES", 10**9)
    queue = QueueFolder(tmp_path / "queue", QueueLimits(files=3, free=0))
    for start in range(5):
        enqueue(queue, new(log, start=start))  # of two it is remembered that they were there
    assert len(visible(queue)) == 5
    os.utime(queue.path / ".usage", (0, 0))
    with pytest.raises(QueueFull, match=r"has 5|has 6"):
        enqueue(queue, new(log, start=9))


@pytest.mark.parametrize("text", ["", "{", "[]", '{"files": 1}', '{"files": "x", "size": 1, "seconds": 1}'])
def test_what_is_remembered_is_never_trusted_if_it_makes_no_sense(queue: QueueFolder, log: Path, text: str) -> None:
    (queue.path / ".usage").write_text(text)
    enqueue(queue, new(log))


def test_a_queue_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(QueueGone, match="cannot be used"):
        QueueFolder(tmp_path / "file" / "queue")


def test_what_a_killed_process_has_left_is_removed_and_what_is_being_written_stays(queue: QueueFolder) -> None:
    left, written, fresh, other = (queue.path / name for name in (".tmp-left", ".tmp-written", ".tmp-new", ".other"))
    for path in (left, written, other):
        path.write_bytes(b"half")
        os.utime(path, (0, 0))
    fresh.write_bytes(b"half")
    with written.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        queue.take_over()
    assert all_of(queue) == {".work", ".tmp-written", ".tmp-new", ".other"}
