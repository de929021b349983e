"""Scans of slices by offset, without an engine: in this process or, on servers, in a separate one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from odfpy.data.scalars import U64
from odfpy.data.vocabulary import DatasetVocabulary
from odfpy.errors import IntegrityError
from odfpy.values import dataclass

if TYPE_CHECKING:
    import pyarrow as pa

_HINT: Final = "`odf verify` shows what is damaged; pull the dataset again from an intact copy."


@dataclass(frozen=True, slots=True)
class ScanPart:
    """Some rows of a slice.

    Attributes:
        path: its file.
        where: the slice, for messages: dataset and block.
        num_rows: the number of rows according to its block.
        first: position of the first wanted row, from 0.
        last: position of the last wanted row.
    """

    path: str
    where: str
    num_rows: U64
    first: U64
    last: U64


@dataclass(frozen=True, slots=True)
class ScanRequest:
    """A request for some rows of some slices.

    Attributes:
        parts: the slices, in order of offset.
        names: columns.
        schema: their names and types in the result, as a serialized Arrow schema; columns that a slice lacks are null.
        vocab: names of the system columns.
        is_reversed: whether the last row comes first.
        max_bytes: the maximum number of bytes of the rows.
    """

    parts: tuple[ScanPart, ...]
    names: tuple[str, ...]
    schema: bytes
    vocab: DatasetVocabulary
    is_reversed: bool = False
    max_bytes: U64 | None = None

    def arrow_schema(self) -> pa.Schema:
        """Return the schema."""
        import pyarrow as pa

        return pa.ipc.read_schema(pa.py_buffer(self.schema))


def scan(request: ScanRequest) -> Iterator[pa.RecordBatch]:
    """Return the rows of a request.

    Raises:
        ResultTooLarge: the rows have more bytes than allowed.
        IntegrityError: a slice is not what its block says, or cannot be read; the message names dataset and block.
        ObjectNotFound: a slice is missing.
    """
    from odfpy.engine.ipc import within

    return within(_rows(request), 0, None, request.max_bytes)


def _rows(request: ScanRequest) -> Iterator[pa.RecordBatch]:
    schema = request.arrow_schema()
    for part in reversed(request.parts) if request.is_reversed else request.parts:
        batches = _rows_of(part, request, schema)
        yield from reversed([_reversed(batch) for batch in batches]) if request.is_reversed else batches


def _rows_of(part: ScanPart, request: ScanRequest, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    from odfpy.data.slices.slice import iter_slice, slice_schema

    try:
        _check_rows(part)
        present = set(slice_schema(part.path, vocab=request.vocab).names)
        read = list(dict.fromkeys(name for name in request.names if name in present))
        # A slice without any of the columns still contributes its rows.
        wanted = read or [request.vocab.offset_column]
        for batch in iter_slice(part.path, columns=wanted, vocab=request.vocab, first=part.first, last=part.last):
            columns = [
                fitting(batch.column(name), field) if name in present else pa.nulls(batch.num_rows, field.type)
                for name, field in zip(request.names, schema, strict=True)
            ]
            yield pa.record_batch(columns, schema=schema)
    except IntegrityError as error:
        raise IntegrityError(f"{part.where}, data file {_name(part)}: {error.message}", hint=_HINT) from error


def _name(part: ScanPart) -> str:
    """Return the name of a file, which is its hash: remote clients must not see its path."""
    return os.path.basename(part.path)  # noqa: PTH119


def _check_rows(part: ScanPart) -> None:
    from odfpy.data.slices.parquet_io import open_parquet

    with open_parquet(part.path) as file:
        count = file.metadata.num_rows
    if count != part.num_rows:
        raise IntegrityError(f"it has {count} rows, its block says {part.num_rows}")


def fitting(column: pa.Array, field: pa.Field) -> pa.Array:
    """Return a column of a slice with the type of the schema.

    Raises:
        IntegrityError: its values have another type, or are invalid.
    """
    import pyarrow as pa

    try:
        cast_column = column.cast(field.type)
        cast_column.validate(full=_may_be_wrong(field.type))
    except (pa.ArrowException, ValueError) as error:
        raise IntegrityError(
            f"column {field.name!r} holds {column.type} where the schema says {field.type}, or values that do not fit"
            f" that type: {error}"
        ) from error
    return cast_column


def _may_be_wrong(kind: pa.DataType) -> bool:
    """Return whether bytes in a file may not be a valid value of a type: text need not be UTF-8."""
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_nested(kind))


def _reversed(batch: pa.RecordBatch) -> pa.RecordBatch:
    import pyarrow as pa

    return batch.take(pa.array(range(batch.num_rows - 1, -1, -1), pa.int64()))
