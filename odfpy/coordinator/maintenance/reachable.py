"""Reachability: the objects that the references of a dataset reach, and the garbage that they do not reach.

Each reference (head, branches, tags) reaches its block, all blocks before it, their slices and checkpoints, and the
objects that rows of these slices link to. Reachable objects are never removed, except for linked objects whose removal
is recorded and permitted: see `removable_objects`. All other objects are garbage: from interrupted commits and
transfers, rewritten history, and killed writers.
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
from odfpy.repository.partial_objects import PART, stale_parts
from odfpy.values import dataclass

OBJECT_FOLDERS = ("blocks", "data", "checkpoints")
"""Folders of a dataset with files named by their hashes."""

_MINUTE: Final = 60.0


@dataclass(frozen=True, slots=True)
class Reached:
    """The objects that the references of a dataset reach.

    Attributes:
        blocks: the reachable blocks.
        data: the reachable slices.
        checkpoints: all checkpoints named in blocks, whether they exist or not.
        last_checkpoints: the checkpoints from which the next run after a reference would continue.
        links: objects that rows of the slices link to, including retracted rows.
        has_unread_links: True if rows link to objects in a way that this release cannot read, so that any object may be
            in use.
    """

    blocks: set[Multihash] = field(default_factory=set)
    data: set[Multihash] = field(default_factory=set)
    checkpoints: set[Multihash] = field(default_factory=set)
    last_checkpoints: set[Multihash] = field(default_factory=set)
    links: HashSet = field(default_factory=HashSet)
    has_unread_links: bool = False

    def needs_data(self, name: Multihash) -> bool:
        """Return whether a slice or a linked object is reachable."""
        return self.has_unread_links or name in self.data or name in self.links


@dataclass(slots=True)
class _Walk:
    """State of a walk. A column that any schema declares as a link column is treated as one in all slices."""

    reached: Reached = field(default_factory=Reached)
    slices: list[SliceOfBlock] = field(default_factory=list)
    links: set[str] = field(default_factory=set)
    has_unread_links: bool = False


def reachable_blocks(layout: DatasetLayout) -> Reached:
    """Walk back from every reference; read each block, and each slice that may have links, once.

    Raises:
        OdfError: a reference, a block or such a slice is missing or damaged, so that reachability is unknown.
    """
    layout.chain.head()  # without a head, everything would seem unreachable
    walk = _Walk()
    for name in layout.refs.names():
        head = layout.refs.get(name)
        if head is not None:
            _walk(layout, head, walk)
    links = all_links(walk.slices, walk.links, layout)
    return replace(walk.reached, links=links, has_unread_links=walk.has_unread_links)


def _walk(layout: DatasetLayout, head: Multihash, walk: _Walk) -> None:
    """Walk back from a block; after an already visited block, continue only until the last checkpoint is found."""
    wants_last = True
    reached = walk.reached
    for hashed in layout.chain.iter_blocks(head):
        is_known = hashed.hash in reached.blocks
        if is_known and not wants_last:
            return
        reached.blocks.add(hashed.hash)
        event = hashed.block.event
        if isinstance(event, SetDataSchema):
            walk.links.update(column.name for column in link_columns(event.schema))
            walk.has_unread_links |= bool(unread_links(event.schema))
        if not isinstance(event, (AddData, ExecuteTransform)):
            continue
        if event.new_data is not None:
            reached.data.add(event.new_data.physical_hash)
            walk.slices += [] if is_known else [SliceOfBlock(hashed, event.new_data)]
        if event.new_checkpoint is not None:
            reached.checkpoints.add(event.new_checkpoint.physical_hash)
            if wants_last:
                reached.last_checkpoints.add(event.new_checkpoint.physical_hash)
        # Stop even after an event without a checkpoint: a run continues from the checkpoint of the last data event, not
        # from an older one.
        wants_last = False


# --- Garbage ---------------------------------------------------------------------------------------------------------


class Garbage(Enum):
    """The kinds of garbage."""

    OBJECT = "unreferenced"
    TEMPORARY = "temporary"
    CHECKPOINT = "superseded checkpoint"
    CACHE = "cache"
    RELEASED = "removal recorded"


@dataclass(frozen=True, slots=True)
class UnusedPath:
    """A file or folder that can be removed.

    Attributes:
        path: its path.
        size: its size in bytes.
        why: the kind of garbage.
        name: its hash, for objects.
    """

    path: Path
    size: int
    why: Garbage
    name: Multihash | None = None


def unreferenced_objects(folder: Path, reached: Reached) -> Iterator[UnusedPath]:
    """Yield the unreachable objects of a dataset, and the signatures of unreachable blocks."""
    is_block, is_checkpoint = reached.blocks.__contains__, reached.checkpoints.__contains__
    needed_in = (is_block, reached.needs_data, is_checkpoint, is_block, reached.needs_data)
    for part, is_needed in zip((*OBJECT_FOLDERS, SIGNATURES, PACKED), needed_in, strict=True):
        for path in _files(folder / part):
            name = object_name(path)
            if name is not None and not is_needed(name):
                yield UnusedPath(path, size_of(path), Garbage.OBJECT, name)


def temporary(folder: Path) -> Iterator[UnusedPath]:
    """Yield left-overs of killed writers in a dataset; requires that no writer is running."""
    # Recent partial objects are retained: an interrupted push continues with them.
    for path in (*sorted(folder.rglob(f"{TEMPORARY}*")), *stale_parts(folder / "data")):
        # Settings are written without the dataset's lock.
        if path.parent.name != "info" or is_left_since(time.time() - _MINUTE, path):
            yield UnusedPath(path, size_of(path), Garbage.TEMPORARY)


def is_left_since(moment: float, path: Path) -> bool:
    """Return whether a file exists, and has not been written after a time in seconds since 1970."""
    try:
        return path.lstat().st_mtime <= moment
    except OSError:  # renamed to its final name
        return False


def foreign(folder: Path) -> Iterator[Path]:
    """Yield files in the object folders of a dataset that are not named by a hash."""
    for part in OBJECT_FOLDERS:
        for path in _entries(folder / part):
            if not path.name.startswith((TEMPORARY, PART)) and (object_name(path) is None or not path.is_file()):
                yield path


def object_name(path: Path) -> Multihash | None:
    """Return the hash in the name of a file, None for other names."""
    try:
        name = Multihash.parse(path.name)
    except InvalidValue:
        return None
    return name if str(name) == path.name else None


def size_of(path: Path) -> int:
    """Return the size of a file, or of all files in a folder."""
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
