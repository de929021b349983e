"""Tables on their way to an engine in another process, and results on their way back.

Rows go as Parquet files, with their running number beside their columns, and come back as an Arrow IPC stream. What the
engine has no type for (unsigned integers, half floats, members that are never null, and so on) goes as the next type
that can hold it; where the engine says that a column came through unchanged, it gets its own type back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from odfpy.data.schemas.arrow import plain_array, plain_schema
from odfpy.data.schemas.retype import floored, retype
from odfpy.engine.contract import PreprocessTable, UnchangedColumn
from odfpy.engine.ipc import map_stream
from odfpy.engine.spark.plan.types import readable_type
from odfpy.errors import EngineError, InvalidQuery, UnsupportedQuery

ROW_NUMBER: Final = "__odf_row"
"""Name of the column that has the running number of a row, from 0."""

_ROWS_AT_ONCE: Final = 1 << 17
_SAME_IN_SPARK: Final = frozenset(
    (pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.string(), pa.binary(), pa.date32())
)


def hand_over(tables: Mapping[str, pa.Table], folder: Path) -> tuple[PreprocessTable, ...]:
    """Write tables to files in a folder.

    Raises:
        InvalidQuery: a column has the name that is ours.
        UnsupportedQuery: a column has a type that Parquet does not have; the message names it.
        EngineError: the files cannot be written.
    """
    handed = []
    for number, (name, table) in enumerate(tables.items()):
        path = folder / f"{number}.parquet"
        _write(name, table, path)
        watched = tuple(field.name for field in table.schema if not _is_same_in_spark(field.type))
        handed.append(PreprocessTable(name, str(path), watched))
    return tuple(handed)


def take_back(path: Path, unchanged: Iterable[UnchangedColumn], tables: Mapping[str, pa.Table]) -> pa.Table:
    """Read a result; columns that came through unchanged have the type that they had in their table.

    Args:
        path: the stream of results.
        unchanged: the columns that came through unchanged.
        tables: the tables that were handed over, by name.
    """
    result = map_stream(str(path))
    for column in unchanged:
        own = tables[column.table].schema.field(column.column).type
        field = result.schema.field(column.position)
        chunks = [retype(chunk, own) for chunk in result.column(column.position).chunks]
        result = result.set_column(column.position, field.with_type(own), pa.chunked_array(chunks, own))
    return result


def _is_same_in_spark(arrow: pa.DataType) -> bool:
    """Return whether a column of that type comes back as it was, computed or not.

    Timestamps do, since they are cut to milliseconds when they are stored anyway; floating point numbers do not, since
    those that are computed are given one form.
    """
    return arrow in _SAME_IN_SPARK or bool(pa.types.is_timestamp(arrow) or pa.types.is_decimal128(arrow))


def _write(name: str, table: pa.Table, path: Path) -> None:
    if ROW_NUMBER in table.column_names:
        raise InvalidQuery(f"`{name}` has a column `{ROW_NUMBER}`, a name that is reserved", hint="Rename the column.")
    schema = pa.schema([_readable(field) for field in plain_schema(table.schema)] + [pa.field(ROW_NUMBER, pa.int64())])
    try:
        with pq.ParquetWriter(path, schema, compression="zstd", compression_level=1) as writer:
            for start in range(0, table.num_rows, _ROWS_AT_ONCE):
                part = table.slice(start, _ROWS_AT_ONCE)
                columns = [_handover_type(column, field) for column, field in zip(part.columns, schema, strict=False)]
                numbers = pa.arange(start, start + part.num_rows)
                writer.write_table(pa.Table.from_arrays([*columns, numbers], schema=schema))
    except pa.ArrowNotImplementedError as error:
        raise UnsupportedQuery(
            f"`{name}` cannot be handed to the engine: {error}",
            hint="Declare another type in the source's schema, or preprocess with `engine: datafusion`.",
        ) from error
    except (OSError, pa.ArrowException) as error:
        raise EngineError(f"The rows of `{name}` cannot be handed to the engine: {error}") from error


def _readable(field: pa.Field) -> pa.Field:
    """A column of nothing but nulls goes as text, since it has no type of its own yet."""
    return field.with_type(pa.string() if pa.types.is_null(field.type) else readable_type(field.type))


def _handover_type(column: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
    return pa.chunked_array([retype(_micros(plain_array(chunk)), field.type) for chunk in column.chunks], field.type)


def _micros(array: pa.Array) -> pa.Array:
    """Timestamps as Spark has them; what is finer is truncated downwards."""
    is_fine = pa.types.is_timestamp(array.type) and array.type.unit == "ns"
    return floored(array, "microsecond") if is_fine else array
