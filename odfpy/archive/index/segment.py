"""A segment of the index: versions of records sorted by what, class, start and id, with secondary indexes.

The class of a record is the number of bits of its span (end - start, in milliseconds). A record of class c that
overlaps a time has started less than 2**c milliseconds before. So a search by time is one narrow range for each
existing class, however long some records last.

| columns | what |
|---|---|
| start, end, offset | of each version |
| `what`, `place`, `job` | each what; what and where; what and work_id; with a class: fingerprint, first position |
| ... starts, rows | starts and versions in the order of the way, where it differs from that of the versions |
| `id`, `object` | for each: fingerprint, first position, versions |
| ended | versions ended by later ones, and when |

The versions themselves are in compressed Arrow blocks of 256.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from odfpy.archive.index.checked_file import CheckedFile, FileInfo, damage_found
from odfpy.archive.index.fingerprints import Fingerprints, combined
from odfpy.archive.index.versions import FOREVER, Numbers, Rows
from odfpy.archive.rows import arrow_schema
from odfpy.data.lru_cache import LruCache

BLOCK: Final = 256
"""Versions per block."""

HIDDEN: Final = 63
"""The class of withdrawn records; searches by time skip it."""

_SIZE: Final = 8
"""Bytes before a block that hold its uncompressed size."""

NAMES: Final = pa.schema(
    [("what", pa.string()), ("where", pa.string()), ("count", pa.int64()), ("first", pa.int64()), ("last", pa.int64())]
)
"""For each what and where: number of visible files, minimum start, and maximum end."""

_KEPT: Final = 64
"""Blocks per segment kept in memory, about 70 kB each."""


@dataclass(frozen=True, slots=True)
class SegmentInfo:
    """The entry of a segment in the list of segments.

    Attributes:
        file: entry of its file.
        rows: number of versions.
        weight: number of versions, plus versions of other segments that it ends.
        first: minimum offset of its versions.
        last: maximum offset of the rows that it was built from.
    """

    file: FileInfo
    rows: int
    weight: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Range:
    """A range in a secondary index: versions that share a key, sorted by start and id.

    Attributes:
        way: `what`, `place` or `job`.
        span_class: class of all versions.
        first: position of the first version.
        last: position after the last one.
    """

    way: str
    span_class: int
    first: int
    last: int


class Segment:
    """An open segment."""

    def __init__(self, folder: Path, info: SegmentInfo, same: Segment | None = None) -> None:
        """Open the segment.

        Args:
            folder: folder of the segment.
            info: its entry.
            same: the same segment, if it is already open.

        Raises:
            FileNotFoundError: there is no such file.
            IndexDamaged: the file is damaged; also raised by later reads.
        """
        self.info = info
        self.file: CheckedFile = same.file if same else CheckedFile(folder, info.file)
        self.blocks: LruCache[int, pa.RecordBatch] = same.blocks if same else LruCache(_KEPT)
        with damage_found():
            # The class, and the minimum and maximum start of its versions.
            self.classes = np.array(self.file.notes["classes"], np.int64).reshape(-1, 3)
            self.ends_elsewhere: list[str] = self.file.notes["ends"]
        self._own = self.ended_in(None)
        self.end([])

    @property
    def name(self) -> str:
        """The name of its file."""
        return self.info.file.name

    def ended_in(self, name: str | None) -> tuple[Numbers, Numbers]:
        """Return the versions that it knows to have ended, ascending, and the offsets of their ends.

        Args:
            name: the older segment that contains them; None for this segment.
        """
        if name is not None and name not in self.ends_elsewhere:
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        prefix = "ended" if name is None else f"ended {self.ends_elsewhere.index(name)}"
        places = self.file.part(f"{prefix} rows", 0, self.file.length(f"{prefix} rows"))
        until = self.file.part(f"{prefix} until", 0, self.file.length(f"{prefix} until"))
        return places.astype(np.int64), until

    def end(self, later: Sequence[Segment]) -> None:
        """Record which versions were ended by later segments."""
        parts = [self._own, *(segment.ended_in(self.name) for segment in later)]
        places = np.concatenate([part[0] for part in parts])
        until = np.concatenate([part[1] for part in parts])
        self.ended_later = places[len(self._own[0]) :]
        order = np.argsort(places, kind="stable")
        self.ended, self.until = places[order], until[order]

    # --- Versions ---

    def holds(self, rows: Numbers, horizon: int) -> npt.NDArray[np.bool_]:
        """Return which versions are valid at an offset: they exist and have not ended by then.

        Args:
            rows: versions.
            horizon: the offset; `FOREVER` for now.
        """
        held = np.ones(len(rows), np.bool_)
        if len(self.ended):
            at = np.minimum(np.searchsorted(self.ended, rows), len(self.ended) - 1)
            held &= ~((self.ended[at] == rows) & (self.until[at] <= min(horizon, FOREVER - 1)))
        if horizon < self.info.last:
            held &= self.file.at("offset", rows) <= horizon
        return held

    def starts(self, rows: Numbers) -> Numbers:
        """Return the starts of versions."""
        return self.file.at("start", rows)

    def lasts(self, rows: Numbers) -> Numbers:
        """Return the ends of versions, or their starts if they have no end."""
        return self.file.at("end", rows)

    def table(self, rows: Numbers) -> pa.Table:
        """Return versions as `COLUMNS`, in the given order."""
        blocks = rows // BLOCK
        order = np.argsort(blocks, kind="stable")
        parts, places = [arrow_schema().empty_table()], np.zeros(len(rows), np.int64)
        done = 0
        for group in np.split(order, np.flatnonzero(np.diff(blocks[order])) + 1):
            if len(group):
                block = int(blocks[group[0]])
                batch = self.blocks.get(block, lambda block=block: self._block(block))  # type: ignore[misc]
                with damage_found():
                    part = batch.take(pa.array(rows[group] - block * BLOCK))
                    parts.append(pa.Table.from_batches([part]))
                places[group] = np.arange(done, done + len(group))
                done += len(group)
        found = pa.concat_tables(parts)
        return found if bool((order == np.arange(len(order))).all()) else found.take(pa.array(places))

    def id_at(self, row: int) -> str:
        """Return the id of a version."""
        block = self.blocks.get(row // BLOCK, lambda: self._block(row // BLOCK))
        text: str = block.column("id")[row % BLOCK].as_py()
        return text

    def ids(self, rows: Numbers) -> pa.ChunkedArray:
        """Return the ids of versions, in the given order."""
        return self.table(rows).column("id")

    def all_rows(self) -> Rows:
        """Return all versions, for merging with others."""
        batches = [self._block(number) for number in range(self.file.notes["blocks"])]
        count = self.info.rows
        until = np.full(count, FOREVER)
        until[self.ended] = self.until
        offsets = self.file.part("offset", 0, count)
        return Rows(pa.Table.from_batches(batches, arrow_schema()), offsets, np.zeros(count, np.bool_), until)

    def names(self) -> pa.Table:
        """Return each what and where of the versions that were valid when the segment was written; see `NAMES`."""
        return pa.Table.from_batches([self._read(self.file.notes["blocks"], NAMES)])

    def _block(self, number: int) -> pa.RecordBatch:
        return self._read(number, arrow_schema())

    def _read(self, number: int, schema: pa.Schema) -> pa.RecordBatch:
        data = pa.py_buffer(self.file.block(number))
        with damage_found():
            size = int.from_bytes(data[:_SIZE].to_pybytes(), "little")
            return pa.ipc.read_record_batch(pa.Codec("zstd").decompress(data.slice(_SIZE), size), schema)

    # --- Ways ---

    def ranges(self, way: str, keys: Fingerprints, since: int | None = None, until: int | None = None) -> list[Range]:
        """Return the ranges of keys, one for each class with versions that may overlap a time.

        Args:
            way: `what`, `place` or `job`.
            keys: fingerprints of the keys.
            since: start of the time range, None if unbounded.
            until: end of the time range, None if unbounded.
        """
        classes = [
            number
            for number, least, greatest in self.classes.tolist()
            if (until is None or least <= until) and (since is None or greatest > since - (1 << number))
        ]
        numbers = np.repeat(np.array(classes, np.int64), len(keys))
        wanted = combined(np.tile(keys, len(classes)), numbers)
        order = np.argsort(wanted)
        hits, places = self.file.find(f"{way} keys", wanted[order])
        firsts = self.file.at(f"{way} firsts", places).tolist()
        lasts = self.file.at(f"{way} firsts", places + 1).tolist()
        return [Range(way, *bounds) for bounds in zip(numbers[order[hits]].tolist(), firsts, lasts, strict=True)]

    def rows(self, way: str, first: int, last: int) -> Numbers:
        """Return the versions in a part of a secondary index.

        Args:
            way: `what`, `place` or `job`.
            first: position of the first version.
            last: position after the last one.
        """
        return np.arange(first, last) if way == "what" else self.file.part(f"{way} rows", first, last).astype(np.int64)

    def found(self, way: str, wanted: Fingerprints) -> tuple[Numbers, Numbers]:
        """Find versions by their fingerprints.

        Args:
            way: `id` or `object`.
            wanted: fingerprints, ascending.

        Returns:
            Indices into `wanted`, and a version for each.
        """
        hits, places = self.file.find(f"{way} keys", wanted)
        firsts = self.file.at(f"{way} firsts", places).astype(np.int64)
        counts = self.file.at(f"{way} firsts", places + 1).astype(np.int64) - firsts
        before = np.cumsum(counts) - counts
        at = np.repeat(firsts - before, counts) + np.arange(counts.sum())
        return np.repeat(hits, counts), self.file.at(f"{way} rows", at).astype(np.int64)


def packed(batch: pa.RecordBatch) -> bytes:
    """Serialize rows as a block."""
    plain = batch.serialize()
    size: bytes = plain.size.to_bytes(_SIZE, "little")
    return size + bytes(pa.Codec("zstd", 1).compress(plain, asbytes=True))


def column_of(way: str) -> str:
    """Return the name of the column with the starts of a secondary index."""
    return "start" if way == "what" else f"{way} starts"


def opened(folder: Path, infos: Sequence[SegmentInfo], known: Mapping[str, Segment]) -> list[Segment]:
    """Open segments, oldest first.

    Args:
        folder: folder of the segments.
        infos: entries of the segments.
        known: segments that are already open, by name; their caches are shared.

    Raises:
        FileNotFoundError: a segment is missing.
        IndexDamaged: a segment is damaged.
    """
    segments = [Segment(folder, info, known.get(info.file.name)) for info in infos]
    for at, segment in enumerate(segments):
        segment.end(segments[at + 1 :])
    return segments
