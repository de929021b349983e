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
    """Hashes of the rows of versions, found once as long as they are asked for. For all threads."""

    def __init__(self) -> None:
        self._kept: LruCache[bytes, RowsOfTable] = LruCache(_MAX_KEPT)
        self._room = BoundedSemaphore(_AT_ONCE)

    def get(self, table: ReadableTable, version: TableVersion, schema: pa.Schema, view: View) -> RowsOfTable:
        """The rows of a version that somebody reads.

        Args:
            table: the table.
            version: the version.
            schema: the columns that show.
            view: what else may be seen.

        Raises:
            SharingError: 429, others are being read.
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
