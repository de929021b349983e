"""Rows of the current state of a dataset, for each version, as bitmaps (ODF specification, "Projection").

<cache of the dataset>/live/<hash of the block>.live     one bit per row up to that block; immutable

With a primary key, a version is computed from the previous one: earlier rows with the keys of new rows are superseded,
and of the new rows with the same key, the last one decides. So the cost is that of reading the keys. Without a key,
all rows are current if all were appended, as the footers of the slices show.
"""

# ruff: noqa: S608  (SQL is made of quoted names, hashes and numbers)

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from odfpy.chain.slices import SliceOfBlock, slice_files
from odfpy.coordinator.storage.storage import StoredDataset
from odfpy.data.schemas.arrow import has_one_form, to_arrow
from odfpy.data.vocabulary import OperationType
from odfpy.files import make_folder, replace_file
from odfpy.query.dialects import dialect_named
from odfpy.query.query import Query
from odfpy.query.service import QueryService
from odfpy.query.statistics import has_only_appends

if TYPE_CHECKING:
    import numpy.typing as npt

_GAINED: Final = f"({int(OperationType.APPEND)}, {int(OperationType.CORRECT_TO)})"


class LiveRows:
    """The bitmaps of live rows of a dataset."""

    def __init__(self, dataset: StoredDataset, slices: Sequence[SliceOfBlock], queries: QueryService) -> None:
        """
        Args:
            dataset: the dataset.
            slices: all slices; version N ends with the N-th, whatever number clients use for it.
            queries: query service, which determines the live rows.
        """
        self._dataset = dataset
        self._slices = slices
        self._queries = queries
        self._folder = dataset.cache / "live"

    def at(self, version: int) -> npt.NDArray[np.bool_]:
        """Return for each row up to a version whether it belongs to the current state of that version.

        Args:
            version: number of the version, starting at 1.

        Raises:
            OdfError: rows cannot be read.
        """
        live = self._read_stored(version)
        if live is None:
            live = self._compute(version)
            make_folder(self._folder)
            replace_file(self._file(version), np.packbits(live).tobytes())
        return live

    def _file(self, version: int) -> Path:
        return self._folder / f"{self._slices[version - 1].block.hash}.live"

    def _read_stored(self, version: int) -> npt.NDArray[np.bool_] | None:
        try:
            packed = np.frombuffer(self._file(version).read_bytes(), np.uint8)
            os.utime(self._file(version))  # `odf gc` removes unused files
        except OSError:
            return None
        return np.unpackbits(packed, count=self._num_rows(version)).view(np.bool_)

    def _num_rows(self, version: int) -> int:
        return self._slices[version - 1].data.offset_interval.end + 1

    # --- Computation ---

    def _compute(self, version: int) -> npt.NDArray[np.bool_]:
        if self._has_only_appends(version):
            return np.ones(self._num_rows(version), np.bool_)
        live = np.zeros(self._num_rows(version), np.bool_)
        earlier = next((number for number in range(version - 1, 0, -1) if self._file(number).exists()), 0)
        key = self._key(earlier, version) if earlier else None
        before = None if key is None else self._read_stored(earlier)
        if key is None or before is None:
            block = self._slices[version - 1].block.hash
            live[self._offsets(version, f"SELECT {self._offset} FROM odf_as_at('{self._id}', '{block}')")] = True
            return live
        start = len(before)
        live[:start] = before
        changed = self._offsets(version, f"{self._superseded(key, start)} UNION ALL {self._decided(key, start)}")
        live[changed] = changed >= start
        return live

    def _has_only_appends(self, version: int) -> bool:
        """Return whether there is no primary key, and all rows up to a version are appended."""
        slices = self._slices[:version]
        state = self._dataset.at(slices[-1].block.hash).state
        files = slice_files(self._dataset.layout.data, slices) if state.primary_key is None else []
        return bool(files) and all(has_only_appends(path, state.vocab) for path in files)

    def _superseded(self, key: Sequence[str], start: int) -> str:
        """Return a query for the rows before an offset whose key occurs in a later row."""
        same = " AND ".join(f"(earlier.{name} IS NOT DISTINCT FROM later.{name})" for name in key)
        later = f"SELECT {', '.join(key)} FROM {self._log} WHERE {self._offset} >= {start}"
        return (
            f"SELECT earlier.{self._offset} FROM {self._log} AS earlier LEFT SEMI JOIN ({later}) AS later ON {same}"
            f" WHERE earlier.{self._offset} < {start}"
        )

    def _decided(self, key: Sequence[str], start: int) -> str:
        """Return a query for the last row of each key from an offset on, unless it is a retraction."""
        operation = self._quoted(self._dataset.state.vocab.operation_type_column)
        nth = f"row_number() OVER (PARTITION BY {', '.join(key)} ORDER BY {self._offset} DESC) AS nth"
        rows = f"SELECT {self._offset}, {operation}, {nth} FROM {self._log} WHERE {self._offset} >= {start}"
        return f"SELECT {self._offset} FROM ({rows}) WHERE nth = 1 AND {operation} IN {_GAINED}"

    def _key(self, earlier: int, version: int) -> list[str] | None:
        """Return the quoted columns of the primary key; None if there is none, or it has changed, or is hard to
        compare.
        """
        before, now = (self._dataset.at(self._slices[number - 1].block.hash).state for number in (earlier, version))
        if not now.primary_key or now.primary_key != before.primary_key or now.schema is None:
            return None
        schema = to_arrow(now.schema)
        if not all(name in schema.names and has_one_form(schema.field(name).type) for name in now.primary_key):
            return None
        return [self._quoted(name) for name in now.primary_key]

    def _offsets(self, version: int, sql: str) -> npt.NDArray[np.int64]:
        pins = {self._dataset.handle.id: self._slices[version - 1].block.hash}
        with self._queries.run(Query(sql, _DIALECT.name, pins)) as answer:
            parts = [batch.column(0).to_numpy(zero_copy_only=False) for batch in answer]
        return np.concatenate([np.zeros(0, np.int64), *parts])

    @property
    def _id(self) -> str:
        return str(self._dataset.handle.id)

    @property
    def _log(self) -> str:
        return f"odf_changelog('{self._id}')"

    @property
    def _offset(self) -> str:
        return self._quoted(self._dataset.state.vocab.offset_column)

    @staticmethod
    def _quoted(name: str) -> str:
        return _DIALECT.quoted(name)


_DIALECT: Final = dialect_named("datafusion")
