"""Growth of an index: rows of new slices become segments. Segments that are not much larger are merged with them.

So the number of segments is logarithmic in the number of records, up to `Sizes.segment_rows`, and a push has amortized
cost proportional to its rows. Memory is bounded by the size of a segment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from odfpy.archive.index.catalog import Catalog
from odfpy.archive.index.segment import Segment, SegmentInfo
from odfpy.archive.index.segment_writer import write_segment
from odfpy.archive.index.versions import FOREVER, Numbers, Rows, Versions, joined, versions_of


@dataclass(frozen=True, slots=True)
class Sizes:
    """Sizes that determine how an index is split into segments; they do not affect results.

    Attributes:
        segment_rows: maximum number of versions per segment, unless a single slice's batch has more.
        segment_bytes: maximum bytes of rows that become a segment.
        least_rows: segments with fewer versions are merged with their successors.
        fanout: a segment is merged with its successors unless it is at least this many times as large.
    """

    segment_rows: int = 1 << 19
    segment_bytes: int = 1 << 28
    least_rows: int = 1024
    fanout: int = 2


DEFAULT_SIZES = Sizes()


def with_rows_added(
    folder: Path,
    catalog: Catalog,
    segments: Sequence[Segment],
    batches: Iterable[Rows],
    head: str,
    sizes: Sizes,
    tell: Callable[[int], None],
) -> Catalog:
    """Add rows to an index and return its new list; segment files are written, the list itself is not.

    Args:
        folder: folder of the index.
        catalog: its current list.
        segments: the segments of the list.
        batches: new rows, in the order of their offsets.
        head: the block that the index belongs to afterwards.
        sizes: sizes of segments.
        tell: called with the number of indexed rows.

    Raises:
        IndexDamaged: the existing index cannot be used.
        OSError: the index cannot be written.
        OdfError: a slice cannot be read.
    """
    segments = list(segments)
    for rows in _ahead(_parts(batches, sizes)):
        older, merged = _split(segments, len(rows), sizes)
        info = _segment(folder, rows, older, merged, catalog.seed)
        segments = [*older, Segment(folder, info)]
        for at, segment in enumerate(segments):
            segment.end(segments[at + 1 :])
        tell(len(rows))
    return replace(catalog, head=head, segments=tuple(segment.info for segment in segments))


def _parts(batches: Iterable[Rows], sizes: Sizes) -> Iterator[Rows]:
    """Combine batches as far as they fit into a segment."""
    part: list[Rows] = []
    rows = size = 0
    for batch in batches:
        if part and (rows + len(batch) > sizes.segment_rows or size + batch.table.nbytes > sizes.segment_bytes):
            yield _put_together(part)
            rows = size = 0
        part.append(batch)
        rows, size = rows + len(batch), size + batch.table.nbytes
    if rows:
        yield _put_together(part)


def _put_together(part: list[Rows]) -> Rows:
    """Concatenate batches and clear the list, so that memory holds both only briefly."""
    table = joined(part)
    part.clear()
    return table


def _ahead(parts: Iterator[Rows]) -> Iterator[Rows]:
    """Yield the parts, reading the next one while the current one is written."""
    with ThreadPoolExecutor(1) as reader:
        coming = reader.submit(next, parts, None)
        while (part := coming.result()) is not None:
            coming = reader.submit(next, parts, None)
            yield part


def _split(segments: Sequence[Segment], rows: int, sizes: Sizes) -> tuple[list[Segment], list[Segment]]:
    """Split the segments into those that stay, and those that are merged with the given number of new rows."""
    kept = list(segments)
    merged: list[Segment] = []
    while kept:
        info = kept[-1].info
        is_large = info.weight >= max(sizes.fanout * rows, sizes.least_rows)
        if is_large or rows + info.weight > sizes.segment_rows:
            break
        rows += info.weight
        merged.insert(0, kept.pop())
    return kept, merged


def _segment(folder: Path, rows: Rows, older: Sequence[Segment], merged: Sequence[Segment], seed: int) -> SegmentInfo:
    since = int(rows.offsets.min())
    versions = versions_of(joined([*(segment.all_rows() for segment in merged), rows]), seed, since)
    ended = _ended(older, versions)
    for segment in older:
        parts = [*(part.ended_in(segment.name) for part in merged), ended.get(segment.name, _nothing())]
        places = np.concatenate([part[0] for part in parts])
        if len(places):
            until, order = np.concatenate([part[1] for part in parts]), np.argsort(places)
            ended[segment.name] = places[order], until[order]
    return write_segment(folder, versions, ended, int(rows.offsets.max()), seed)


def _ended(older: Sequence[Segment], versions: Versions) -> dict[str, tuple[Numbers, Numbers]]:
    """Return the versions of older segments that new rows have ended."""
    ended: dict[str, tuple[Numbers, Numbers]] = {}
    order = np.argsort(versions.ended, kind="stable")
    wanted = versions.ended[order]
    for segment in older:
        hits, places = segment.found("id", wanted)
        held = segment.holds(places, FOREVER)
        hits, places = order[hits[held]], places[held]
        if not len(places):
            continue
        same = pc.equal(segment.ids(places), versions.ended_ids.take(pa.array(hits))).to_numpy(zero_copy_only=False)
        hits, places = hits[same], places[same]
        sorting = np.argsort(places)
        ended[segment.name] = places[sorting], versions.ended_until[hits[sorting]]
    return ended


def _nothing() -> tuple[Numbers, Numbers]:
    return np.zeros(0, np.int64), np.zeros(0, np.int64)
