"""Objects that the chain of a dataset reaches: nothing else in its folder is given away."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from odfpy.chain.layout import DatasetLayout
from odfpy.chain.ref_store import HEAD, RefStore
from odfpy.data.multihash import Multihash
from odfpy.errors import OdfError
from odfpy.repository.objects import ObjectKind, linked_objects


class Reach:
    """The objects of one dataset that its references lead to, kept up with them. Threads may share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tips: frozenset[Multihash] = frozenset()
        self._objects: dict[ObjectKind | None, set[Multihash]] = {}

    def has(self, layout: DatasetLayout, kind: ObjectKind | None, name: Multihash) -> bool:
        """Return whether a reference leads to an object.

        Args:
            layout: the dataset.
            kind: what the object is; None for a block.
            name: its hash.

        Raises:
            OdfError: the head or a block is missing or damaged.
        """
        tips = frozenset(target for _, target in readable_references(layout.refs))
        with self._lock:
            if tips != self._tips:
                self._follow(layout, tips)
            return name in self._objects.get(kind, ())

    def _follow(self, layout: DatasetLayout, tips: frozenset[Multihash]) -> None:
        blocks = self._objects.get(None, set())
        grown, left = _walk(layout, tips, blocks)
        if not self._tips <= left | tips:  # a reference has gone, or went elsewhere: what it alone led to is out
            self._objects = {}
            grown, _ = _walk(layout, tips, set())
        for kind, names in grown.items():
            self._objects.setdefault(kind, set()).update(names)
        self._tips = tips


def readable_references(refs: RefStore) -> Iterator[tuple[str, Multihash]]:
    """Name and block of each reference; a damaged tag or branch leads nowhere, and is in nobody's way."""
    for name in refs.names():
        with suppress(*(() if name == HEAD else (OdfError,))):
            target = refs.get(name)
            if target is not None:
                yield name, target


def _walk(
    layout: DatasetLayout, tips: frozenset[Multihash], known: set[Multihash]
) -> tuple[dict[ObjectKind | None, set[Multihash]], set[Multihash]]:
    """Return what some blocks and those before them have that is not known; and the known blocks where that begins."""
    found: dict[ObjectKind | None, set[Multihash]] = {None: set()}
    met: set[Multihash] = set()
    for tip in tips:
        for hashed in layout.chain.iter_blocks(tip):
            if hashed.hash in known:
                met.add(hashed.hash)
                break
            if hashed.hash in found[None]:
                break
            found[None].add(hashed.hash)
            for item in linked_objects([hashed]):
                found.setdefault(item.kind, set()).add(item.name)
    return found, met


class Reaches:
    """One `Reach` for each dataset, by its folder."""

    def __init__(self) -> None:
        self._known: dict[Path, Reach] = {}

    def of(self, folder: Path) -> Reach:
        """That of the dataset in a folder."""
        return self._known.setdefault(folder, Reach())
