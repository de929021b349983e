"""Files of this machine or of an object store as a source: DataFusion reads them in a sandboxed process.

That process has no network access: files of an object store are copied first, once for each version of them.
"""

from __future__ import annotations

import fnmatch
import hashlib
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from odfpy.engine.datafusion.isolated import IsolatedQuery, fork_server
from odfpy.engine.sql.files import FilesRequest, FileTable
from odfpy.federation.errors import SourceFailed
from odfpy.federation.model import connections
from odfpy.federation.model.arrow_types import parse_dtype
from odfpy.federation.model.connections import FilesConnection
from odfpy.federation.sources.contract import ReadLimits, Source
from odfpy.files import make_folder
from odfpy.sharing.tables.remote import BucketFile, BucketFolder, is_remote, table_folder

if TYPE_CHECKING:
    import pyarrow as pa

    from odfpy.engine.cancellation import CancellationToken
    from odfpy.engine.row_stream import RowStream

_SUFFIXES: Final = {
    "parquet": (".parquet", ".parq", ".pq"),
    "csv": (".csv", ".csv.gz"),
    "ndjson": (".ndjson", ".jsonl", ".json", ".ndjson.gz"),
}
_Version: TypeAlias = tuple[tuple[str, int, int, int], ...]
_HIDDEN: Final = (".", "_")
_MAX_COPIED: Final = 100 << 30
_KEPT_SECONDS: Final = 86_400
_PARSED: Final = 256
"""Size of the cache of parsed queries: each relation is part of every question."""


class FilesSource(Source):
    """Tables that consist of files."""

    engine = "datafusion"

    def __init__(
        self,
        name: str,
        connection: FilesConnection,
        *,
        copies: Path,
        memory: int,
        forbidden: Path | None = None,
        most_copied: int = _MAX_COPIED,
    ) -> None:
        """
        Args:
            name: name for messages.
            connection: the declared connection.
            copies: folder for copies of objects.
            memory: maximum bytes for a query.
            forbidden: a folder that must not be read: that of the workspace's keys.
            most_copied: maximum bytes of a table in an object store.
        """
        super().__init__(name, connection.dialect)
        self._connection = connection
        self._copies = copies
        self._memory = memory
        self._forbidden = None if forbidden is None else forbidden.resolve()
        self._most_copied = most_copied
        self._known: dict[str, tuple[_Version, pa.Schema]] = {}

    def schema(self, relation: str, control: CancellationToken | None = None) -> pa.Schema:
        """Return the columns of a relation; they are cached until its files change.

        Args:
            relation: one SELECT.
            control: lets another thread cancel it.

        Raises:
            SourceFailed: the files do not exist, or have no such columns.
        """
        version = self._version(relation)
        known = self._known.get(relation)
        if known is not None and version is not None and known[0] == version:
            return known[1]
        read_schema = super().schema(relation, control)
        if version is not None:
            self._known[relation] = version, read_schema
        return read_schema

    def _version(self, relation: str) -> _Version | None:
        """Return the files of a relation with their versions; None if these cannot be determined."""
        used = _tables_of(relation, self.dialect)
        tables = [table for name, table in self._connection.tables.items() if name in used]
        try:
            files = [file for table in tables for file in _listed(table)]
            local = [file for file in files if isinstance(file, Path)]
            return tuple(map(_state, local)) if len(local) == len(files) else None
        except OSError:
            return None

    def _stream(self, sql: str, wanted: pa.Schema | None, limits: ReadLimits, control: CancellationToken) -> RowStream:
        del wanted  # types are definite
        used = _tables_of(sql, self.dialect)
        tables = tuple(
            self._table(name, table, control) for name, table in self._connection.tables.items() if name in used
        )
        request = FilesRequest(sql, tables, limits.bytes)
        return IsolatedQuery(fork_server(self._memory), request, control)

    def _table(self, name: str, table: connections.FileTable, control: CancellationToken) -> FileTable:
        paths = tuple(str(file) for file in self._files(table, control))
        schema = None
        if table.columns is not None:
            import pyarrow as pa

            fields = [pa.field(column, parse_dtype(dtype)) for column, dtype in table.columns.items()]
            schema = pa.schema(fields).serialize().to_pybytes()
        if not paths and schema is None:
            failed = SourceFailed(f"Source {self.name} cannot be read", hint="Ask the operator of the relay.")
            failed.detail = f"there are no files {table.location}"
            raise failed
        return FileTable(name, table.kind, paths, schema, table.delimiter, table.header)

    def _files(self, table: connections.FileTable, control: CancellationToken) -> Iterator[Path]:
        copied = 0
        for file in _listed(table):
            if isinstance(file, Path):
                yield self._local(file)
                continue
            copied += file.size
            if copied > self._most_copied:
                raise OSError(f"{table.location} has more than {self._most_copied} bytes")
            yield self._copy(file, control)

    def _local(self, file: Path) -> Path:
        real = file.resolve(strict=True)
        if self._forbidden is not None and real.is_relative_to(self._forbidden):
            raise OSError(f"{file} is in {self._forbidden}, which relays cannot share")
        return real

    def _copy(self, file: BucketFile, control: CancellationToken) -> Path:
        """Return the local copy of an object, creating it atomically if needed."""
        make_folder(self._copies)
        target = self._copies / hashlib.sha256(file.identity.encode()).hexdigest()
        if target.exists():
            with suppress(OSError):
                os.utime(target)
            return target
        self._remove_old()
        part = target.with_suffix(f".{os.getpid()}.{id(control)}")
        try:
            with part.open("xb") as out:
                for piece in file.pieces(0, file.size):
                    control.check()
                    out.write(piece)
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)
        return target

    def _remove_old(self) -> None:
        """Remove copies that were not used for a day."""
        before = time.time() - _KEPT_SECONDS
        for path in self._copies.iterdir():
            with suppress(OSError):
                if path.stat().st_mtime < before:
                    path.unlink()


def _state(file: Path) -> tuple[str, int, int, int]:
    status = file.stat()
    return str(file), status.st_mtime_ns, status.st_size, status.st_ino


def _listed(table: connections.FileTable) -> list[Path | BucketFile]:
    """List the files of a table: one, those of a pattern in one folder, or all of its format below a folder."""
    location = table.location.rstrip("/")
    folder, _, last = location.rpartition("/")
    is_folder = not last.lower().endswith(_SUFFIXES[table.kind]) if is_remote(location) else Path(location).is_dir()
    if "*" not in last and is_folder:
        walked, _ = table_folder(location).walk(lambda name: name.lower().endswith(_SUFFIXES[table.kind]), _HIDDEN)
        by_name: dict[str, Path | BucketFile] = {name: file.path for name, file in walked}
    elif is_remote(location):
        by_name = {name: file for name, file in BucketFolder(folder).files() if fnmatch.fnmatchcase(name, last)}
    elif "*" in last:
        with os.scandir(folder) as entries:
            by_name = {
                entry.path: Path(entry.path) for entry in entries if entry.is_file() and _matches(entry.name, last)
            }
    else:
        by_name = {location: Path(location)}
    return [by_name[name] for name in sorted(by_name)]


def _matches(name: str, pattern: str) -> bool:
    return fnmatch.fnmatchcase(name, pattern) and not name.startswith(_HIDDEN)


@lru_cache(_PARSED)
def _tables_of(sql: str, dialect: str) -> frozenset[str]:
    """Return the names that a query has after FROM: files of other tables are not opened."""
    from sqlglot import exp, parse_one

    return frozenset(node.name for node in parse_one(sql, dialect=dialect).find_all(exp.Table))
