"""Ad hoc queries in process: rows as they are made."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.dataset as ds

from odfpy.data.schemas.arrow import plain_schema
from odfpy.data.slices.slice import slice_schema
from odfpy.engine.datafusion.datasets import name_dataset
from odfpy.engine.datafusion.failures import datafusion_errors
from odfpy.engine.datafusion.plan import check_is_query
from odfpy.engine.datafusion.session import (
    name_rows,
    new_session,
    quoted,
    rows_in_order,
    run_query,
)
from odfpy.engine.ipc import within
from odfpy.engine.sql.ad_hoc import SqlRequest, SqlTable
from odfpy.engine.sql.projection import DATAFUSION, projection_sql
from odfpy.engine.sql.source_text import SourceText

if TYPE_CHECKING:
    from datafusion import SessionContext


class DataFusionRows:
    """The result of an ad hoc query, computed as it is read; planned when this is made.

    Attributes:
        schema: schema of the rows, in plain layout.
    """

    def __init__(self, request: SqlRequest) -> None:
        self._request = request
        self._source = SourceText(request.shown or request.query)
        self._context = new_session(deterministic=False)
        with datafusion_errors(self._source, self._plan_with):
            for number, table in enumerate(request.tables):
                _name_table(self._context, table, f"__odf_log_{number}")
            self._frame = run_query(self._context, request.query)
            check_is_query(self._frame.logical_plan(), self._source)
            self.schema: pa.Schema = plain_schema(self._frame.schema())

    def _plan_with(self, start: int, end: int, text: str) -> object:
        """Plan the query with another text at a position."""
        query = self._request.query
        return run_query(self._context, query[:start] + text + query[end:]).optimized_logical_plan()

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows; DataFusion itself would return those of whichever file is read first."""
        request = self._request
        with datafusion_errors(self._source, self._plan_with):
            yield from within(rows_in_order(self._frame), request.skip, request.limit, request.max_bytes)


def _name_table(context: SessionContext, table: SqlTable, log: str) -> None:
    """Register a table: the slices themselves, or a view of them."""
    schema = slice_schema(table.schema_file, vocab=table.vocab)
    is_whole = table.projection is None and table.last_offset is None
    name = table.name if is_whole else log
    if table.data_paths:
        slices = ds.dataset(list(table.data_paths), schema, format="parquet")
        name_dataset(context, name, slices, schema)
    else:
        name_rows(context, name, schema, [])
    if is_whole:
        return
    if table.last_offset is not None:
        up_to = f"{log}_cut"
        text = f"SELECT * FROM {quoted(log)} WHERE {quoted(table.vocab.offset_column)} <= {table.last_offset}"  # noqa: S608
        context.register_view(quoted(up_to), run_query(context, text))
        log = up_to
    text = f"SELECT * FROM {quoted(log)}"  # noqa: S608
    if table.projection is not None:
        text = projection_sql(table.projection, log, schema, table.vocab, DATAFUSION)
    context.register_view(quoted(table.name), run_query(context, text))
