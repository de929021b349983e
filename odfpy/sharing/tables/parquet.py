"""A folder of Parquet files as a shared table, optionally with Hive partitions (`country=DE/year=2024/`).

Only the current content of the folder can be read. So there is a single version, whose number is the time of the
latest change, in milliseconds since 1970: by this number, clients that cache files detect changes.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.fs

from odfpy.data.lru_cache import LruCache
from odfpy.data.timestamp import NANOS_PER_MILLI, Timestamp
from odfpy.errors import OdfError, UsageError
from odfpy.sharing.errors import CannotShare
from odfpy.sharing.tables.contract import TableChange, TableFile, TableVersion
from odfpy.sharing.tables.local import LocalFile, reason
from odfpy.sharing.tables.numbered import NumberedTable
from odfpy.sharing.tables.parquet_files import FilePlace, fetch_footers, footer
from odfpy.sharing.tables.partitions import partition_text
from odfpy.sharing.tables.remote import BucketFile, table_folder

_SUFFIXES: Final = (".parquet", ".parq", ".pq")
_HIDDEN: Final = (".", "_")
_THREADS: Final = 4
_COLUMNS: Final[LruCache[bytes, pa.Schema]] = LruCache(200)  # by folder, as long as its files are unchanged


class _Listed(NamedTuple):
    """A file with its path below the folder, which may be a link, and its resolved path."""

    name: str
    file: LocalFile | BucketFile


class ParquetTable(NumberedTable):
    """The Parquet files below a folder; hidden files, and other file types, are skipped."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        """
        Args:
            folder: folder of the files: a path, or the URL of a folder in an object store.

        Raises:
            CannotShare: the folder does not exist, or the store rejects the request.
        """
        self._folder = table_folder(folder)

    @property
    def _numbers(self) -> range:
        number = self._listing[1] // NANOS_PER_MILLI
        return range(number, number + 1)

    def _time(self, number: int) -> Timestamp:
        return Timestamp.from_millis(number)

    def schema(self, version: TableVersion) -> pa.Schema:
        del version  # there is only one version
        columns = self._stored_columns
        if len(set(columns.names)) < len(columns.names):
            raise CannotShare(
                f"A file in {self._folder} has several columns of one name",
                hint="Give each column a different name.",
            )
        stored = [column for column in columns if column.name not in self._types]
        return pa.schema([*stored, *(pa.field(name, kind) for name, kind in self._types.items())])

    @property
    def partition_columns(self) -> tuple[str, ...]:
        return tuple(self._types)

    @property
    def may_have_deleted_rows(self) -> bool:
        return False

    @property
    def has_changes(self) -> bool:
        return False

    @property
    def description(self) -> str:
        return ""

    def files(self, version: TableVersion) -> Iterator[TableFile]:
        types, values = self._partitions
        for name, file in self._listing[0]:
            yield TableFile(
                file.identity,
                file.size,
                version,
                file.path,
                partition_values={column: partition_text(values[name].get(column)) for column in types},
                partition_types=types,
            )

    def changes(self, first: TableVersion, last: TableVersion) -> Iterator[TableChange]:
        del first, last
        raise UsageError("This table has no change data", hint="Read its newest version.")

    # --- Content ---

    @cached_property
    def _listing(self) -> tuple[Sequence[_Listed], int]:
        """The files, and the latest modification time of any of them or their folders, in nanoseconds."""
        found, newest = self._folder.walk(lambda name: name.lower().endswith(_SUFFIXES), _HIDDEN)
        files = sorted((_Listed(*listed) for listed in found), key=lambda listed: listed.name)
        return files, max([newest, *(listed.file.mtime_ns for listed in files)])

    @property
    def _stored_columns(self) -> pa.Schema:
        """The unified columns of all files; recomputed after a file has changed."""
        files = self._listing[0]
        key = hashlib.sha256("\0".join(listed.file.identity for listed in files).encode()).digest()
        try:
            return _COLUMNS.get(key, lambda: _unified([listed.file.path for listed in files]))
        except pa.ArrowException as error:
            raise CannotShare(
                f"The files in {self._folder} have columns that do not fit each other: {reason(error)}",
                hint="Share folders whose files have the same columns.",
            ) from error

    @property
    def _types(self) -> Mapping[str, pa.DataType]:
        return self._partitions[0]

    @cached_property
    def _partitions(self) -> tuple[Mapping[str, pa.DataType], Mapping[str, Mapping[str, Any]]]:
        """The types of the partition columns, and their values by file name."""
        names = [listed.name for listed in self._listing[0]]
        if not any("=" in name for name in names):
            return {}, {}
        options = ds.FileSystemFactoryOptions(
            partition_base_dir=str(self._folder.path), partitioning=ds.HivePartitioning.discover()
        )
        try:
            factory = ds.FileSystemDatasetFactory(pyarrow.fs.LocalFileSystem(), names, ds.ParquetFileFormat(), options)
            schema = factory.inspect(fragments=0)  # from folder names alone
            fragments = factory.finish(schema).get_fragments()
            values = {fragment.path: ds.get_partition_keys(fragment.partition_expression) for fragment in fragments}
        except (pa.ArrowException, ValueError, OSError) as error:
            raise CannotShare(
                f"The partitions of {self._folder} cannot be read: {reason(error)}",
                hint="Folders of partitions are called NAME=VALUE; those of one level have the same name.",
            ) from error
        return {column.name: column.type for column in schema}, values


def _unified(places: Sequence[FilePlace]) -> pa.Schema:
    """Return the unified columns of files.

    Raises:
        CannotShare: a file cannot be read.
        pa.ArrowException: the columns are incompatible.
    """
    if not places:
        return pa.schema([])
    local = [str(place) for place in places if isinstance(place, Path)]
    with suppress(pa.ArrowException, OSError):  # the slow path below determines the faulty file
        if len(local) == len(places):
            size = -(-len(local) // _THREADS)  # in order, so that columns have the order of the first file
            parts = [local[start : start + size] for start in range(0, len(local), size)]
            with ThreadPoolExecutor(_THREADS) as pool:
                return pa.unify_schemas(list(pool.map(_inspected, parts)), promote_options="permissive")
    fetch_footers(places)
    try:
        schemas = [footer(place).columns.remove_metadata() for place in places]
    except OdfError as error:
        raise CannotShare(error.message, hint="Repair the file, or remove it from the folder.") from error
    return pa.unify_schemas(schemas, promote_options="permissive")


def _inspected(paths: Sequence[str]) -> pa.Schema:
    """Return the unified columns of local files, computed without Python code for each file."""
    factory = ds.FileSystemDatasetFactory(pyarrow.fs.LocalFileSystem(), paths, ds.ParquetFileFormat())
    return factory.inspect(promote_options="permissive").remove_metadata()
