"""Rows of slices by offset, without an engine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from odfpy.chain.slices import SliceOfBlock
from odfpy.data.vocabulary import DatasetVocabulary

if TYPE_CHECKING:
    import pyarrow as pa


def rows_between(
    slices: Sequence[SliceOfBlock],
    paths: Sequence[Path],
    vocabulary: DatasetVocabulary,
    start: int,
    end: int,
    names: Sequence[str],
    schema: pa.Schema,
) -> Iterator[pa.RecordBatch]:
    """The rows `start` to `end`, both inclusive, in order of offset; what does not hold any of them is not opened.

    Args:
        slices: of a dataset.
        paths: their files.
        vocabulary: names of its system columns.
        start: offset of the first row.
        end: offset of the last row.
        names: columns.
        schema: what they are to be called and of which types; those that an older slice lacks are null.

    Raises:
        IntegrityError, ObjectNotFound: a slice cannot be read.
    """
    import pyarrow as pa

    from odfpy.data.slice import iter_slice, slice_schema

    for item, path in zip(slices, paths, strict=True):
        interval = item.data.offset_interval
        if interval.start > end or interval.end < start:
            continue
        present = set(slice_schema(path, vocab=vocabulary).names)
        read = list(dict.fromkeys(name for name in names if name in present))
        first, last = max(0, start - interval.start), min(end, interval.end) - interval.start
        # A slice that has none of the columns has its rows all the same.
        wanted = read or [vocabulary.offset_column]
        for batch in iter_slice(path, columns=wanted, vocab=vocabulary, first=first, last=last):
            columns = [
                batch.column(name).cast(field.type) if name in present else pa.nulls(batch.num_rows, field.type)
                for name, field in zip(names, schema, strict=True)
            ]
            yield pa.record_batch(columns, schema=schema)
