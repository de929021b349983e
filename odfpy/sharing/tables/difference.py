"""Changes of tables that keep none: the difference between the files of two versions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from odfpy.data.multihash import Multihash
from odfpy.sharing.tables.contract import ChangeKind, TableChange, TableFile, TableVersion

if TYPE_CHECKING:
    import numpy.typing as npt

    Mask = npt.NDArray[np.bool_]


def file_changes(before: Iterable[TableFile], now: Iterable[TableFile], version: TableVersion) -> Iterator[TableChange]:
    """The files, and the rows of files, that a version has removed and added.

    Args:
        before: the files of the version before.
        now: those of the version.
        version: the version.
    """
    old = {_place(file): file for file in before}
    new = {_place(file): file for file in now}
    for place, file in old.items():
        if place not in new:
            yield TableChange(ChangeKind.REMOVED, replace(file, version=version))
    for place, file in new.items():
        known = old.get(place)
        if known is None:
            yield TableChange(ChangeKind.ADDED, replace(file, version=version))
        elif known.identity != file.identity:
            yield from _row_changes(known, file, version)


def with_live(file: TableFile, live: Mask) -> TableFile:
    """A file of which only some rows count.

    Args:
        file: all of the file.
        live: of each of its rows, whether it counts.
    """
    identity = f"{file.identity}:{Multihash.of(np.packbits(live).tobytes())}"
    return replace(file, identity=identity, num_rows=len(live), live=partial(_given, live))


def _row_changes(old: TableFile, new: TableFile, version: TableVersion) -> Iterator[TableChange]:
    old_rows, new_rows = (None if file.live is None else file.live() for file in (old, new))
    if old_rows is None and new_rows is None:  # written anew in the same place
        yield TableChange(ChangeKind.REMOVED, replace(old, version=version))
        yield TableChange(ChangeKind.ADDED, replace(new, version=version))
        return
    if old_rows is None:
        assert new_rows is not None  # noqa: S101  see above
        old_rows = np.ones(len(new_rows), np.bool_)
    if new_rows is None:
        new_rows = np.ones(len(old_rows), np.bool_)
    for kind, file, rows in (
        (ChangeKind.REMOVED, old, old_rows & ~new_rows),
        (ChangeKind.ADDED, new, new_rows & ~old_rows),
    ):
        if rows.any():
            yield TableChange(kind, with_live(replace(file, version=version), rows))


def _place(file: TableFile) -> str:
    return file.url or str(file.path)


def _given(live: Mask) -> Mask:
    return live
