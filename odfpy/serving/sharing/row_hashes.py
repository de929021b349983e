"""Hashes of the rows of versions, for proofs."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from threading import BoundedSemaphore
from typing import Final

import pyarrow as pa

from odfpy.data.lru_cache import LruCache
from odfpy.serving.sharing.errors import SharingError
from odfpy.sharing.decisions import View
from odfpy.sharing.files.visible_rows import visible_rows
from odfpy.sharing.statements import RowsOfTable
from odfpy.sharing.tables.contract import ReadableTable, TableFile, TableVersion

_AT_ONCE: Final = 2
_MAX_KEPT: Final = 1000


class RowHashes:
    """A cache of hashes of the rows of versions. Thread-safe."""

    def __init__(self) -> None:
        self._kept: LruCache[bytes, RowsOfTable] = LruCache(_MAX_KEPT)
        self._room = BoundedSemaphore(_AT_ONCE)

    def get(self, table: ReadableTable, version: TableVersion, schema: pa.Schema, view: View) -> RowsOfTable:
        """Return the row count and hash of a version as the caller sees it.

        Args:
            table: the table.
            version: the version.
            schema: the visible columns.
            view: the part that the caller may see.

        Raises:
            SharingError: 429, other versions are being read.
            OdfError: a file cannot be read.
        """
        files = list(table.files(version))
        identity = hashlib.sha256(view.identity + schema.serialize().to_pybytes())
        for file in files:
            identity.update(f"{file.identity}\0{sorted(file.partition_values.items())}\0".encode())
        return self._kept.get(identity.digest(), lambda: self._read(files, schema, view))

    def _read(self, files: Iterable[TableFile], schema: pa.Schema, view: View) -> RowsOfTable:
        if not self._room.acquire(blocking=False):
            raise SharingError(429, "The server reads other tables for proofs; try again", retry_after=5)
        try:
            return RowsOfTable.of(schema, (batch for file in files for batch in visible_rows(file, schema, view)))
        finally:
            self._room.release()
