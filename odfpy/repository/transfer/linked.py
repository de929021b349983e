"""Linked objects of a transfer, which are found in the received slices, and copied before the head moves.

The objects are only known after the slices have arrived. They are copied and hashed in portions; large ones are
resumable. Memory usage does not depend on their number, except for 34 bytes per object.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import BinaryIO, Final

from odfpy.chain.block import HashedBlock
from odfpy.chain.events import SetDataSchema, SetVocab
from odfpy.chain.layout import DatasetLayout
from odfpy.chain.link_summary import LinkedObjects
from odfpy.chain.links.linked_objects import UNKNOWN, linked_slices, times_kept
from odfpy.chain.state import ChainState
from odfpy.chain.stores.object_store import LocalObjectStore, ObjectStore, ObjectTooLarge, copy_hashed
from odfpy.chain.stores.ref_store import HEAD
from odfpy.data.hash_set import HashSet, as_names, name_of
from odfpy.data.link_filter import ALL, NONE, LinkFilter
from odfpy.data.multihash import Multihash
from odfpy.data.schemas.object_links import link_columns
from odfpy.errors import (
    DatasetLocked,
    HashMismatch,
    IntegrityError,
    ObjectNotFound,
    OdfError,
    TransferError,
)
from odfpy.files import TEMPORARY, make_folder
from odfpy.repository.objects import BytesProgress, ObjectOfBlock, StreamMonitor, run_all
from odfpy.repository.partial_objects import LARGE, PartialObject
from odfpy.repository.transfer.linked_names import WITHOUT, linked_in
from odfpy.values import dataclass

MAX_LINKED_SIZE: Final = 1 << 40
"""Maximum size of a linked object without a recorded size, in bytes."""


class MissingLinkedObjects(TransferError, code="E670"):
    """The source lacks files that rows link to."""


@dataclass(frozen=True, slots=True)
class WantedFiles:
    """The linked objects that a transfer copies.

    Attributes:
        choice: selection of objects.
        may_lack: whether the source may lack objects, like a partial copy.
        complete: whether to include objects of blocks that both datasets have.
    """

    choice: LinkFilter = ALL
    may_lack: bool = False
    complete: bool = False

    @property
    def is_lenient(self) -> bool:
        """True if objects that the source lacks are skipped."""
        return self.may_lack or self.choice.allows_missing


ALL_FILES: Final = WantedFiles()
NO_FILES: Final = WantedFiles(NONE)


@dataclass(frozen=True, slots=True)
class LinkedResult:
    """Counts of the linked objects that a transfer has copied.

    Attributes:
        count: number of objects.
        size: total size in bytes.
        elsewhere: number of objects that the source lacks, except for recorded removals.
    """

    count: int = 0
    size: int = 0
    elsewhere: int = 0

    def __add__(self, other: LinkedResult) -> LinkedResult:
        return LinkedResult(self.count + other.count, self.size + other.size, self.elsewhere + other.elsewhere)


class LinkedCopy:
    """Copies linked objects into a dataset, and counts them.

    Attributes:
        result: counts of the copied objects.
        missing: objects that the source lacks.
    """

    def __init__(self, target: ObjectStore, monitor: StreamMonitor) -> None:
        """
        Args:
            target: the store to copy to.
            monitor: counts the copied bytes.
        """
        self.result = LinkedResult()
        self.missing = HashSet()
        self._target = target
        self._monitor = monitor
        self._lock = threading.Lock()
        self._aside: dict[Multihash, Path] = {}

    def copy(self, items: list[ObjectOfBlock], source: ObjectStore) -> None:
        """Copy missing objects; complete ones are retained, even after an error.

        Raises:
            OdfError: the first error. Objects that the source lacks are recorded, and are no error.
        """
        try:
            run_all([partial(self._copy, item, source) for item in items], self._monitor.stop)
        finally:
            aside, self._aside = self._aside, {}
            self._target.insert_files(aside)

    def lack(self, names: Iterable[Multihash]) -> None:
        """Record objects that the source lacks."""
        self.missing.add(as_names(names))

    def _copy(self, item: ObjectOfBlock, source: ObjectStore) -> None:
        try:
            size = source.size(item.name) if item.size == UNKNOWN else item.size
            count = self._received(replace(item, size=min(size, MAX_LINKED_SIZE)), source)
        except ObjectNotFound:
            with self._lock:
                self.lack([item.name])
            return
        _require_size(item, count)
        with self._lock:
            self.result = replace(self.result, count=self.result.count + 1, size=self.result.size + count)

    def _received(self, item: ObjectOfBlock, source: ObjectStore) -> int:
        where = source.describe(item.name)

        def open_at(start: int) -> AbstractContextManager[BinaryIO]:
            return self._monitor.over(source.open_at(item.name, start), where)

        try:
            if not isinstance(self._target, LocalObjectStore):
                with open_at(0) as stream:
                    self._target.insert_stream(stream, item.name, size=item.size)
                return self._target.size(item.name)
            if item.size >= LARGE:
                try:
                    return PartialObject(self._target, item.name).receive(open_at, item.size)
                except DatasetLocked:  # another process receives the same object, with the same result
                    pass
            return self._put_aside(self._target, item, open_at)
        except (HashMismatch, ObjectTooLarge) as error:
            raise error.with_context(where) from error

    def _put_aside(
        self, target: LocalObjectStore, item: ObjectOfBlock, open_at: Callable[[int], AbstractContextManager[BinaryIO]]
    ) -> int:
        """Receive an object into a temporary file, so that all objects of a portion can be flushed together."""
        make_folder(target.folder)
        path = target.folder / f"{TEMPORARY}{secrets.token_hex(8)}"
        try:
            with open_at(0) as stream, path.open("xb") as file:
                copy_hashed(stream, file.write, item.name, item.size, str(target.folder))
        except BaseException as error:
            path.unlink(missing_ok=True)
            if isinstance(error, OSError):
                raise OdfError(f"Cannot write {path}: {error.strerror or error}") from error
            raise
        with self._lock:
            self._aside[item.name] = path
        return path.stat().st_size


def lacking(items: list[ObjectOfBlock], target: ObjectStore) -> list[ObjectOfBlock]:
    """Return the objects that a store lacks.

    Raises:
        IntegrityError: an object exists with another size than its row records.
    """
    found: list[ObjectOfBlock] = []

    def look(item: ObjectOfBlock) -> None:
        try:
            size = target.size(item.name)
        except ObjectNotFound:
            found.append(item)
            return
        _require_size(item, size)
        target.touch(item.name)  # protects it from garbage collection until the head moves

    run_all([partial(look, item) for item in items])
    return sorted(found, key=lambda item: item.name)


def _require_size(item: ObjectOfBlock, size: int) -> None:
    if item.size not in (UNKNOWN, size):
        raise IntegrityError(
            f"Block {item.block}: a row says that the object {item.name} has {item.size} bytes, but it has {size}"
        )


def require_no_loss(
    missing: HashSet, blocks: Iterable[HashedBlock], reader: DatasetLayout, wanted: WantedFiles, place: str
) -> int:
    """Return the number of missing objects that current rows link to.

    Args:
        missing: objects that the dataset lacks.
        blocks: the complete chain, oldest first.
        reader: the dataset with the slices.
        wanted: selection of objects; determines whether missing ones are an error.
        place: location of the dataset, for the message.

    Raises:
        MissingLinkedObjects: required objects are missing.
    """
    import numpy as np

    names = np.sort(as_names(missing))
    if len(names):
        names = names[times_kept(names, linked_slices(blocks), reader) > 0]
    if len(names) and not wanted.is_lenient:
        files = f"{len(names)} files" if len(names) > 1 else "a file"
        raise MissingLinkedObjects(
            f"{place} does not have {files} that rows link to, such as {name_of(names[0])}", hint=WITHOUT
        )
    return len(names)


def copy_linked(
    source: DatasetLayout,
    target: DatasetLayout,
    new: list[HashedBlock],
    before: Callable[[], list[HashedBlock]],
    base: ChainState,
    wanted: WantedFiles,
    progress: BytesProgress,
) -> LinkedResult:
    """Copy the linked objects of received blocks, after their slices have arrived.

    Args:
        source: the dataset to copy from.
        target: the dataset to copy to.
        new: the received blocks, oldest first.
        before: returns the blocks before the received ones, oldest first; only called if needed.
        base: state of the chain before the new blocks.
        wanted: selection of objects.
        progress: called with the transferred and the total number of bytes.

    Raises:
        MissingLinkedObjects: the source lacks required objects.
        IntegrityError: an object contradicts its row, or a link is invalid.
        TransferError: an object cannot be copied.
    """
    if wanted.choice.is_empty:
        return LinkedResult()
    reader = target if isinstance(target.data, LocalObjectStore) else source
    blocks, state = ([*before(), *new], None) if wanted.complete else (new, base)
    said = sum((LinkedObjects.of(hashed.block.event) for hashed in blocks), LinkedObjects())
    copying = LinkedCopy(target.data, StreamMonitor(said.size, progress))
    require_columns(blocks, base, wanted.choice)
    for items in linked_in(linked_slices(blocks, state), reader, wanted.choice, HashSet()):
        copying.copy(lacking(items, target.data), source.data)
    if not len(copying.missing):
        return copying.result
    whole = blocks if wanted.complete else [*before(), *new]
    elsewhere = require_no_loss(copying.missing, whole, reader, wanted, source.refs.describe(HEAD))
    return replace(copying.result, elsewhere=elsewhere)


def require_columns(blocks: Iterable[HashedBlock], base: ChainState, choice: LinkFilter) -> None:
    """Check that a dataset with linked objects has the columns that the selection refers to.

    Args:
        blocks: the received blocks, oldest first.
        base: state of the chain before these blocks.
        choice: the selection.

    Raises:
        SchemaError: a column is missing.
    """
    schema, vocab = (None if base.set_schema is None else base.set_schema.schema), base.vocab
    for hashed in blocks:
        event = hashed.block.event
        if isinstance(event, SetDataSchema):
            schema = event.schema
        elif isinstance(event, SetVocab):
            vocab = event.vocabulary
    if schema is not None and link_columns(schema):
        choice.require_columns(list(schema.names), vocab)
