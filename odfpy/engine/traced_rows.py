"""Tracing: the output rows of a request, how they are distinguished, and the file with the answer."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import pyarrow as pa

from odfpy.data.slices.parquet_io import open_parquet
from odfpy.engine.ipc import write_stream
from odfpy.engine.output import OutputLayout
from odfpy.engine.tracing import BRANCH, INPUT, OFFSET, WANTED, WAY, WEIGHT

RowKey: TypeAlias = tuple[str, ...]
"""Identifies equal rows: the values of their columns, in the form that they have in a slice."""

SourceRow: TypeAlias = tuple[int, int, int]
"""A row of an input: the number of the input, the offset there, and the branch that it came through, or -1."""

_ANSWER: Final = pa.schema(
    [(WANTED, pa.int64()), (WAY, pa.int32()), (INPUT, pa.int32()), (OFFSET, pa.int64()), (BRANCH, pa.int32())]
)


@dataclass(frozen=True)
class TraceTarget:
    """The output rows that a trace is about.

    Attributes:
        layout: the columns of the output.
        rows: the rows, without system columns.
        numbers: numbers of the rows, by values and weight; several where rows are identical.
    """

    layout: OutputLayout
    rows: pa.Table
    numbers: Mapping[tuple[RowKey, int], Sequence[int]]

    @classmethod
    def read(cls, path: str, layout: OutputLayout) -> TraceTarget:
        """Read the rows of a request; columns that they do not have yet are NULL."""
        with open_parquet(path) as file:
            table = file.read()
        fields = list(layout.schema)[3:]
        arrays = [
            table.column(field.name).cast(field.type)
            if field.name in table.column_names
            else pa.chunked_array([pa.nulls(table.num_rows, field.type)])
            for field in fields
        ]
        rows = pa.Table.from_arrays(arrays, names=[field.name for field in fields])
        numbers: defaultdict[tuple[RowKey, int], list[int]] = defaultdict(list)
        at = zip(table.column(WANTED).to_pylist(), table.column(WEIGHT).to_pylist(), strict=True)
        keys = (key for batch in rows.to_batches() for key in keys_of(batch.columns))
        for key, (number, weight) in zip(keys, at, strict=True):
            numbers[key, weight].append(number)
        return cls(layout, rows, numbers)


def keys_of(columns: Iterable[pa.Array]) -> Iterable[RowKey]:
    """Return keys that distinguish rows with the given columns."""
    return zip(*([repr(value) for value in array.to_pylist()] for array in columns), strict=True)


def write_answer(path: str, ways: Mapping[int, Sequence[Sequence[SourceRow]]]) -> int:
    """Write the origins of rows.

    Args:
        path: a new file.
        ways: by number of the row, all its alternative origins; a row without any has input -1.

    Returns:
        The number of rows in the file.
    """
    answer_rows = [
        (number, way, *source)
        for number in sorted(ways)
        for way, made_of in enumerate(ways[number])
        for source in made_of or [(-1, -1, -1)]
    ]
    columns = list(zip(*answer_rows, strict=True)) or [()] * len(_ANSWER)
    batch = pa.record_batch([pa.array(c, f.type) for c, f in zip(columns, _ANSWER, strict=True)], schema=_ANSWER)
    return write_stream(path, _ANSWER, [batch])
