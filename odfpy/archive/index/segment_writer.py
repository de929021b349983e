"""Writer for segments of the index; see `segment` for their format."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from odfpy.archive.index.checked_file import CheckedFileWriter
from odfpy.archive.index.fingerprints import Fingerprints, combined, fingerprints, prefixes, text_array
from odfpy.archive.index.segment import BLOCK, HIDDEN, NAMES, SegmentInfo, packed
from odfpy.archive.index.versions import FOREVER, Numbers, Rows, Versions
from odfpy.archive.record import Status

PREFIX: Final = "segment-"
"""Prefix of the file names of segments."""

_PART: Final = 256 * BLOCK
"""Number of versions sorted into blocks at once."""

Ended = Mapping[str, tuple[Numbers, Numbers]]
"""By name of a segment: its ended versions, ascending, and the offsets of their ends."""


def write_segment(folder: Path, versions: Versions, ended: Ended, last: int, seed: int) -> SegmentInfo:
    """Write versions as a segment.

    Args:
        folder: target folder.
        versions: the versions.
        ended: versions of older segments ended by these rows.
        last: maximum offset of the rows that the versions were built from.
        seed: seed of the index.

    Raises:
        OSError: the segment cannot be written.
    """
    with CheckedFileWriter(folder / f"{PREFIX}{secrets.token_hex(8)}") as file:
        rows = versions.rows
        columns = _Columns(rows, versions.ids, seed)
        order = columns.order()
        for block in _blocks(rows.table, order):
            file.block(block)
        blocks = -(-len(rows) // BLOCK)
        columns.take(order)
        file.column("start", columns.start)
        file.column("end", columns.end)
        file.column("offset", columns.offset)
        _write_way(file, "what", columns.what, None, None)
        shown = columns.span_class != HIDDEN
        _write_way(file, "place", columns.place, np.flatnonzero(shown), columns.start)
        _write_way(file, "job", columns.job, np.flatnonzero(shown & columns.has_job), columns.start)
        _write_way(file, "id", columns.id, np.arange(len(rows)), None)
        _write_way(file, "object", columns.object, np.arange(len(rows)), None)
        file.block(packed(columns.names(rows.table)))
        own = np.flatnonzero(columns.until != FOREVER)
        _write_ended(file, "ended", own, columns.until[own])
        for number, (places, until) in enumerate(ended.values()):
            _write_ended(file, f"ended {number}", places, until)
        classes = [
            [number, int(columns.start[of].min()), int(columns.start[of].max())]
            for number in np.unique(columns.span_class[shown]).tolist()
            for of in [columns.span_class == number]
        ]
        info = file.finish({"blocks": blocks, "classes": classes, "ends": list(ended)})
    weight = len(rows) + sum(len(places) for places, _ in ended.values())
    first = int(rows.offsets.min()) if len(rows) else last
    return SegmentInfo(info, len(rows), weight, first, last)


class _Columns:
    """Numeric columns of versions."""

    def __init__(self, rows: Rows, ids: Fingerprints, seed: int) -> None:
        table = rows.table
        self.start = _millis(table.column("start"))
        end = table.column("end")
        self.end = np.where(end.is_valid().to_numpy(), _millis(end), self.start)
        self.offset, self.until = rows.offsets, rows.until
        hidden = np.asarray(table.column("status")) == Status.WITHDRAWN.value
        self.span_class = np.where(hidden, HIDDEN, span_classes(self.end - self.start))
        self._ids = text_array(table.column("id"))
        self.id = ids
        self.object = fingerprints(text_array(table.column("object")), seed)
        what, where = (_by_value(table.column(name), seed) for name in ("what", "where"))
        job = table.column("work_id")
        self.has_job = job.is_valid().to_numpy()
        self.what = combined(what, self.span_class)
        self.place = combined(combined(what, where), self.span_class)
        self.job = combined(combined(what, fingerprints(text_array(job), seed)), self.span_class)

    def order(self) -> Numbers:
        """Return the sort order of versions: by what and class, start, id."""
        first = prefixes(self._ids)
        order = np.lexsort((self.offset, first, self.start, self.what))
        same = np.ones(max(len(order) - 1, 0), np.bool_)
        for values in (first, self.start, self.what):
            same &= values[order][1:] == values[order][:-1]
        tied = np.zeros(len(order), np.bool_)
        tied[1:] |= same
        tied[:-1] |= same
        places = np.flatnonzero(tied)
        if len(places):  # their ids have the same first bytes
            runs = np.zeros(len(order), np.int64)
            runs[1:] = np.cumsum(~same)
            rows = order[places]
            ties = pa.table({"run": runs[places], "id": self._ids.take(pa.array(rows)), "offset": self.offset[rows]})
            keys = [(name, "ascending") for name in ties.schema.names]
            order[places] = rows[pa.compute.sort_indices(ties, sort_keys=keys).to_numpy()]
        return order

    def take(self, order: Numbers) -> None:
        """Reorder all columns."""
        for name, values in vars(self).items():
            if isinstance(values, np.ndarray):
                setattr(self, name, values[order])
        self._order = order

    def names(self, table: pa.Table) -> pa.RecordBatch:
        """Return each what and where of the currently valid and visible versions."""
        visible = np.flatnonzero((self.span_class != HIDDEN) & (self.until == FOREVER))
        rows = pa.array(self._order[visible])
        places = pa.table(
            {
                "what": table.column("what").take(rows),
                "where": table.column("where").take(rows),
                "first": self.start[visible],
                "last": self.end[visible],
            }
        )
        grouped = places.group_by(["what", "where"]).aggregate([("first", "count"), ("first", "min"), ("last", "max")])
        columns = [grouped.column(name) for name in ("what", "where", "first_count", "first_min", "last_max")]
        return pa.record_batch([text_array(column) for column in columns], schema=NAMES)


def span_classes(spans: Numbers) -> Numbers:
    """Return the number of bits of each span; 0 for empty spans."""
    return np.frexp(np.maximum(spans, 0).astype(np.float64))[1].astype(np.int64)


def _millis(column: pa.ChunkedArray) -> Numbers:
    numbers: Numbers = column.cast(pa.int64()).fill_null(0).to_numpy()
    return numbers


def _by_value(column: pa.ChunkedArray, seed: int) -> Fingerprints:
    """Return the fingerprints of a column with few distinct values."""
    encoded = text_array(column).dictionary_encode()
    hashes: Fingerprints = fingerprints(encoded.dictionary, seed)[encoded.indices.to_numpy()]
    return hashes


def _blocks(table: pa.Table, order: Numbers) -> Iterator[bytes]:
    """Yield the rows in the given order, block by block."""
    with ThreadPoolExecutor(2) as pool:
        for first in range(0, len(order), _PART):
            part = table.take(pa.array(order[first : first + _PART])).combine_chunks()
            yield from pool.map(packed, part.to_batches(BLOCK))


def _write_way(
    file: CheckedFileWriter, way: str, keys: Fingerprints, rows: Numbers | None, starts: Numbers | None
) -> None:
    """Write a secondary index: where the versions of each key are.

    Args:
        file: target file.
        way: name of the secondary index.
        keys: keys of all versions.
        rows: the indexed versions; None for all, sorted by key.
        starts: starts of all versions, if they are searched in the order of this index.
    """
    if rows is not None:
        rows = rows[np.argsort(keys[rows], kind="stable")]
        keys = keys[rows]
        file.column(f"{way} rows", rows.astype(np.uint32))
        if starts is not None:
            file.column(f"{way} starts", starts[rows])
    is_first = np.ones(len(keys), np.bool_)
    is_first[1:] = keys[1:] != keys[:-1]
    firsts = np.flatnonzero(is_first)
    file.column(f"{way} keys", keys[firsts])
    file.column(f"{way} firsts", np.append(firsts, len(keys)).astype(np.uint32))


def _write_ended(file: CheckedFileWriter, name: str, places: npt.NDArray[Any], until: Numbers) -> None:
    file.column(f"{name} rows", places.astype(np.uint32))
    file.column(f"{name} until", until)
