"""Columns as text, converted a whole column at a time: values of CSV, lines of NDJSON.

Values have the notation of `odf -o csv` and `-o ndjson`. Each distinct value is formatted once, since columns repeat
values.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from odfpy.data.rows.plain_values import columns_of, plain

if TYPE_CHECKING:
    import pyarrow as pa


def as_json(value: Any) -> str:
    """Return a plain value as JSON on one line."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def csv_columns(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the rows with columns of numbers or text; null stays null, nested values become JSON."""
    import pyarrow as pa

    def written(column: pa.Array) -> pa.Array:
        if pa.types.is_integer(column.type) or pa.types.is_boolean(column.type) or pa.types.is_null(column.type):
            return column
        if pa.types.is_string(column.type):
            return column
        return _texts(column, in_cell)

    return pa.record_batch([written(column) for column in batch.columns], names=batch.schema.names)


def ndjson_lines(batch: pa.RecordBatch) -> pa.Array:
    """Return one JSON object per row, without line ends."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not batch.num_columns:
        return pa.array(["{}"] * batch.num_rows, pa.large_string())
    parts: list[Any] = []
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        parts.append(pa.scalar(f"{',' if parts else '{'}{as_json(name)}:", pa.large_string()))
        parts.append(_json_column(column))
    return pc.binary_join_element_wise(*parts, pa.scalar("}", pa.large_string()), pa.scalar("", pa.large_string()))


def _json_column(column: pa.Array) -> pa.Array:
    import pyarrow as pa

    if pa.types.is_integer(column.type):
        texts = column.cast(pa.large_string())
    else:
        texts = _texts(column, as_json).cast(pa.large_string())
    return texts.fill_null("null")


def in_cell(value: Any) -> str:
    """Return a plain value as text for CSV."""
    if isinstance(value, bool):
        return str(value).lower()
    return as_json(value) if isinstance(value, (dict, list)) else str(value)


def _texts(column: pa.Array, write: Callable[[Any], str]) -> pa.Array:
    """Return each value as text; null stays null."""
    import pyarrow as pa

    if pa.types.is_nested(column.type) or pa.types.is_null(column.type):
        return _write(column, write)
    encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    return _write(encoded.dictionary, write).take(encoded.indices)


def _write(values: pa.Array, write: Callable[[Any], str]) -> pa.Array:
    import pyarrow as pa

    (column,) = columns_of(pa.table({"": values}))
    return pa.array([None if value is None else write(plain(value)) for value in column], pa.string())
