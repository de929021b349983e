"""An Iceberg table as a shared table, read with the library pyiceberg.

Versions are the ancestors of the current snapshot; snapshots of other branches are not published, and so not included.
The number of a version is the sequence number of its snapshot, which equals its index in the list of snapshots if there
are no other branches: so numbers are stable when old snapshots expire. Version 0 is before the first one. Tables of
format 1 have no sequence numbers; their versions are numbered by the index in the list.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property, lru_cache
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.catalog.noop import NoopCatalog
from pyiceberg.io import FileIO, InputFile, InputStream, OutputFile
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.schema import Schema
from pyiceberg.serializers import FromInputFile
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Operation, Snapshot

from odfpy.data.timestamp import Timestamp
from odfpy.errors import OdfError
from odfpy.files import open_regular
from odfpy.sharing.errors import CannotShare
from odfpy.sharing.tables.contract import NoSuchVersion, TableChange, TableFile, TableVersion
from odfpy.sharing.tables.difference import file_changes, with_live
from odfpy.sharing.tables.local import LocalFile, LocalFolder, reason
from odfpy.sharing.tables.numbered import NumberedTable
from odfpy.sharing.tables.parquet_files import footer, open_parquet_file
from odfpy.sharing.tables.remote import BucketFile, BucketFolder, store_url, table_folder

if TYPE_CHECKING:
    import numpy.typing as npt

_File: TypeAlias = "LocalFile | BucketFile"

_NAMED: Final = re.compile(r"([^:/]+):([^:/]+\.[^:/]+)")
_FIELD_ID: Final = b"PARQUET:field_id"
_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_MAX_GAPS: Final = 100_000
_REPAIR: Final = "Repair the table at its origin, or share another metadata file of it."
_REWRITE: Final = "Rewrite its data files (in Spark: `CALL catalog.system.rewrite_data_files(...)`), and try again."


class IcebergTable(NumberedTable):
    """An Iceberg table: from a fixed metadata file, or the current one of a catalog."""

    def __init__(self, location: str) -> None:
        """
        Args:
            location: path or URL of a metadata file; or `catalog:namespace.table`, of a catalog in pyiceberg's
                configuration.

        Raises:
            CannotShare: the table does not exist, or is in an unsupported location.
        """
        self._location = location
        with self._reading():
            at, metadata = _catalog_entry(location)
            folder = at.rpartition("/")[0]
            self._folder = table_folder(folder.removesuffix("/metadata") or "/")
            files = _Files(self._folder)
            if metadata is None:
                metadata = FromInputFile.table_metadata(files.new_input(at))
            self._metadata = metadata
            self._table = Table(("shared", "table"), metadata, at, files, NoopCatalog("none"))
            self._names = self._table.name_mapping()

    # --- Versions ---

    @cached_property
    def _snapshots(self) -> Sequence[Snapshot]:
        """The ancestors of the current snapshot, oldest first."""
        known = {snapshot.snapshot_id: snapshot for snapshot in self._metadata.snapshots}
        found: dict[int, Snapshot] = {}
        at = self._metadata.current_snapshot_id
        while at is not None and at in known:
            if at in found:
                raise CannotShare(
                    f"The snapshots of the Iceberg table {self._location} are their own parents", hint=_REPAIR
                )
            found[at] = known[at]
            at = known[at].parent_snapshot_id
        return list(found.values())[::-1]

    @cached_property
    def _places(self) -> Sequence[int]:
        """The version number of each snapshot."""
        found = [snapshot.sequence_number or 0 for snapshot in self._snapshots]
        grows = all(one < other for one, other in zip([0, *found], found, strict=False))
        if found and grows and found[-1] - found[0] < _MAX_GAPS:
            return found
        return range(1, len(found) + 1)

    @cached_property
    def _numbers(self) -> range:
        if not self._places:
            return range(1)
        begins = self._places[0] == 1 and self._snapshots[0].parent_snapshot_id is None
        return range(0 if begins else self._places[0], self._places[-1] + 1)

    @cached_property
    def _times(self) -> Sequence[int]:
        """The time of each snapshot in milliseconds, made monotonic, since clocks of writers may differ."""
        return list(accumulate((snapshot.timestamp_ms for snapshot in self._snapshots), max))

    def _time(self, number: int) -> Timestamp:
        place = self._place(number)
        logged = [entry.timestamp_ms for entry in self._metadata.metadata_log]
        with self._reading():
            if place is not None:
                return Timestamp.from_millis(self._times[place])
            return Timestamp.from_millis(min([*logged, *self._times] or [self._metadata.last_updated_ms]))

    def _place(self, number: int) -> int | None:
        """Return the index of the snapshot of a version; None before the first one."""
        place = bisect.bisect_right(self._places, number) - 1
        return place if place >= 0 else None

    # --- Columns ---

    def schema(self, version: TableVersion) -> pa.Schema:
        with self._reading():
            columns = schema_to_pyarrow(self._columns(version.number))
            return pa.schema([field.remove_metadata() for field in columns])

    def _columns(self, number: int) -> Schema:
        """Return the columns of a version; for the newest version, the table's current columns."""
        if self._snapshots and number < self._numbers[-1]:
            named = self._snapshots[self._place(number) or 0].schema_id
            for schema in self._metadata.schemas:
                if schema.schema_id == named:
                    return schema
        return self._metadata.schema()

    @property
    def description(self) -> str:
        return self._metadata.properties.get("comment", "")

    # --- Rows ---

    def files(self, version: TableVersion) -> Iterator[TableFile]:
        place = self._place(version.number)
        if place is None:
            return
        with self._reading():
            scan = self._table.scan(snapshot_id=self._snapshots[place].snapshot_id)
            tasks = sorted(scan.plan_files(), key=lambda task: task.file.file_path)
            columns = self._columns(version.number)
            expected = schema_to_pyarrow(columns)
        for task in tasks:
            with self._reading():
                known = self._known(task.file)
                self._check_columns(known, expected, columns)
                file = TableFile(known.identity, known.size, version, known.path, num_rows=_row_count(known))
                deleted = [self._deleted(delete_file, task.file.file_path) for delete_file in task.delete_files]
                live = _without(_row_count(known), deleted)
                if not live.all():
                    file = with_live(file, live)
            yield file

    def has_new_data(self, version: TableVersion) -> bool:
        place = self._place(version.number)
        if place is None or self._places[place] != version.number:  # numbers have gaps
            return False
        summary = self._snapshots[place].summary
        return summary is None or summary.operation is not Operation.REPLACE

    def changes(self, first: TableVersion, last: TableVersion) -> Iterator[TableChange]:
        known: tuple[int, list[TableFile]] = (-1, [])
        for number in range(first.number, last.number + 1):
            version = self.version(number)
            if not self.has_new_data(version):
                continue
            if number - 1 not in self._numbers:
                raise NoSuchVersion(
                    f"The snapshot before version {number} has expired",
                    hint=f"Ask for changes from version {number + 1} on.",
                )
            before = known[1] if known[0] == number - 1 else list(self.files(self.version(number - 1)))
            known = number, list(self.files(version))
            yield from file_changes(before, known[1], version)

    def _known(self, file: DataFile) -> _File:
        if file.file_format != FileFormat.PARQUET:
            what = "data" if file.content == DataFileContent.DATA else "deletes"
            raise CannotShare(
                f"The Iceberg table {self._location} has {what} in {file.file_format} files", hint=_REWRITE
            )
        return _file(self._folder, file.file_path)

    def _deleted(self, file: DataFile, of: str) -> npt.NDArray[np.int64]:
        """Return the positions of rows of a file that a delete file removes."""
        if file.content != DataFileContent.POSITION_DELETES:
            raise CannotShare(
                f"The Iceberg table {self._location} deletes rows by their values (equality deletes)", hint=_REWRITE
            )
        table = _deletes(self._known(file))
        found = table.column("pos").filter(pc.equal(table.column("file_path"), of))
        return np.asarray(found.to_numpy(), np.int64)

    # --- Names of columns ---

    def _check_columns(self, file: _File, expected: pa.Schema, columns: Schema) -> None:
        """Reject a file whose columns have other names than those of the table, since clients read files by name.

        Args:
            file: a file of the table.
            expected: the columns of the table.
            columns: the same columns as an Iceberg schema.
        """
        stored = _footer(file)[0]
        if all(_id(field) is None for field in stored):
            self._check_names(file, stored, columns)
        else:
            self._check_ids(file, list(expected), list(stored))
        stored_names = set(stored.names)
        partitioned = {field.source_id for spec in self._metadata.partition_specs for field in spec.fields}
        for field in columns.fields:
            if field.name not in stored_names and (field.field_id in partitioned or field.initial_default is not None):
                raise self._refused(file, f"lacks the column {field.name!r}, whose values are elsewhere")

    def _check_ids(self, file: _File, expected: Sequence[pa.Field], stored: Sequence[pa.Field]) -> None:
        by_id = {_id(field): field for field in stored}
        by_name = {field.name: field for field in stored}
        for field in expected:
            same, namesake = by_id.get(_id(field)), by_name.get(field.name)
            if same is not None and same.name != field.name:
                raise self._refused(file, f"calls the column {field.name!r} by another name, {same.name!r}")
            if namesake is not None and same is None:
                raise self._refused(file, f"has another column of the name {field.name!r}")
            if same is not None:
                for inner, other in zip(_inner(field.type), _inner(same.type), strict=False):
                    self._check_ids(file, inner, other)

    def _check_names(self, file: _File, stored: pa.Schema, columns: Schema) -> None:
        """Check a file without field ids, which the table's name mapping must cover."""
        called = {field.field_id: field.name for field in columns.fields}
        mapped = {name: entry.field_id for entry in self._names.root for name in entry.names} if self._names else {}
        for field in stored:
            name = called.get(mapped.get(field.name) or 0)  # ids start at 1
            if name is None and field.name not in called.values():
                continue
            if field.name not in mapped or pa.types.is_nested(field.type):
                raise self._refused(file, f"has no field id in the column {field.name!r}")
            if name is None:
                raise self._refused(file, f"has another column of the name {field.name!r}")
            if name != field.name:
                raise self._refused(file, f"calls the column {name!r} by another name, {field.name!r}")

    def _refused(self, file: _File, problem: str) -> CannotShare:
        return CannotShare(f"The file {file.path.name} of the Iceberg table {self._location} {problem}", hint=_REWRITE)

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Convert errors of the library in the block."""
        try:
            yield
        except CannotShare:
            raise
        except OdfError as error:
            raise CannotShare(error.message, hint=_REPAIR) from error
        except Exception as error:
            raise CannotShare(
                f"The Iceberg table {self._location} cannot be read: {reason(error)}", hint=_REPAIR
            ) from error


class _Files(FileIO):
    """A file system for the library that is restricted to one folder."""

    def __init__(self, folder: LocalFolder | BucketFolder) -> None:
        super().__init__()
        self._folder = folder

    def new_input(self, location: str) -> InputFile:
        return _Input(location, _file(self._folder, location))

    def new_output(self, location: str) -> OutputFile:
        raise CannotShare(f"Shared tables are not written to: {location}")

    def delete(self, location: str | InputFile | OutputFile) -> None:
        raise CannotShare(f"Files of shared tables are not deleted: {location}")


class _Input(InputFile):
    def __init__(self, location: str, file: _File) -> None:
        super().__init__(location)
        self._file = file

    def __len__(self) -> int:
        return self._file.size

    def exists(self) -> bool:
        return True

    def open(self, seekable: bool = True) -> InputStream:
        del seekable  # all files are seekable
        file = self._file
        return cast("InputStream", file.open() if isinstance(file, BucketFile) else open_regular(file.path))


def _catalog_entry(location: str) -> tuple[str, TableMetadata | None]:
    """Return the location of a table's metadata and, from a catalog, the metadata itself."""
    named = _NAMED.fullmatch(location)
    if named is None:
        return _absolute(location), None
    table = _catalog(named[1]).load_table(named[2])
    return _absolute(table.metadata_location), table.metadata


