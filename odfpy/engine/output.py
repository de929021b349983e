"""The output layout: every engine gives its result rows the same system columns and final types, in one slice.

The columns of a slice are offset, operation type, system time, event time, then those of the result in its order (ODF
specification, "Common Data Schema").
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from odfpy.data.offset_interval import OffsetInterval
from odfpy.data.schemas.arrow import from_arrow, plain_array, plain_type, to_arrow_type
from odfpy.data.schemas.retype import floored
from odfpy.data.schemas.schema import DataSchema
from odfpy.data.slices.logical_hash import LogicalHasher
from odfpy.data.slices.rules import check_storable
from odfpy.data.slices.writer import SliceWriter
from odfpy.data.timestamp import Timestamp
from odfpy.data.vocabulary import DatasetVocabulary
from odfpy.engine.contract import SliceDescription
from odfpy.errors import InvalidQuery, SchemaError, UnsupportedQuery, did_you_mean

_TIME = pa.timestamp("ms", "UTC")


@dataclass(frozen=True, slots=True)
class OutputLayout:
    """The final layout of a result.

    Attributes:
        vocab: names of the system columns.
        schema: all columns of the slice.
        sources: for each column from the event time on, its position in the result.
        operation_type: position of the operation type in the result, if the query selects it.
        key: positions in the result of the columns that identify a row.
    """

    vocab: DatasetVocabulary
    schema: pa.Schema
    sources: tuple[int, ...]
    operation_type: int | None
    key: frozenset[int] = frozenset()


def output_layout(result: pa.Schema, vocab: DatasetVocabulary, recorded: DataSchema | None = None) -> OutputLayout:
    """Return the layout of the slice for a result with some columns.

    Args:
        result: columns of the query.
        vocab: names of the system columns of the output.
        recorded: the schema of the output so far. Offsets and operation types keep their types; optional columns stay
            optional, and new ones are optional, since earlier rows lack them.

    Raises:
        InvalidQuery: a system column is missing, or present although the engine makes it; duplicate column names.
        UnsupportedQuery: a column has a type that slices cannot have.
    """
    names = result.names
    _check_names(names, vocab)
    event_time = names.index(vocab.event_time_column)
    time_type = result.field(event_time).type
    if not (pa.types.is_timestamp(time_type) or pa.types.is_date(time_type)):
        raise InvalidQuery(
            f"The event time column `{vocab.event_time_column}` has type {time_type}",
            hint=f"Cast it: `CAST(... AS TIMESTAMP) AS {vocab.event_time_column}`, or to DATE.",
        )
    operation_type = names.index(vocab.operation_type_column) if vocab.operation_type_column in names else None
    sources = (event_time, *(at for at in range(len(names)) if at not in (event_time, operation_type)))
    data = [_final_field(result.field(at), recorded) for at in sources]
    system = [
        pa.field(vocab.offset_column, _recorded_type(vocab.offset_column, pa.int64(), recorded), nullable=False),
        pa.field(
            vocab.operation_type_column,
            _recorded_type(vocab.operation_type_column, pa.int32(), recorded),
            nullable=False,
        ),
        pa.field(vocab.system_time_column, _TIME, nullable=False),
        data[0].with_nullable(False),
    ]
    return OutputLayout(vocab, _storable(pa.schema(system + data[1:])), sources, operation_type)


def _recorded_type(name: str, default: pa.DataType, recorded: DataSchema | None) -> pa.DataType:
    """Return the type of a system column: the recorded one, since other writers may have begun with another type."""
    field = next((field for field in recorded.fields if field.name == name), None) if recorded else None
    arrow = default if field is None else to_arrow_type(field.type)
    return arrow if pa.types.is_integer(arrow) else default


def _check_names(names: Sequence[str], vocab: DatasetVocabulary) -> None:
    for name in (vocab.offset_column, vocab.system_time_column):
        if name in names:
            raise InvalidQuery(
                f"The result has a column `{name}`, which the engine assigns",
                hint="Omit or rename it, and list the columns instead of `*`.",
            )
    twice = next((name for at, name in enumerate(names) if name in names[:at]), None)
    if twice is not None:
        raise InvalidQuery(f"The result has two columns `{twice}`", hint="Rename one of them with AS.")
    if vocab.event_time_column not in names:
        window = next((name for name in ("window", "session_window") if name in names), None)
        hint = did_you_mean(vocab.event_time_column, names)
        if window is not None:
            hint = f"Select `{window}.start` or `{window}.end` AS {vocab.event_time_column}."
        raise InvalidQuery(
            f"The result has no event time: no column `{vocab.event_time_column}` among {', '.join(names)}",
            hint=hint or f"Select the time that a row is about AS {vocab.event_time_column}.",
        )


def _final_field(field: pa.Field, recorded: DataSchema | None) -> pa.Field:
    arrow = plain_type(field.type)
    final = _TIME if pa.types.is_timestamp(arrow) else pa.date32() if pa.types.is_date(arrow) else arrow
    required = True if recorded is None else any(f.name == field.name and not f.is_optional for f in recorded.fields)
    return pa.field(field.name, final, nullable=field.nullable or not required)


def _storable(schema: pa.Schema) -> pa.Schema:
    for field in schema:
        if _has_empty_struct(field.type):
            raise UnsupportedQuery(
                f"The result cannot be stored: column `{field.name}` has a struct without fields", hint="Leave it out."
            )
    try:
        from_arrow(schema)
        LogicalHasher(schema)
        check_storable(schema)
    except SchemaError as error:
        raise UnsupportedQuery(
            f"The result cannot be stored: {error.message}", hint="Cast the column, or omit it."
        ) from error
    return schema


def _has_empty_struct(kind: pa.DataType) -> bool:
    """Return whether a type is, or contains, a struct without fields, which Parquet does not have."""
    if pa.types.is_list(kind):
        return _has_empty_struct(kind.value_type)
    return pa.types.is_struct(kind) and (
        not kind.num_fields or any(_has_empty_struct(field.type) for field in kind.fields)
    )


class OutputSlice(AbstractContextManager["OutputSlice"]):
    """The writer of a result's rows, in their final order, to one slice; without rows, there is no file.

    Use it as a context manager and call `finish`; leaving it without that removes the file.
    """

    def __init__(self, path: str, layout: OutputLayout, *, next_offset: int, system_time: Timestamp) -> None:
        self._path = Path(path)
        self._layout = layout
        self._next_offset = next_offset
        self._system_time = system_time.millis
        self._writer: SliceWriter | None = None

    def write(
        self, rows: pa.RecordBatch, operation_types: pa.Array, where: Callable[[int], str] = lambda _: ""
    ) -> None:
        """Append rows.

        Args:
            rows: columns of the result; columns after those of the layout are ignored.
            operation_types: their operation types, as int32.
            where: describes, for messages, the input row of a row, by its position in the batch.

        Raises:
            InvalidQuery: a row has no event time.
            UnsupportedQuery: a key column has a time that is finer than what is stored.
            SchemaError: a value does not fit.
        """
        if not rows.num_rows:
            return
        columns = final_columns(rows, self._layout)
        if columns[0].null_count:
            first = pc.index(columns[0].is_null(), value=True).as_py()
            raise InvalidQuery(
                f"The event time `{self._layout.vocab.event_time_column}` of a row is null{where(first)}",
                hint="Filter such rows out, or set a time with `coalesce`.",
            )
        offsets = pa.array(np.arange(self._next_offset, self._next_offset + rows.num_rows, dtype=np.int64))
        system_time = pa.array(np.full(rows.num_rows, self._system_time, dtype=np.int64)).cast(_TIME)
        if self._writer is None:
            self._writer = SliceWriter(self._path, self._layout.schema, self._layout.vocab)
        operations_and_offsets = [
            offsets.cast(self._layout.schema.field(0).type),
            operation_types.cast(self._layout.schema.field(1).type),
        ]
        self._writer.write(
            pa.record_batch([*operations_and_offsets, system_time, *columns], schema=self._layout.schema)
        )
        self._next_offset += rows.num_rows

    def finish(self) -> tuple[SliceDescription, ...]:
        """Complete the file; return nothing when there were no rows."""
        if self._writer is None:
            return ()
        info = self._writer.finish()
        interval = OffsetInterval(info.offset_start, info.offset_end)
        return (SliceDescription(str(self._path), interval, info.size, info.physical_hash, info.logical_hash),)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._writer is not None:
            self._writer.abort()


def final_columns(rows: pa.RecordBatch, layout: OutputLayout) -> list[pa.Array]:
    """Return the columns of a slice from the event time on, for rows as `OutputSlice.write` takes them.

    Raises:
        UnsupportedQuery: a key column has a time that is finer than what is stored, so that keys would collide.
    """
    return [
        _final(rows.column(at), layout.schema.field(position), is_key=at in layout.key)
        for position, at in enumerate(layout.sources, start=3)
    ]


def _final(array: pa.Array, wanted: pa.Field, *, is_key: bool) -> pa.Array:
    """Return values in plain layout; timestamps are truncated to milliseconds, downwards also before 1970."""
    plain = plain_array(array)
    if pa.types.is_timestamp(plain.type) and plain.type.unit in ("us", "ns"):
        cut = floored(plain, "millisecond")
        if is_key and not cut.equals(plain):
            raise UnsupportedQuery(
                f"Rows are identified by the time `{wanted.name}`, which is truncated to milliseconds when it is"
                " stored: different rows would get the same time",
                hint=f"Use date_trunc('MILLISECOND', ...) where `{wanted.name}` is made, or a whole number such as"
                " unix_micros(...).",
            )
        plain = cut
    return plain if plain.type.equals(wanted.type) else plain.cast(wanted.type)
