"""Rows of a query result, convertible to several kinds of data frames."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from odfpy.client.backend import Backend
from odfpy.client.frames import pandas_frame, polars_frame
from odfpy.data.rows.html_table import cell, table
from odfpy.data.rows.plain_values import columns_of, plain
from odfpy.data.scalars import count_given
from odfpy.query.query import Query

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    from odfpy.engine.frames import DataFrame, SparkSession

SHOWN_ROWS: Final = 10
"""Maximum number of rows shown in notebooks."""


class Rows:
    """The rows of a result. They are fetched on first use, and cached; `batches` does not cache.

    Every library that supports the Arrow PyCapsule interface accepts them: `pl.from_arrow(rows)`, for example.

    Attributes:
        query: the query.
    """

    def __init__(self, source: Backend, query: Query) -> None:
        self._source = source
        self.query = query

    @cached_property
    def table(self) -> pa.Table:
        """All rows.

        Raises:
            OdfError: see `odfpy.query.service.QueryService.run`; may also be raised while rows are read.
        """
        import pyarrow as pa

        with self._source.ask(self.query) as stream:
            return pa.Table.from_batches(stream, stream.schema)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Run the query again, and yield its rows as they arrive, for results larger than memory.

        Raises:
            OdfError: see `table`; may also be raised between two batches.
        """
        with self._source.ask(self.query) as stream:
            yield from stream

    def head(self, num_rows: int = SHOWN_ROWS) -> Rows:
        """Return the first rows.

        Raises:
            UsageError: `num_rows` is not a non-negative integer.
        """
        num_rows = count_given(num_rows, "num_rows")
        limit = num_rows if self.query.limit is None else min(num_rows, self.query.limit)
        found = Rows(self._source, replace(self.query, limit=limit))
        if self._is_here:
            found.table = self.table.slice(0, limit)
        return found

    # --- Frames ---

    def to_arrow(self) -> pa.Table:
        """Return a pyarrow.Table; see `table` for errors."""
        return self.table

    def to_pandas(self, **options: Any) -> pd.DataFrame:
        """Return a pandas.DataFrame; see `table` for errors.

        Integers stay exact: integer columns with nulls have pandas' nullable types, such as `Int64`.

        Args:
            options: options of `pyarrow.Table.to_pandas` for another conversion, such as `types_mapper=pd.ArrowDtype`.

        Raises:
            EngineError: pandas is not installed.
        """
        return pandas_frame(self.table, options)

    def to_polars(self) -> pl.DataFrame:
        """Return a polars.DataFrame; see `table` for errors.

        Raises:
            SchemaError: two columns have the same name, or a type has no counterpart in Polars.
            EngineError: polars is not installed.
        """
        return polars_frame(self.table)

    def to_spark(self, session: SparkSession | None = None) -> DataFrame:
        """Return a DataFrame of a Spark session; see `table` for errors.

        Rows that a local workspace stores unchanged, such as those of `Dataset.changelog`, are read by Spark itself on
        demand. Other rows pass through the memory of this process.

        Args:
            session: the session; the active one of this thread by default.

        Raises:
            UsageError: there is no active session.
            SchemaError: a type has no counterpart in Spark.
        """
        from odfpy.engine.frames import spark_frame, spark_frame_of_slices

        stored = None if self._is_here else self._source.stored_rows(self.query)
        if stored is not None:
            frame = spark_frame_of_slices(stored.table, stored.columns, session)
            if frame is not None:
                return frame
        return spark_frame(self.table, session)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.table.__arrow_c_stream__(requested_schema)

    def __len__(self) -> int:
        return int(self.table.num_rows)

    # --- Display ---

    def __repr__(self) -> str:
        if not self._is_here:
            return f"<rows of {self.query.text}, not asked for yet>"
        from odfpy.data.rows.text_table import lines_of

        shown = self.table.slice(0, SHOWN_ROWS)
        rows = [[_text(value) for value in row] for row in zip(*_plain(shown), strict=True)]
        lines = lines_of(shown.column_names, rows)
        return "\n".join([*lines, self._amount(shown.num_rows)])

    def _repr_html_(self) -> str:
        shown = self.table if self._is_here else self.head(SHOWN_ROWS + 1).table
        first = shown.slice(0, SHOWN_ROWS)
        kinds = [str(field.type) for field in first.schema]
        rows = list(zip(*_plain(first), strict=True))
        return f"{table(first.column_names, rows, hints=kinds)}<small>{cell(self._amount(shown.num_rows))}</small>"

    @property
    def _is_here(self) -> bool:
        return "table" in self.__dict__

    def _amount(self, num_shown: int) -> str:
        """Describe the number of rows, as far as known."""
        if not self._is_here:
            return f"the first {SHOWN_ROWS} rows" if num_shown > SHOWN_ROWS else f"{num_shown} rows"
        count = self.table.num_rows
        return f"{count} row{'' if count == 1 else 's'}" + (f", {SHOWN_ROWS} shown" if count > SHOWN_ROWS else "")


def _plain(shown: pa.Table) -> list[list[Any]]:
    return [[plain(value) for value in values] for values in columns_of(shown)]


def _text(value: Any) -> str:
    return "" if value is None else str(value)
