"""The uploader, which moves files from a queue into an archive, many small files in one commit.

1. the folder is watched, and scanned at the start and from time to time; names are queued for workers
2. a worker claims bundles (`UploaderFolder`), opens them, and gathers a batch
3. it pushes the batch; while the archive is unreachable, it retries with increasing delays
4. a bundle is deleted when the archive has its file; a rejected one moves to the poison folder

All steps may be interrupted: bundles of a killed uploader return to the queue, and a file that is pushed again is
recognized by its id.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path
from typing import Final

from odfpy.archive.archive import Archive
from odfpy.archive.pushing import NewFile, Pushed, PushOutcome
from odfpy.archive.queue.bundle import BundleRefused, opened_bundle
from odfpy.archive.queue.folder import QueueFolder, UploaderFolder
from odfpy.archive.queue.watch import FolderWatch
from odfpy.archive.queue.work_queue import WorkQueue
from odfpy.data.timestamp import Timestamp
from odfpy.errors import InternalError, OdfError, UsageError

SETTLED: Final = 2.0
"""Seconds for which a file that is not a bundle must be unchanged: until then it may still be being written."""

_NAMES: Final = 50_000
_DENIED: Final = (13, 1)
_JITTER: Final = random.Random()  # noqa: S311  several uploaders shall not ask at the same moment, nothing else


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadLimits:
    """The settings of an uploader.

    Attributes:
        workers: number of concurrent workers.
        files: maximum number of files in a batch.
        size: size in bytes above which a batch accepts no further files.
        gather: seconds for which the first file of a batch waits for others.
        timeout: idle seconds after which the uploader stops; None for never.
        retry: seconds until the first retry; each further delay is twice as long.
        longest: maximum seconds between two retries.
        sweep: seconds between two scans of the folder.
    """

    workers: int = 1
    files: int = 10_000
    size: int = 1 << 30
    gather: float = 1.0
    timeout: float | None = None
    retry: float = 1.0
    longest: float = 60.0
    sweep: float = 60.0

    def __post_init__(self) -> None:
        for name, value in (("workers", self.workers), ("files of a batch", self.files)):
            if value < 1:
                raise UsageError(f"The number of {name} must be at least 1, not {value}")


@dataclass(frozen=True, slots=True)
class Ingest:
    """A push of the uploader.

    Attributes:
        start: when it began, in milliseconds since the epoch.
        duration: duration in seconds.
        results: results per file; empty if the push failed as a whole.
        error: why the push failed, None if it succeeded.
        again: seconds until the next retry, if the push failed.
    """

    start: int
    duration: float
    results: Sequence[Pushed]
    error: OdfError | None = None
    again: float = 0.0


@dataclass(slots=True)
class UploadSummary:
    """The statistics of an uploader.

    Attributes:
        pushed: number of files added to the archive.
        known: number of files that already existed.
        refused: number of bundles moved to the poison folder.
        trouble: last error of the archive, None if it was reachable since.
    """

    pushed: int = 0
    known: int = 0
    refused: int = 0
    trouble: OdfError | None = None


@dataclass(frozen=True, slots=True)
class _Item:
    """A bundle claimed by a worker.

    Attributes:
        bundle: path of the bundle.
        content: path of its extracted content.
        new: the file to push.
        size: size in bytes.
    """

    bundle: Path
    content: Path
    new: NewFile
    size: int


class Uploader:
    """The uploader: moves files from a queue into an archive; used by `odf archive uploader`."""

    def __init__(
        self,
        queue: QueueFolder,
        open_archive: Callable[[], Archive],
        limits: UploadLimits | None = None,
        *,
        on_ingest: Callable[[Ingest], None] = lambda _: None,
        on_refused: Callable[[Path, OdfError], None] = lambda _, __: None,
    ) -> None:
        """
        Args:
            queue: the queue.
            open_archive: opens the archive, once per worker.
            limits: settings of the uploader.
            on_ingest: called with each push, in the thread of a worker.
            on_refused: called with each bundle in the poison folder, and the reason.
        """
        self._queue = queue
        self._open_archive = open_archive
        self._limits = limits or UploadLimits()
        self._on_ingest = on_ingest
        self._on_refused = on_refused
        self._waiting = WorkQueue()
        self._stopped = threading.Event()
        self._is_stopping = False
        self._watch: FolderWatch | None = None
        self._failure: BaseException | None = None
        self._seen: dict[tuple[int, int], tuple[tuple[int, int], float]] = {}
        self._numbers = count()
        self._lock = threading.Lock()
        self.summary = UploadSummary()

    def stop(self) -> None:
        """Finish the pushes in progress, then stop; safe in signal handlers."""
        self._is_stopping = True
        self._wake()

    def _wake(self) -> None:
        watch = self._watch
        if watch is not None:
            watch.wake()

    def run(self) -> UploadSummary:
        """Work until `stop`, or until idle for the timeout.

        Raises:
            QueueGone: the queue can no longer be used.
            OdfError: the archive cannot be opened.
        """
        archives = [self._open_archive() for _ in range(self._limits.workers)]
        with closing(UploaderFolder(self._queue)) as folder:
            try:
                with FolderWatch(self._queue.path) as watch:
                    self._watch = watch
                    with self._working(archives, folder):
                        self._listen(watch)
            except OSError as error:
                raise self._queue.gone(error) from error
            finally:
                self._watch = None
        if self._failure is not None:
            raise self._failure
        return self.summary

    # --- The folder ---

    def _listen(self, watch: FolderWatch) -> None:
        limits = self._limits
        period = limits.sweep if watch.is_notified else min(limits.sweep, 1.0)
        is_cut = self._look()
        next_look = time.monotonic() + period
        while not self._is_stopping:
            rest = next_look - time.monotonic()
            if limits.timeout is not None:
                rest = min(rest, limits.timeout - self._waiting.idle())
            news = watch.wait(min(rest, 1.0) if is_cut else rest)
            for name in news or ():
                if not name.startswith("."):
                    self._waiting.put(name)
            now = time.monotonic()
            if news is None or now >= next_look or (is_cut and len(self._waiting) < _NAMES // 2):
                is_cut = self._look()
                next_look = now + period
            if limits.timeout is not None and self._waiting.idle() >= limits.timeout and not is_cut:
                return

    def _look(self) -> bool:
        """Scan the folder; return whether it has more files than can be queued."""
        for name in self._queue.take_over():
            self._waiting.put(name)
        names = self._queue.waiting()
        for name in islice(names, _NAMES):
            self._waiting.put(name)
        return next(names, None) is not None

    # --- Workers ---

    @contextmanager
    def _working(self, archives: Sequence[Archive], folder: UploaderFolder) -> Iterator[None]:
        threads = [
            threading.Thread(target=self._work, args=(archive, folder), name=f"odf-uploader-{number}")
            for number, archive in enumerate(archives)
        ]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._stopped.set()
            self._waiting.stop()
            for thread in threads:
                thread.join()

    def _work(self, archive: Archive, folder: UploaderFolder) -> None:
        try:
            while (name := self._waiting.take()) is not None:
                batch = self._gathered(name, folder)
                self._push(archive, batch, folder)
                self._waiting.rest()
        except BaseException as error:  # noqa: BLE001  it is raised by `run`
            self._failure = error
            self.stop()

    def _gathered(self, name: str | None, folder: UploaderFolder) -> list[_Item]:
        """Gather a batch of opened bundles, beginning with one."""
        batch: list[_Item] = []
        deadline = time.monotonic() + self._limits.gather
        size = 0
        while name is not None:
            item = self._opened(name, folder)
            if item is not None:
                batch.append(item)
                size += item.size
            if len(batch) >= self._limits.files or size >= self._limits.size:
                break
            name = self._waiting.take_more(deadline)
        return batch

    def _opened(self, name: str, folder: UploaderFolder) -> _Item | None:
        """Claim a bundle and open it; None if it is claimed by others, delayed, or rejected."""
        bundle: Path | None = None
        try:
            bundle = folder.claim(name)
            if bundle is None:
                if os.path.lexists(self._queue.path / name):  # another one of that name is being pushed
                    self._waiting.put(name, self._limits.retry)
                return None
            content = folder.path / f"content-{next(self._numbers)}"
            with opened_bundle(bundle) as opened:
                opened.extract(content)
                return _Item(bundle, content, opened.metadata.new_file(content), opened.size)
        except OSError as error:
            if error.errno not in _DENIED:
                self._notify(Ingest(Timestamp.now().millis, 0.0, (), self._queue.gone(error), self._limits.retry))
                self._later(name, bundle, folder, self._limits.retry)
                return None
            refusal: OdfError = BundleRefused(f"{name} cannot be read: {error.strerror}")
        except OdfError as error:
            if not self._is_settled(self._queue.path / name if bundle is None else bundle):
                self._later(name, bundle, folder, SETTLED)
                return None
            refusal = error
        self._refuse(bundle or self._queue.path / name, name, refusal)
        return None

    def _is_settled(self, bundle: Path) -> bool:
        """Return whether a file seems to be completely written."""
        status = bundle.lstat()
        identity, stamp = (status.st_dev, status.st_ino), (status.st_size, status.st_mtime_ns)
        now = time.monotonic()
        known, since = self._seen.setdefault(identity, (stamp, now))
        if known != stamp:
            self._seen[identity] = (stamp, now)
            return False
        # File times alone are not enough: clocks may be set back.
        if now - since < SETTLED and time.time() - status.st_mtime < SETTLED:
            return False
        del self._seen[identity]
        return True

    def _later(self, name: str, bundle: Path | None, folder: UploaderFolder, delay: float) -> None:
        """Return a bundle to the queue, with a delay before it is taken again."""
        self._waiting.put(name, delay)  # before it appears in the folder
        if bundle is not None:
            folder.give_back(bundle)

    # --- Pushes ---

    def _push(self, archive: Archive, batch: list[_Item], folder: UploaderFolder) -> None:
        """Push a batch, with retries as needed."""
        most = len(batch)
        failures = 0
        while batch and not self._stopped.is_set():
            items, batch = batch[:most], batch[most:]
            error = self._pushed(archive, items, failures)
            if error is None:
                failures, most = 0, min(2 * most, self._limits.files)
                continue
            failures += 1
            if len(items) == 1:  # the archive may be unreachable, or fail on this very file: let others go first
                items[0].content.unlink(missing_ok=True)
                self._later(items[0].bundle.name, items[0].bundle, folder, self._delay(failures))
            else:
                batch, most = [*items, *batch], len(items) // 2
            self._waiting.rest()
            self._wake()  # this may have been the last retry
            self._stopped.wait(self._delay(failures))
            self._waiting.resume()

    def _pushed(self, archive: Archive, items: list[_Item], failures: int) -> OdfError | None:
        """Push files in one commit; return the error if that failed as a whole."""
        start, begun = Timestamp.now().millis, time.monotonic()
        try:
            results = archive.push_all([item.new for item in items])
        except Exception as error:  # noqa: BLE001  bundles must not be lost, whatever is wrong with the archive
            failure = error if isinstance(error, OdfError) else InternalError(f"{type(error).__name__}: {error}")
            self._notify(Ingest(start, time.monotonic() - begun, (), failure, self._delay(failures + 1)))
            return failure
        # Report before deleting: a duplicate report is better than a missing one.
        self._notify(Ingest(start, time.monotonic() - begun, results))
        for item, result in zip(items, results, strict=True):
            if result.outcome is PushOutcome.REFUSED:
                self._refuse(item.bundle, item.bundle.name, result.error or InternalError("refused without a reason"))
            else:
                item.bundle.unlink(missing_ok=True)
            with suppress(OSError):
                item.content.unlink()
        self._waiting.progress()
        return None

    def _delay(self, failures: int) -> float:
        """Return the seconds to wait after a number of consecutive failures."""
        full = min(self._limits.longest, self._limits.retry * 2.0 ** min(failures - 1, 30))
        return full * (0.5 + _JITTER.random() / 2)

    # --- What is told ---

    def _notify(self, ingest: Ingest) -> None:
        with self._lock:
            self.summary.trouble = ingest.error
            for result in ingest.results:
                self.summary.pushed += result.outcome is PushOutcome.PUSHED
                self.summary.known += result.outcome is PushOutcome.KNOWN
            self._on_ingest(ingest)

    def _refuse(self, bundle: Path, name: str, error: OdfError) -> None:
        kept = self._queue.poison(bundle, name, error)
        self._waiting.progress()
        with self._lock:
            self.summary.refused += 1
            self._on_refused(kept, error)
