"""Fitting of a table to a schema that has been extended since the table was written."""

from __future__ import annotations

import pyarrow as pa

from odfpy.errors import SchemaError


def fit_table(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return the table with exactly the columns of the schema, in its order and types; missing columns are null.

    Nullability is not checked: all columns of the result are nullable.

    Raises:
        SchemaError: a value does not fit its type; the message names the column.
    """
    present = dict(zip(table.column_names, table.columns, strict=True))
    columns = {}
    for field in schema:
        column = present.get(field.name)
        if column is None:
            column = pa.chunked_array([pa.nulls(table.num_rows, field.type)], type=field.type)
        elif column.type != field.type:
            try:
                column = column.cast(field.type)
            except pa.ArrowException as error:
                raise SchemaError(f"Column {field.name!r} does not fit its recorded type: {error}") from error
        columns[field.name] = column
    return pa.table(columns)