def _absolute(location: str) -> str:
    return store_url(location) or str(Path(_path(location)).absolute())


def _file(folder: LocalFolder | BucketFolder, location: str) -> _File:
    """Return a file that the table's metadata refers to.

    Raises:
        CannotShare: the file is outside of the folder, or missing.
    """
    return folder.file(_path(location) if isinstance(folder, LocalFolder) else location)


@lru_cache(maxsize=20)
def _catalog(name: str) -> Catalog:
    return load_catalog(name)


def _path(location: str) -> str:
    """Return the path of a local file.

    Raises:
        CannotShare: the file is not local.
    """
    scheme = _SCHEME.match(location)
    if scheme is None:
        return location
    if scheme[1].lower() != "file":
        raise CannotShare(
            f"The table has files elsewhere: {location}",
            hint="All files of an Iceberg table have to be in its folder, on this machine or in an object store.",
        )
    return "/" + location[scheme.end() :].lstrip("/")


@lru_cache(maxsize=10_000)
def _footer(file: _File) -> tuple[pa.Schema, int]:
    """Return the columns of a file with their field ids, and its number of rows."""
    found = footer(file.path)
    return found.columns, found.metadata.num_rows


def _row_count(file: _File) -> int:
    return _footer(file)[1]


@lru_cache(maxsize=8)
def _deletes(file: _File) -> pa.Table:
    with open_parquet_file(file.path) as parquet:
        return parquet.read(columns=["file_path", "pos"])


def _without(count: int, deleted: Sequence[npt.NDArray[np.int64]]) -> npt.NDArray[np.bool_]:
    """Return for each row of a file whether it is live."""
    live = np.ones(count, np.bool_)
    for places in deleted:
        live[places[(places >= 0) & (places < count)]] = False
    return live


def _id(field: pa.Field) -> int | None:
    text = (field.metadata or {}).get(_FIELD_ID)
    return None if text is None else int(text)


def _inner(kind: pa.DataType) -> list[list[pa.Field]]:
    """Return the fields nested in a type: those of a struct as one list, others as one list per part."""
    if pa.types.is_struct(kind):
        return [[kind.field(number) for number in range(kind.num_fields)]]
    if pa.types.is_map(kind):
        parts = [kind.key_type, kind.item_type]
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        parts = [kind.value_type]
    else:
        return []
    return [fields for part in parts for fields in _inner(part)]
