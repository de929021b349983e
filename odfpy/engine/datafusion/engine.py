"""DataFusion in process: derivative datasets row by row, preprocessing of ingests, ad hoc queries.

`engine: datafusion` names the dialect and the meaning that the reference implementation gives to a query, and its
datasets verify by replay: the operation type is what the query selects under its name, else every row is appended.
(`engine: spark` passes it through; see the decision record "op in row-by-row queries".)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from odfpy.data.arrow import plain_schema
from odfpy.dataset.transform import TransformSql
from odfpy.engine.contract import (
    AnalyzeRequest,
    AnalyzeResponse,
    SqlRequest,
    SqlResponse,
    SqlResponseSuccess,
    TransformRequest,
    TransformResponse,
)
from odfpy.engine.control import Control
from odfpy.engine.datafusion.ad_hoc import DataFusionRows
from odfpy.engine.datafusion.apart import Apart, ForkServer
from odfpy.engine.datafusion.failures import datafusion_errors
from odfpy.engine.datafusion.plan import check_is_query, check_total_order
from odfpy.engine.datafusion.session import (
    name_rows,
    new_session,
    rows_in_order,
)
from odfpy.engine.datafusion.trace import trace
from odfpy.engine.datafusion.transform import analyze, query_steps, transform
from odfpy.engine.ipc import even_batches, map_stream, write_stream
from odfpy.engine.responses import answered
from odfpy.engine.row_stream import Beside, RowStream
from odfpy.engine.source_text import SourceText
from odfpy.engine.tracing import TraceRequest, TraceResponse
from odfpy.errors import InvalidQuery

if TYPE_CHECKING:
    from datafusion import DataFrame

ENGINE_RELEASE: Final = 2
"""Counts up whenever this engine gives other results for the same query, inputs and DataFusion."""


@dataclass(frozen=True, slots=True)
class DataFusionEngine:
    """Runs SQL with DataFusion in this process.

    Attributes:
        apart: where ad hoc queries run instead, if not here.
    """

    apart: ForkServer | None = None
    name: str = "datafusion"

    @property
    def version(self) -> str:
        """What results depend on besides query and inputs, as recorded with every transform."""
        return f"odfpy-datafusion/{ENGINE_RELEASE} datafusion/{version('datafusion')}"

    def analyze(self, request: AnalyzeRequest) -> AnalyzeResponse:
        """What the queries of a transform are, without running them."""
        return answered(lambda: analyze(request))

    def transform(self, request: TransformRequest) -> TransformResponse:
        """Run the queries of a transform over the new rows of its inputs and write the slice."""
        return answered(lambda: transform(request, self.version))

    def trace(self, request: TraceRequest) -> TraceResponse:
        """Which rows of the inputs rows of an output stand for."""
        return answered(lambda: trace(request))

    def sql(self, request: SqlRequest) -> SqlResponse:
        """Run a query of any class over whole datasets and write its rows as an Arrow IPC stream."""
        return answered(lambda: _sql(request))

    def stream(self, request: SqlRequest, control: Control) -> RowStream:
        """The rows of a query as they are made, by a thread beside this one or a process apart.

        Raises:
            InvalidQuery: the query is at fault; also while the rows are read.
            EngineError: its process has taken too much memory; also while the rows are read.
        """
        if self.apart is not None and request.limit != 0:  # to plan it alone takes neither time nor memory
            return Apart(self.apart, request, control)
        rows = DataFusionRows(request)
        return Beside(rows.schema, rows.__iter__, control)

    def preprocess(
        self, transform: TransformSql, tables: Mapping[str, pa.Table], *, spool: Path | None = None
    ) -> pa.Table:
        """The result of a transform of any class over tables, in the order of their rows if row by row.

        Nullability is what DataFusion says of the result, as the schema of a dataset is made from it.

        Args:
            transform: the queries.
            tables: by the names that the queries give them.
            spool: a new file for the rows of the result, which are mapped into memory: then what is row by row takes
                the memory of a few batches; else the result is held in memory.

        Raises:
            InvalidQuery: a query cannot be run; the message names the step.
            NondeterministicQuery: its result would not be a function of the tables.
            UnsupportedQuery: temporal tables.
        """
        context = new_session(deterministic=True)
        for name, table in tables.items():
            # How a file was read must not show in a sum of floating point numbers, which depends on batches.
            name_rows(context, name, table.schema, list(even_batches([table])))
        steps = []
        for frame, source in query_steps(context, transform):
            with datafusion_errors(source):
                check_is_query(frame.logical_plan(), source)
                check_total_order(frame.logical_plan(), source)
            steps.append((frame, source))
        frame, source = steps[-1]
        try:
            with datafusion_errors(source):
                schema = plain_schema(frame.schema())
                if spool is None:
                    return pa.Table.from_batches(rows_in_order(frame), schema)
                write_stream(str(spool), schema, rows_in_order(frame))
                return map_stream(str(spool))
        except InvalidQuery:
            _blame_first(steps)
            raise


def _blame_first(steps: Iterable[tuple[DataFrame, SourceText]]) -> None:
    """Raise the error of the first step that cannot be computed: views are run with what is built on them."""
    for frame, source in steps:
        with datafusion_errors(source):
            for _ in rows_in_order(frame):
                pass


# --- Ad hoc ----------------------------------------------------------------------------------------------------------


def _sql(request: SqlRequest) -> SqlResponseSuccess:
    rows = DataFusionRows(request)
    return SqlResponseSuccess(write_stream(request.output_path, rows.schema, rows))
