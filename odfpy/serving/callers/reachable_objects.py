"""Objects that are reachable from the references of a dataset: no other file in its folder is served."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from odfpy.chain.events import SetDataSchema
from odfpy.chain.layout import DatasetLayout
from odfpy.chain.links.linked_objects import all_links
from odfpy.chain.slices import SliceOfBlock, slices_of
from odfpy.chain.stores.ref_store import HEAD, RefStore
from odfpy.data.hash_set import HashSet
from odfpy.data.multihash import Multihash
from odfpy.data.schemas.object_links import link_columns
from odfpy.errors import OdfError
from odfpy.repository.objects import ObjectKind, objects_of_blocks


class ReachableObjects:
    """The reachable objects of one dataset, updated when its references change. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tips: frozenset[Multihash] = frozenset()
        self._objects: dict[ObjectKind | None, set[Multihash]] = {}
        self._link_columns: frozenset[str] = frozenset()
        self._links = _Links()

    def has(self, layout: DatasetLayout, kind: ObjectKind | None, name: Multihash) -> bool:
        """Return whether an object is reachable.

        Args:
            layout: the dataset.
            kind: kind of the object; None for a block.
            name: its hash.

        Raises:
            OdfError: the head or a block is missing or damaged.
        """
        return self._speaks_of(layout, kind, name) or (kind is ObjectKind.DATA_SLICE and self._links_to(layout, name))

    def has_link(self, layout: DatasetLayout, name: Multihash) -> bool:
        """Return whether an object is linked from rows, and is not a slice.

        Raises:
            OdfError: the head or a block is missing or damaged.
        """
        return not self._speaks_of(layout, ObjectKind.DATA_SLICE, name) and self._links_to(layout, name)

    def _speaks_of(self, layout: DatasetLayout, kind: ObjectKind | None, name: Multihash) -> bool:
        tips = frozenset(target for _, target in readable_references(layout.refs))
        with self._lock:
            if tips != self._tips:
                self._follow(layout, tips)
            return name in self._objects.get(kind, ())

    def _links_to(self, layout: DatasetLayout, name: Multihash) -> bool:
        with self._lock:
            tips, columns = self._tips, self._link_columns
        return bool(columns) and self._links.has(layout, tips, columns, name)

    def _follow(self, layout: DatasetLayout, tips: frozenset[Multihash]) -> None:
        blocks = self._objects.get(None, set())
        grown, left, columns = _walk(layout, tips, blocks)
        if not self._tips <= left | tips:  # a reference was removed or moved: start again
            grown, _, columns = _walk(layout, tips, set())
            self._objects, self._link_columns = {}, frozenset()
        for kind, names in grown.items():
            self._objects.setdefault(kind, set()).update(names)
        self._link_columns |= columns
        self._tips = tips


class _Links:
    """The objects that rows of one dataset link to, read when an object that is not a slice is requested.

    It has its own lock: requests for blocks do not wait until many slices have been read.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tips: frozenset[Multihash] = frozenset()
        self._columns: frozenset[str] = frozenset()
        self._blocks: set[Multihash] = set()
        self._names = HashSet()
        self._unread: list[SliceOfBlock] = []

    def has(self, layout: DatasetLayout, tips: frozenset[Multihash], columns: frozenset[str], name: Multihash) -> bool:
        with self._lock:
            if tips != self._tips or columns != self._columns:
                self._follow(layout, tips, columns)
            if name not in self._names and self._unread:  # a damaged slice may have been repaired since
                self._read(layout, self._unread)
            return name in self._names

    def _follow(self, layout: DatasetLayout, tips: frozenset[Multihash], columns: frozenset[str]) -> None:
        # Until all blocks are read, nothing changes: a block that cannot be read now is asked for again.
        blocks, new, met = _new_slices(layout, tips, self._blocks)
        if columns != self._columns or not self._tips <= met | tips:
            blocks, new, _ = _new_slices(layout, tips, set())
            self._blocks, self._names, self._unread = set(), HashSet(), []
        self._columns, self._tips = columns, tips
        self._blocks |= blocks
        self._read(layout, [*self._unread, *new])

    def _read(self, layout: DatasetLayout, slices: list[SliceOfBlock]) -> None:
        self._unread, failed = slices, []
        for item in slices:
            try:
                self._names.add_all(all_links([item], self._columns, layout))
            except OdfError:  # links from other slices are still served
                failed.append(item)
        self._unread = failed


def _new_slices(
    layout: DatasetLayout, tips: frozenset[Multihash], known: set[Multihash]
) -> tuple[set[Multihash], list[SliceOfBlock], set[Multihash]]:
    """Walk the chain back from some blocks, and return what is new: blocks, and their slices.

    Also returns the known blocks at which the walk stopped.
    """
    blocks: set[Multihash] = set()
    new: list[SliceOfBlock] = []
    met: set[Multihash] = set()
    for tip in tips:
        for hashed in layout.chain.iter_blocks(tip):
            if hashed.hash in known:
                met.add(hashed.hash)
            if hashed.hash in known or hashed.hash in blocks:
                break
            blocks.add(hashed.hash)
            new += slices_of([hashed])
    return blocks, new, met


def readable_references(refs: RefStore) -> Iterator[tuple[str, Multihash]]:
    """Return name and block of each reference; a damaged tag or branch is skipped."""
    for name in refs.names():
        with suppress(*(() if name == HEAD else (OdfError,))):
            target = refs.get(name)
            if target is not None:
                yield name, target


def _walk(
    layout: DatasetLayout, tips: frozenset[Multihash], known: set[Multihash]
) -> tuple[dict[ObjectKind | None, set[Multihash]], set[Multihash], set[str]]:
    """Walk the chain back from some blocks, and return what is new.

    Also returns the known blocks at which the walk stopped, and the columns that link to objects.
    """
    names: dict[ObjectKind | None, set[Multihash]] = {None: set()}
    met: set[Multihash] = set()
    columns: set[str] = set()
    for tip in tips:
        for hashed in layout.chain.iter_blocks(tip):
            if hashed.hash in known:
                met.add(hashed.hash)
                break
            if hashed.hash in names[None]:
                break
            names[None].add(hashed.hash)
            if isinstance(hashed.block.event, SetDataSchema):
                columns.update(column.name for column in link_columns(hashed.block.event.schema))
            for item in objects_of_blocks([hashed]):
                names.setdefault(item.kind, set()).add(item.name)
    return names, met, columns


class ReachableObjectsCache:
    """A cache of `ReachableObjects`, one for each dataset folder."""

    def __init__(self) -> None:
        self._known: dict[Path, ReachableObjects] = {}

    def get(self, folder: Path) -> ReachableObjects:
        """Return that of the dataset in a folder."""
        return self._known.setdefault(folder, ReachableObjects())
