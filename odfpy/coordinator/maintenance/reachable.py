"""The objects that the references of a dataset reach, and those that they do not.

Each reference (head, branches, tags) reaches the block that it names, all blocks before that, the slices and
checkpoints that these speak of, and the objects that rows of these slices link to. What is reached is never touched,
except for linked objects whose removal is recorded and allowed: see `removable_objects`. The rest is of no use: objects
of commits and transfers that were interrupted, history that was rewritten, temporary files of writers that were killed.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import field, replace
from enum import Enum
from pathlib import Path
from typing import Final

from odfpy.chain.events import AddData, ExecuteTransform, SetDataSchema
from odfpy.chain.layout import DatasetLayout
from odfpy.chain.links.linked_objects import all_links
from odfpy.chain.signatures import FOLDER as SIGNATURES
from odfpy.chain.slices import SliceOfBlock
from odfpy.chain.stores.packed_objects import PACKED
from odfpy.data.hash_set import HashSet
from odfpy.data.multihash import Multihash
from odfpy.data.schemas.object_links import link_columns, unread_links
from odfpy.errors import InvalidValue, OdfError
from odfpy.files import TEMPORARY
from odfpy.repository.partial_objects import PART, forgotten_parts
from odfpy.values import dataclass

OBJECT_FOLDERS = ("blocks", "data", "checkpoints")
"""Folders of a dataset whose files are named by their hashes."""

_MINUTE: Final = 60.0


@dataclass(frozen=True, slots=True)
class Reached:
    """Everything that the references of a dataset reach.

    Attributes:
        blocks: all of them.
        data: the slices.
        checkpoints: all that blocks speak of, whether they are there or not.
        last_checkpoints: those that the next run after a reference would go on from.
        links: objects that rows of the slices link to, also those of rows that were taken back.
        has_unread_links: true if rows link to objects in a way that cannot be read here, so that any may be of use.
    """

    blocks: set[Multihash] = field(default_factory=set)
    data: set[Multihash] = field(default_factory=set)
    checkpoints: set[Multihash] = field(default_factory=set)
    last_checkpoints: set[Multihash] = field(default_factory=set)
    links: HashSet = field(default_factory=HashSet)
    has_unread_links: bool = False

    def needs_data(self, name: Multihash) -> bool:
        """Return whether an object beside the slices, or a slice, is of use."""
        return self.has_unread_links or name in self.data or name in self.links


@dataclass(slots=True)
class _Walk:
    """A walk: what the blocks so far say. A column that any schema links to objects counts as such in all slices."""

    reached: Reached = field(default_factory=Reached)
    slices: list[SliceOfBlock] = field(default_factory=list)
    links: set[str] = field(default_factory=set)
    has_unread_links: bool = False


def reachable_blocks(layout: DatasetLayout) -> Reached:
    """Walk back from every reference; each block is read once, and each slice whose rows may link to objects.

    Raises:
        OdfError: a reference, a block or such a slice is missing or damaged, so that nobody knows what is reached.
    """
    layout.chain.head()  # without one, all would seem to be of no use
    found = _Walk()
    for name in layout.refs.names():
        head = layout.refs.get(name)
        if head is not None:
            _walk(layout, head, found)
    links = all_links(found.slices, found.links, layout)
    return replace(found.reached, links=links, has_unread_links=found.has_unread_links)


def _walk(layout: DatasetLayout, head: Multihash, walk: _Walk) -> None:
    """All from one block on; past what is known already only as far as its checkpoint needs."""
    wants_last = True
    found = walk.reached
    for hashed in layout.chain.iter_blocks(head):
        is_known = hashed.hash in found.blocks
        if is_known and not wants_last:
            return
        found.blocks.add(hashed.hash)
        event = hashed.block.event
        if isinstance(event, SetDataSchema):
            walk.links.update(column.name for column in link_columns(event.schema))
            walk.has_unread_links |= bool(unread_links(event.schema))
        if not isinstance(event, (AddData, ExecuteTransform)):
            continue
        if event.new_data is not None:
            found.data.add(event.new_data.physical_hash)
            walk.slices += [] if is_known else [SliceOfBlock(hashed, event.new_data)]
        if event.new_checkpoint is not None:
            found.checkpoints.add(event.new_checkpoint.physical_hash)
            if wants_last:
                found.last_checkpoints.add(event.new_checkpoint.physical_hash)
        # Also after an event without a checkpoint: a run goes on from that of the last data event, and from no older
        # one.
        wants_last = False


# --- What lies beside that -------------------------------------------------------------------------------------------


class Garbage(Enum):
    """Why a file is of no use."""

    OBJECT = "unreferenced"
    TEMPORARY = "temporary"
    CHECKPOINT = "superseded checkpoint"
    CACHE = "cache"
    LET_GO = "let go as recorded"


@dataclass(frozen=True, slots=True)
class UnusedPath:
    """A file or folder that nobody needs.

    Attributes:
        path: where it is.
        size: its bytes.
        why: what it is.
        name: its hash, of an object.
    """

    path: Path
    size: int
    why: Garbage
    name: Multihash | None = None


def unreferenced_objects(folder: Path, found: Reached) -> Iterator[UnusedPath]:
    """The objects of a dataset that no reference reaches, and signatures of such blocks."""
    is_block, is_checkpoint = found.blocks.__contains__, found.checkpoints.__contains__
    needed_in = (is_block, found.needs_data, is_checkpoint, is_block, found.needs_data)
    for part, is_needed in zip((*OBJECT_FOLDERS, SIGNATURES, PACKED), needed_in, strict=True):
        for path in _files(folder / part):
            name = object_name(path)
            if name is not None and not is_needed(name):
                yield UnusedPath(path, size_of(path), Garbage.OBJECT, name)


def temporary(folder: Path) -> Iterator[UnusedPath]:
    """Yield what killed writers have left in a dataset; of use to nobody but a writer that is at work."""
    # A part of an object is somebody's until nobody has gone on with it for long: a push that was cut goes on there.
    for path in (*sorted(folder.rglob(f"{TEMPORARY}*")), *forgotten_parts(folder / "data")):
        # Settings are written without the dataset's lock.
        if path.parent.name != "info" or is_left_since(time.time() - _MINUTE, path):
            yield UnusedPath(path, size_of(path), Garbage.TEMPORARY)


def is_left_since(moment: float, path: Path) -> bool:
    """Return whether a file is there, and nobody has written it after a moment, in seconds since 1970."""
    try:
        return path.lstat().st_mtime <= moment
    except OSError:  # it has come to be what it was to be
        return False


def foreign(folder: Path) -> Iterator[Path]:
    """Yield what lies among the objects of a dataset and is not named by a hash."""
    for part in OBJECT_FOLDERS:
        for path in _entries(folder / part):
            if not path.name.startswith((TEMPORARY, PART)) and (object_name(path) is None or not path.is_file()):
                yield path


def object_name(path: Path) -> Multihash | None:
    """The hash that a file is named by, None for other names."""
    try:
        name = Multihash.parse(path.name)
    except InvalidValue:
        return None
    return name if str(name) == path.name else None


def size_of(path: Path) -> int:
    """Bytes of a file, or of all files in a folder."""
    if path.is_symlink() or not path.is_dir():
        return path.lstat().st_size if path.exists() or path.is_symlink() else 0
    return sum(size_of(child) for child in _entries(path))


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in _entries(folder) if path.is_file())


def _entries(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as entries:
            return sorted(Path(entry.path) for entry in entries)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise OdfError(f"Cannot read {folder}: {error.strerror}") from error
