"""Copying from one place to another: blocks, and the files that they speak of."""

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
"""Objects on their way at the same time."""

BytesProgress = Callable[[int, int], None]
"""Called with the bytes copied so far and the bytes of all, by one thread at a time."""


class ObjectKind(Enum):
    """A kind of file in a dataset."""

    DATA_SLICE = "DataSlice"
    CHECKPOINT = "Checkpoint"

    def store(self, layout: DatasetLayout) -> ObjectStore:
        """Return where a dataset keeps files of this kind."""
        return layout.data if self is ObjectKind.DATA_SLICE else layout.checkpoints


@dataclass(frozen=True, slots=True)
class ObjectOfBlock:
    """A file that a block speaks of.

    Attributes:
        kind: what it is.
        name: its physical hash.
        size: its size in bytes, as the block announces it.
        block: the block, for messages.
    """

    kind: ObjectKind
    name: Multihash
    size: int
    block: Multihash

    def is_in(self, layout: DatasetLayout) -> bool:
        """Return whether a dataset has it, of the announced size."""
        try:
            # Not hashed again: nothing takes this name in a store before it has been hashed.
            return self.kind.store(layout).size(self.name) == self.size
        except ObjectNotFound:
            return False


def objects_of_blocks(blocks: Iterable[HashedBlock]) -> list[ObjectOfBlock]:
    """The files that some blocks speak of, each once.

    Raises:
        IntegrityError: a file that cannot be, by its hash or its sizes; the message names block and file.
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
    """Those of the files that a dataset lacks, in their order; asked for several at a time.

    Raises:
        OdfError: the first that went wrong.
    """
    wanted = list(objects)
    here: set[ObjectOfBlock] = set()

    def look(item: ObjectOfBlock) -> None:
        if item.is_in(layout):
            here.add(item)
            item.kind.store(layout).touch(item.name)  # nobody may take it for garbage until a head leads to it

    run_all([partial(look, item) for item in wanted])
    return [item for item in wanted if item not in here]


def copy_objects(
    source: DatasetLayout, target: DatasetLayout, objects: list[ObjectOfBlock], progress: BytesProgress
) -> None:
    """Copy files, several at a time, each hashed while it flows. All that arrived whole stay, also after an error.

    Args:
        source: the dataset that has them.
        target: the dataset that gets them.
        objects: the files.
        progress: is told of bytes that have arrived.

    Raises:
        OdfError: the first that went wrong, when all others have come to rest; nothing half copied is left.
    """
    copying = _Copying(source, target, sum(item.size for item in objects), progress)
    run_all([partial(copying.copy, item) for item in objects], copying.stop)


def copy_blocks(blocks: Iterable[EncodedBlock], target: DatasetLayout) -> None:
    """Store blocks that a dataset lacks; no chain has them until its head moves, so that their order does not matter.

    Raises:
        OdfError: the first that went wrong.
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
    """Do some jobs, several at a time: most of their time is waiting for a network or a disk.

    Args:
        jobs: what to do.
        stop: called after the first error, to bring those that run to an early end; no other job begins.

    Raises:
        BaseException: the first error of any of them, when all have come to rest.
    """
    if len(jobs) <= 1:
        for job in jobs:
            job()
        return
    from concurrent.futures import ThreadPoolExecutor, wait  # not needed when nothing is new

    together = _Together(stop)
    with ThreadPoolExecutor(min(MAX_PARALLEL, len(jobs)), "odf-transfer") as pool:
        try:
            wait([pool.submit(together.run, job) for job in jobs])
        except BaseException as error:  # noqa: BLE001 (somebody pressed Ctrl-C)
            together.fail(error)
    together.raise_first()


class _Together:
    """Jobs that end with the first of them that fails."""

    def __init__(self, stop: Callable[[], object]) -> None:
        self._stop = stop
        self._first: BaseException | None = None
        self._lock = threading.Lock()

    def run(self, job: Callable[[], object]) -> None:
        """Do one of them, unless another one has failed."""
        if self._first is None:
            try:
                job()
            except BaseException as error:  # noqa: BLE001 (raised by `raise_first`)
                self.fail(error)

    def fail(self, error: BaseException) -> None:
        """Remember an error and stop the others, if it is the first: what they say of that is no news."""
        with self._lock:
            if self._first is not None:
                return
            self._first = error
        self._stop()

    def raise_first(self) -> None:
        """Raise the error that ended it all, if there was one."""
        if self._first is not None:
            raise self._first


class _Copying:
    """Some copies in progress."""

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
        # `insert_stream` refuses what is too long. What is too short has the right hash, so the block is wrong.
        if found != item.size:
            raise IntegrityError(f"Block {item.block}: its file {item.name} has {found} bytes, not {item.size}")

    def stop(self) -> None:
        """Let every copy fail soon, also those that wait for a server."""
        self._monitor.stop()


class StreamMonitor:
    """Streams that are read side by side: counted together and stopped together.

    Attributes:
        total: bytes of all that is expected.
        done: bytes that have come.
    """

    def __init__(self, total: int, progress: BytesProgress) -> None:
        self.total = total
        self.done = 0
        self._progress = progress
        self._stopped = False
        self._open: set[BinaryIO] = set()
        self._lock = threading.RLock()

    def stop(self) -> None:
        """Let everything that is read fail soon, also what waits for a server."""
        with self._lock:
            self._stopped = True
            streams = list(self._open)
        for stream in streams:
            stream.close()

    @contextmanager
    def over(self, stream: BinaryIO, where: str) -> Iterator[BinaryIO]:
        """A stream, counted, closed at the end or when all is stopped; its errors name the place."""
        with stream:
            with self._lock:
                self._open.add(stream)
            try:
                yield cast("BinaryIO", _Watched(self, stream, where))
            finally:
                with self._lock:
                    self._open.discard(stream)

    def advance(self, count: int) -> None:
        """Note bytes that have come.

        Raises:
            TransferError: all is stopped.
        """
        with self._lock:
            self.check()
            self.done += count
            self.total = max(self.total, self.done)
            self._progress(self.done, self.total)

    def check(self) -> None:
        """Raise an error if all is stopped."""
        if self._stopped:
            raise TransferError("Stopped, since another file could not be copied")


class _Watched:
    """A stream whose bytes are counted, and whose errors are told as errors of reading."""

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
