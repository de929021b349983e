"""Lossless conversion of tables to data frames of pandas and Polars."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from odfpy.errors import EngineError, SchemaError
from odfpy.extras import needs_extra

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa


_INTEGERS: Final = ("Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64")


def pandas_frame(table: pa.Table, options: dict[str, Any]) -> pd.DataFrame:
    """Convert a table to a pandas frame with exact integers: pyarrow converts integer columns with nulls to floats.

    Args:
        table: the rows.
        options: options of `pyarrow.Table.to_pandas`; any option selects pyarrow's own conversion.

    Raises:
        EngineError: pandas is not installed.
    """
    with needs_extra(None, "Frames of pandas", EngineError):
        import pandas as pd
    import pyarrow as pa

    if options:
        return table.to_pandas(**options)  # type: ignore[no-any-return]
    nullable = {pa.type_for_alias(name.lower()): pd.api.types.pandas_dtype(name) for name in _INTEGERS}
    frame: pd.DataFrame = table.to_pandas(
        types_mapper=nullable.get, integer_object_nulls=True
    )  # `integer_object_nulls` is for integers inside of lists
    for at, column in enumerate(table.columns):
        if column.type in nullable and not column.null_count:
            frame.isetitem(at, column.to_pandas())
    return frame


def polars_frame(table: pa.Table) -> pl.DataFrame:
    """Convert a table to a Polars frame.

    Raises:
        SchemaError: two columns have the same name, or a type has no counterpart in Polars.
        EngineError: polars is not installed.
    """
    with needs_extra("notebook", "Frames of Polars", EngineError):
        import polars as pl
    names = table.column_names
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise SchemaError(
            f"Two columns are called {twice!r}, which Polars does not support",
            hint="Give one another name in the query: ... AS other.",
        )
    wide = next((field for field in table.schema if "decimal256" in str(field.type)), None)
    if wide is not None:  # would crash with a panic
        raise SchemaError(
            f"Polars does not support the column {wide.name!r} of type {wide.type}",
            hint="Omit it, or convert it in the query with CAST.",
        )
    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)  # noqa: S101  the result for tables
    return frame
