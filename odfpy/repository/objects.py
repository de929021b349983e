"""Copying blocks, and the files that they reference, from one dataset to another."""

from __future__ import annotations

import io
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from enum import Enum
from functools import partial
from typing import BinaryIO, cast

from odfpy.chain.block import HashedBlock
from odfpy.chain.events import AddData, ExecuteTransform
from odfpy.chain.layout import DatasetLayout
from odfpy.chain.stores.object_store import ObjectStore, ObjectTooLarge
from odfpy.data.multihash import ALGORITHMS, Multihash
from odfpy.errors import HashMismatch, IntegrityError, ObjectNotFound, OdfError, TransferError
from odfpy.http.limits import Pace
from odfpy.repository.divergence import EncodedBlock
from odfpy.values import dataclass

MAX_PARALLEL = 8
"""Maximum number of concurrent object transfers."""

BytesProgress = Callable[[int, int], None]
"""Receives the number of copied bytes and their total; called by one thread at a time."""


class ObjectKind(Enum):
    """The kinds of files in a dataset."""

    DATA_SLICE = "DataSlice"
    CHECKPOINT = "Checkpoint"

    def store(self, layout: DatasetLayout) -> ObjectStore:
        """Return the store of a dataset for files of this kind."""
        return layout.data if self is ObjectKind.DATA_SLICE else layout.checkpoints


@dataclass(frozen=True, slots=True)
class ObjectOfBlock:
    """A file that a block references.

    Attributes:
        kind: kind of the file.
        name: physical hash of the file.
        size: size in bytes, as recorded in the block.
        block: hash of the block, for messages.
    """

    kind: ObjectKind
    name: Multihash
    size: int
    block: Multihash

    def is_in(self, layout: DatasetLayout) -> bool:
        """Return whether a dataset has the file, with the recorded size."""
        try:
            # Not hashed again: stores only use this name after hashing the content.
            return self.kind.store(layout).size(self.name) == self.size
        except ObjectNotFound:
            return False


def objects_of_blocks(blocks: Iterable[HashedBlock]) -> list[ObjectOfBlock]:
    """Return the distinct files that blocks reference.

    Raises:
        IntegrityError: a file has an invalid hash or contradicting sizes; the message names block and file.
    """
    found: dict[tuple[ObjectKind, Multihash], ObjectOfBlock] = {}
    for hashed in blocks:
        for item in _objects_of(hashed):
            algorithm = ALGORITHMS.get(item.name.code)
            if algorithm is None or algorithm.new is None:
                raise IntegrityError(f"Block {item.block}: its file {item.name} has a hash that cannot be checked")
            known = found.setdefault((item.kind, item.name), item)
            if known.size != item.size:
                raise IntegrityError(
                    f"Block {item.block}: its file {item.name} has {item.size} bytes, but {known.size} bytes in"
                    f" block {known.block}"
                )
    return list(found.values())


def _objects_of(hashed: HashedBlock) -> Iterable[ObjectOfBlock]:
    event = hashed.block.event
    if isinstance(event, (AddData, ExecuteTransform)):
        if event.new_data is not None:
            data = event.new_data
            yield ObjectOfBlock(ObjectKind.DATA_SLICE, data.physical_hash, data.size, hashed.hash)
        if event.new_checkpoint is not None:
            checkpoint = event.new_checkpoint
            yield ObjectOfBlock(ObjectKind.CHECKPOINT, checkpoint.physical_hash, checkpoint.size, hashed.hash)


def missing_objects(objects: Iterable[ObjectOfBlock], layout: DatasetLayout) -> list[ObjectOfBlock]:
    """Return the files that a dataset lacks, in order; check several concurrently.

    Raises:
        OdfError: the first error.
    """
    wanted = list(objects)
    here: set[ObjectOfBlock] = set()

    def look(item: ObjectOfBlock) -> None:
        if item.is_in(layout):
            here.add(item)
            item.kind.store(layout).touch(item.name)  # protects it from garbage collection until the head moves

    run_all([partial(look, item) for item in wanted])
    return [item for item in wanted if item not in here]


def copy_objects(
    source: DatasetLayout, target: DatasetLayout, objects: list[ObjectOfBlock], progress: BytesProgress
) -> None:
    """Copy files concurrently, hashing each during the copy. Complete files are retained even after an error.

    Args:
        source: the dataset to copy from.
        target: the dataset to copy to.
        objects: the files.
        progress: called with the number of bytes received.

    Raises:
        OdfError: the first error, after all other copies have stopped; incomplete files are removed.
    """
    copying = _Copying(source, target, sum(item.size for item in objects), progress)
    run_all([partial(copying.copy, item) for item in objects], copying.stop)


def copy_blocks(blocks: Iterable[EncodedBlock], target: DatasetLayout) -> None:
    """Store missing blocks, in any order: they belong to no chain until the head moves.

    Raises:
        OdfError: the first error.
    """
    blocks = list(blocks)
    if not target.blocks.insert_all([(block.hashed.hash, block.data) for block in blocks]):
        run_all([partial(_copy_block, block, target.blocks) for block in blocks])


