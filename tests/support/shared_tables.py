"""Reading of shared tables like clients of the protocol: the served files, with the values beside them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from odfpy.sharing.decisions import ALL, View, VisiblePart
from odfpy.sharing.files.maker import FileMaker
from odfpy.sharing.files.schema import shared_schema
from odfpy.sharing.tables.contract import ReadableTable, TableChange, TableFile, TableVersion
from odfpy.sharing.tables.partitions import partition_scalars


def view(rows: str | None = None, columns: tuple[str, ...] | None = None) -> View:
    return View((VisiblePart(columns, rows),))


def rows_of(table: ReadableTable, number: int | None, folder: Path, seen: View = ALL) -> list[dict[str, Any]]:
    """Return the rows of a version, sorted.

    Args:
        table: the table.
        number: number of the version, None for the latest.
        folder: where files are made.
        seen: the visible part.
    """
    version = table.latest if number is None else table.version(number)
    return in_order(row for file in table.files(version) for row in _rows(table, version, file, folder, seen))


def changes_of(
    table: ReadableTable, first: int, last: int, folder: Path, seen: View = ALL
) -> list[tuple[int, str, dict[str, Any]]]:
    """Return the changes of versions as triples of version, kind and row, sorted.

    Args:
        table: the table.
        first: number of the first version.
        last: number of the last version.
        folder: where files are made.
        seen: the visible part.
    """
    found = []
    for change in table.changes(table.version(first), table.version(last)):
        for row in _rows(table, change.file.version, change.file, folder, seen, change):
            kind = row.pop("_change_type", {"add": "insert", "remove": "delete"}.get(change.kind.value))
            found.append((change.file.version.number, kind, row))
    return sorted(found, key=repr)


def in_order(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=repr)


def _rows(
    table: ReadableTable,
    version: TableVersion,
    file: TableFile,
    folder: Path,
    seen: View,
    change: TableChange | None = None,
) -> list[dict[str, Any]]:
    whole = table.schema(version)
    schema = shared_schema(pa.schema([whole.field(name) for name in seen.columns(whole.names)]))
    beside = {name: value for name, value in file.partition_values.items() if seen.is_all}
    stored = pa.schema([field for field in schema if field.name not in beside])
    served = FileMaker(folder / "made", 10**9).served(file, stored, seen, change)
    if served is None:
        return []
    names = [*stored.names, *(["_change_type"] if change is not None and change.operations else [])]
    found = pq.read_table(served.path, partitioning=None).to_pylist()
    types = {field.name: field.type for field in schema}
    values = {name: one.as_py() for name, one in partition_scalars(beside, types).items()}
    return [{**{name: row.get(name) for name in names}, **values} for row in found]
