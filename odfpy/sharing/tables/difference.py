"""Changes of tables without a change data feed: the difference between the files of two versions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from odfpy.data.multihash import Multihash
from odfpy.sharing.tables.contract import ChangeKind, ReadableTable, TableChange, TableFile, TableVersion

if TYPE_CHECKING:
    import numpy.typing as npt

    Mask = npt.NDArray[np.bool_]

_Key = TypeVar("_Key")


def file_changes(before: Iterable[TableFile], now: Iterable[TableFile], version: TableVersion) -> Iterator[TableChange]:
    """Return the files, and the rows of files, that a version has removed and added.

    Args:
        before: files of the previous version.
        now: files of the version.
        version: the version.
    """
    old = {file.path: file for file in before}
    new = {file.path: file for file in now}
    yield from _whole_files(old, new, version)
    for place, file in new.items():
        known = old.get(place)
        if known is not None and known.identity != file.identity:
            yield from _row_changes(known, file, version)


def whole_file_changes(table: ReadableTable, first: TableVersion, last: TableVersion) -> Iterator[TableChange]:
    """Return the files that a range of versions, both inclusive, has added and removed completely.

    Files that a version only rewrites, as in a compaction, are omitted: followers would receive their rows again.

    Args:
        table: the table.
        first: the first version.
        last: the last version.
    """
    before = {} if first.number == table.base else _by_identity(table, table.version(first.number - 1))
    for number in range(first.number, last.number + 1):
        version = table.version(number)
        now = _by_identity(table, version)
        if table.has_new_data(version):
            yield from _whole_files(before, now, version)
        before = now


def _by_identity(table: ReadableTable, version: TableVersion) -> dict[str, TableFile]:
    return {file.identity: file for file in table.files(version)}


def _whole_files(
    old: Mapping[_Key, TableFile], new: Mapping[_Key, TableFile], version: TableVersion
) -> Iterator[TableChange]:
    for key, file in old.items():
        if key not in new:
            yield TableChange(ChangeKind.REMOVED, replace(file, version=version))
    for key, file in new.items():
        if key not in old:
            yield TableChange(ChangeKind.ADDED, replace(file, version=version))


def with_live(file: TableFile, live: Mask) -> TableFile:
    """Return a file restricted to its live rows.

    Args:
        file: the complete file.
        live: for each row, whether it is live.
    """
    identity = f"{file.identity}:{Multihash.of(np.packbits(live).tobytes())}"
    return replace(file, identity=identity, num_rows=len(live), live=live)


def _row_changes(old: TableFile, new: TableFile, version: TableVersion) -> Iterator[TableChange]:
    old_rows, new_rows = old.live, new.live
    if old_rows is None and new_rows is None:  # rewritten under the same path
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