def _copy_block(block: EncodedBlock, target: ObjectStore) -> None:
    if block.hashed.hash in target:
        target.touch(block.hashed.hash)
    else:
        target.insert_stream(io.BytesIO(block.data), block.hashed.hash, size=len(block.data))


def run_all(jobs: list[Callable[[], object]], stop: Callable[[], object] = lambda: None) -> None:
    """Run jobs concurrently; they are expected to wait for a network or disk most of the time.

    Args:
        jobs: the jobs.
        stop: called after the first error, to stop running jobs; further jobs are not started.

    Raises:
        BaseException: the first error of any job, after all jobs have ended.
    """
    if len(jobs) <= 1:
        for job in jobs:
            job()
        return
    from concurrent.futures import ThreadPoolExecutor, wait  # not needed if nothing is new

    together = _Together(stop)
    with ThreadPoolExecutor(min(MAX_PARALLEL, len(jobs)), "odf-transfer") as pool:
        try:
            wait([pool.submit(together.run, job) for job in jobs])
        except BaseException as error:  # noqa: BLE001 (the user pressed Ctrl-C)
            together.fail(error)
    together.raise_first()


class _Together:
    """Concurrent jobs that stop when the first of them fails."""

    def __init__(self, stop: Callable[[], object]) -> None:
        self._stop = stop
        self._first: BaseException | None = None
        self._lock = threading.Lock()

    def run(self, job: Callable[[], object]) -> None:
        """Run a job, unless another one has failed."""
        if self._first is None:
            try:
                job()
            except BaseException as error:  # noqa: BLE001 (raised by `raise_first`)
                self.fail(error)

    def fail(self, error: BaseException) -> None:
        """Record an error and stop the other jobs; errors after the first one are ignored as its consequences."""
        with self._lock:
            if self._first is not None:
                return
            self._first = error
        self._stop()

    def raise_first(self) -> None:
        """Raise the first error, if there was one."""
        if self._first is not None:
            raise self._first


class _Copying:
    """A set of running copies."""

    def __init__(self, source: DatasetLayout, target: DatasetLayout, total: int, progress: BytesProgress) -> None:
        self._source = source
        self._target = target
        self._monitor = StreamMonitor(total, progress)

    def copy(self, item: ObjectOfBlock) -> None:
        """Copy one file."""
        source, target = item.kind.store(self._source), item.kind.store(self._target)
        with self._monitor.over(source.open(item.name), source.describe(item.name)) as watched:
            try:
                target.insert_stream(watched, item.name, size=item.size)
            except (HashMismatch, ObjectTooLarge) as error:
                raise error.with_context(source.describe(item.name)) from error
        found = target.size(item.name)
        # `insert_stream` rejects longer content. If shorter content has the right hash, the block is wrong.
        if found != item.size:
            raise IntegrityError(f"Block {item.block}: its file {item.name} has {found} bytes, not {item.size}")

    def stop(self) -> None:
        """Make all copies fail soon, including those that wait for a server."""
        self._monitor.stop()


class StreamMonitor:
    """Counts the bytes of concurrently read streams, and stops them together.

    Attributes:
        total: expected total number of bytes.
        done: number of received bytes.
    """

    def __init__(self, total: int, progress: BytesProgress) -> None:
        self.total = total
        self.done = 0
        self._progress = progress
        self._stopped = False
        self._open: set[BinaryIO] = set()
        self._lock = threading.RLock()

    def stop(self) -> None:
        """Make all reads fail soon, including those that wait for a server."""
        with self._lock:
            self._stopped = True
            streams = list(self._open)
        for stream in streams:
            stream.close()

    @contextmanager
    def over(self, stream: BinaryIO, where: str) -> Iterator[BinaryIO]:
        """Wrap a stream during the block: count its bytes, close it at the end or on stop, name it in errors."""
        with stream:
            with self._lock:
                self._open.add(stream)
            try:
                yield cast("BinaryIO", _Watched(self, stream, where))
            finally:
                with self._lock:
                    self._open.discard(stream)

    def advance(self, count: int) -> None:
        """Count received bytes.

        Raises:
            TransferError: the monitor was stopped.
        """
        with self._lock:
            self.check()
            self.done += count
            self.total = max(self.total, self.done)
            self._progress(self.done, self.total)

    def check(self) -> None:
        """Raise an error if the monitor was stopped."""
        if self._stopped:
            raise TransferError("Stopped, since another file could not be copied")


class _Watched:
    """Stream whose bytes are counted, and whose errors are reported as read errors."""

    def __init__(self, monitor: StreamMonitor, stream: BinaryIO, where: str) -> None:
        self._monitor = monitor
        self._stream = stream
        self._where = where
        self._pace = Pace()

    def read(self, size: int) -> bytes:
        self._monitor.check()
        begin = time.monotonic()
        try:
            data = self._stream.read(size)
            self._pace.wait(time.monotonic() - begin, len(data))
        except TimeoutError as error:
            raise TransferError(f"{self._where}: {error}", hint="Run the command again.") from error
        except (OSError, ValueError) as error:
            raise OdfError(f"Cannot read {self._where}: {error}") from error
        self._monitor.advance(len(data))
        return data
