"""Rows of the log as versions of records: the offsets between which each of them is valid.

The index keeps old versions, so that all pages of an answer refer to the archive as of the first page.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from odfpy.archive.index.fingerprints import Fingerprints, fingerprints, text_array
from odfpy.archive.record import Status
from odfpy.archive.rows import COLUMNS, arrow_schema
from odfpy.data.multihash import Multihash
from odfpy.data.vocabulary import DatasetVocabulary, OperationType
from odfpy.errors import InvalidValue

Numbers = npt.NDArray[np.int64]

FOREVER: Final = np.iinfo(np.int64).max
"""The end of a version that is still valid."""

_ENDS: Final = np.array([OperationType.RETRACT, OperationType.CORRECT_FROM])
_USUAL_OBJECT: Final = "^f(1e20|1620)[0-9a-f]{64}$"
_NEEDED: Final = ("start", "what", "where", "path", "hash", "object", "size", "create_time", "version", "status")


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of the log, or versions built from them earlier.

    Attributes:
        table: `COLUMNS` of each row.
        offsets: in the log.
        ends: whether the row only ends the previous version (-R, -C).
        until: offset of the row that ended it, `FOREVER` if none has.
    """

    table: pa.Table
    offsets: Numbers
    ends: npt.NDArray[np.bool_]
    until: Numbers

    def __len__(self) -> int:
        return len(self.offsets)

    def of(self, places: npt.NDArray[np.int64]) -> Rows:
        """Return the rows at the given positions, in their order."""
        return Rows(self.table.take(pa.array(places)), self.offsets[places], self.ends[places], self.until[places])


def joined(parts: Sequence[Rows]) -> Rows:
    """Concatenate rows."""
    return Rows(
        pa.concat_tables([arrow_schema().empty_table(), *(part.table for part in parts)]).combine_chunks(),
        np.concatenate([np.zeros(0, np.int64), *(part.offsets for part in parts)]),
        np.concatenate([np.zeros(0, np.bool_), *(part.ends for part in parts)]),
        np.concatenate([np.zeros(0, np.int64), *(part.until for part in parts)]),
    )


def rows_of(batch: pa.RecordBatch, vocab: DatasetVocabulary) -> Rows:
    """Return the rows of a slice. Rows that are not valid records are ignored.

    Args:
        batch: rows with offset, operation and `COLUMNS`.
        vocab: names of the system columns.
    """
    schema = arrow_schema()
    columns = [batch.column(name).cast(schema.field(name).type, safe=False) for name in COLUMNS]
    table = pa.table(columns, schema=schema)
    offsets = batch.column(vocab.offset_column).to_numpy()
    ends = np.isin(batch.column(vocab.operation_type_column).to_numpy(), _ENDS)
    table, is_record = _readable(table)
    rows = Rows(table, offsets, ends, np.full(len(offsets), FOREVER))
    has_id = table.column("id").is_valid().to_numpy()
    return rows.of(np.flatnonzero(has_id & (ends | is_record))) if not (has_id & (ends | is_record)).all() else rows


def _readable(table: pa.Table) -> tuple[pa.Table, npt.NDArray[np.bool_]]:
    """Return the rows with normalized objects, and which of them are valid `FileRecord`s."""
    readable = pc.is_in(table.column("status"), pa.array([status.value for status in Status]))
    for name in _NEEDED:
        readable = pc.and_(readable, table.column(name).is_valid())
    good = readable.to_numpy().copy()
    objects = table.column("object")
    usual = pc.fill_null(pc.match_substring_regex(objects, _USUAL_OBJECT), fill_value=False)
    if not pc.all(usual).as_py():
        texts = objects.to_pylist()
        for place in np.flatnonzero(~usual.to_numpy()).tolist():
            try:
                texts[place] = str(Multihash.parse(texts[place] or ""))
            except InvalidValue:
                good[place] = False
        at = table.schema.get_field_index("object")
        table = table.set_column(at, "object", pa.array(texts, pa.string()))
    return table, good


@dataclass(frozen=True, slots=True)
class Versions:
    """Versions of records.

    Attributes:
        rows: one row per version, in any order; none that only ends another.
        ids: fingerprints of the ids of `rows`.
        ended: fingerprints of ids whose previous version was ended by these rows, ascending.
        ended_ids: the ids.
        ended_until: offsets of the rows that ended them.
    """

    rows: Rows
    ids: Fingerprints
    ended: Fingerprints
    ended_ids: pa.Array
    ended_until: Numbers


def versions_of(rows: Rows, seed: int, since: int) -> Versions:
    """Determine which row ends which version.

    Args:
        rows: rows and older versions.
        seed: seed of the index.
        since: offset of the first new row.
    """
    ids = text_array(rows.table.column("id"))
    keys = fingerprints(ids, seed)
    order = np.lexsort((rows.offsets, keys))
    order, same = _by_id(order, keys, ids)
    until = rows.until.copy()
    before, after = order[:-1][same], order[1:][same]
    until[before] = np.minimum(until[before], rows.offsets[after])
    is_first = np.ones(len(order), np.bool_)
    is_first[1:] = ~same
    firsts = order[is_first]
    firsts = firsts[rows.offsets[firsts] >= since]
    kept = np.flatnonzero(~rows.ends)
    ended_rows = Rows(rows.table, rows.offsets, rows.ends, until)
    ended_rows = ended_rows if len(kept) == len(rows) else ended_rows.of(kept)
    return Versions(ended_rows, keys[kept], keys[firsts], ids.take(pa.array(firsts)), rows.offsets[firsts])


def _by_id(order: Numbers, keys: Fingerprints, ids: pa.Array) -> tuple[Numbers, npt.NDArray[np.bool_]]:
    """Group rows by id; also return whether each row but the first has the same id as its predecessor.

    Args:
        order: rows sorted by fingerprint, then offset.
        keys: fingerprints of all rows.
        ids: ids of all rows.
    """
    shared = keys[order][1:] == keys[order][:-1]
    if not shared.any():
        return order, shared
    repeated = np.zeros(len(order), np.bool_)
    repeated[1:] |= shared
    repeated[:-1] |= shared
    # Two ids may have the same fingerprint, so rows that share one are compared by id.
    places = np.flatnonzero(repeated)
    codes = np.zeros(len(order), np.int64)
    texts = ids.take(pa.array(order[places]))
    codes[places] = texts.dictionary_encode().indices.to_numpy()
    sorting = np.lexsort((codes[places], keys[order[places]]))  # stable: keeps the order of offsets
    order[places], codes[places] = order[places][sorting], codes[places][sorting]
    return order, shared & (codes[1:] == codes[:-1])
