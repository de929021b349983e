"""Rows of slices by offset, without an engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from odfpy.chain.slices import SliceOfBlock, overlapping, slice_paths
from odfpy.chain.stores.object_store import ObjectStore
from odfpy.data.vocabulary import DatasetVocabulary
from odfpy.engine.scans import ScanPart, ScanRequest

if TYPE_CHECKING:
    import pyarrow as pa


def scan_of(
    dataset: str,
    store: ObjectStore,
    slices: Sequence[SliceOfBlock],
    vocabulary: DatasetVocabulary,
    rows: tuple[int, int],
    names: Sequence[str],
    schema: pa.Schema,
    *,
    is_reversed: bool = False,
    max_bytes: int | None = None,
) -> ScanRequest:
    """Return a request for rows in order of offset; slices without requested rows are not opened.

    Args:
        dataset: name of the dataset, for messages.
        store: store of the slices' files.
        slices: slices of the dataset.
        vocabulary: names of its system columns.
        rows: offsets of the first and the last row.
        names: names of the columns.
        schema: names and types of the columns in the result; columns that an older slice lacks are null.
        is_reversed: whether to start with the last row.
        max_bytes: maximum bytes of rows in a batch.

    Raises:
        ObjectNotFound, HashMismatch: a required slice is missing or damaged.
    """
    start, end = rows
    needed = overlapping(slices, start, end)
    parts = []
    for item, path in zip(needed, slice_paths(store, needed, of=dataset), strict=True):
        interval = item.data.offset_interval
        where = f"{dataset}, block {item.block.block.sequence_number} ({item.block.hash})"
        first, last = max(0, start - interval.start), min(end, interval.end) - interval.start
        parts.append(ScanPart(str(path), where, interval.num_rows, first, last))
    written = schema.serialize().to_pybytes()
    return ScanRequest(tuple(parts), tuple(names), written, vocabulary, is_reversed, max_bytes)
