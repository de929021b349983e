"""The query service: runs SQL over datasets for the command line, Python, REST and Flight SQL alike.

Callers differ in their resolver, which determines the visible datasets: `odfpy.serving.callers.resolver` applies the
permissions of a user.

with workspace.queries.service.run(Query("select count(*) from rates")) as answer:
    for batch in answer: ...
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

from odfpy.engine.cancellation import CancellationToken
from odfpy.engine.registry import EngineRegistry
from odfpy.engine.scans import scan
from odfpy.engine.sql.ad_hoc import SqlRequest
from odfpy.query.answer import Answer, PreparedQuery, QueryInput
from odfpy.query.generated_rows import GeneratedRows, rows_of_slices, totals
from odfpy.query.plan import QueryPlan, lines_as_rows, plan, schema_only
from odfpy.query.query import Query
from odfpy.query.resolver import DatasetResolver

if TYPE_CHECKING:
    from odfpy.engine.row_stream import RowStream

__all__ = ["Answer", "CancellationToken", "PreparedQuery", "Query", "QueryInput", "QueryService"]


class QueryService:
    """Answers queries over the datasets of a resolver; several threads may use it.

    Attributes:
        resolver: looks up the datasets.
        engines: registry of engines, for queries that need one.
    """

    def __init__(self, resolver: DatasetResolver, engines: EngineRegistry) -> None:
        self.resolver = resolver
        self.engines = engines

    def run(self, query: Query, control: CancellationToken | None = None) -> Answer:
        """Start a query and return its answer, a context manager whose schema is available at once.

        Args:
            query: the query.
            control: cancels the query from another thread, also before this returns; `Answer.cancel` does so later.

        Raises:
            UnknownTable: a name is not that of a dataset; the hint suggests one.
            InvalidQuery, WrongProjection: the query is invalid; the message shows the position.
            NotYetThen, BlockOfAnother, NotFound: a dataset has no such point in time or block.
            QueryCancelled, QueryTimedOut: the query was stopped.
            EngineUnavailable: the engine cannot be reached.
        """
        with ExitStack() as stack:
            control = stack.enter_context(CancellationToken(query.timeout, parent=control))
            planned = plan(self.resolver, query)
            rows = self._explanation(planned, control) if planned.is_explained else self._rows(planned, control, stack)
            stack.callback(rows.close)
            return Answer(rows, planned.inputs, planned.path, control, stack.pop_all())

    def prepare(self, query: Query) -> PreparedQuery:
        """Return schema, inputs and parameters of a query without running it. Parameters without a value are null.

        Raises as `run` does.
        """
        planned = plan(self.resolver, schema_only(query), is_bound=False)
        with ExitStack() as stack:
            control = stack.enter_context(CancellationToken(query.timeout))
            rows = self._explanation(planned, control) if planned.is_explained else self._rows(planned, control, stack)
            stack.callback(rows.close)
            return PreparedQuery(rows.schema, planned.inputs, planned.num_parameters)

    def explain(self, query: Query) -> str:
        """Return an explanation of the answer's path, and of the slices that are read and pruned.

        Raises as `run`, except for errors that only execution detects.
        """
        return "\n".join(plan(self.resolver, query).explained())

    def _rows(self, planned: QueryPlan, control: CancellationToken, stack: ExitStack) -> RowStream:
        query, simple = planned.query, planned.simple
        if planned.path == "chain" and simple is not None:
            schema, row = totals(simple, planned.tables[0][1])
            return GeneratedRows(schema, lambda: iter([row]), query, control)
        if planned.path == "slices" and simple is not None and planned.columns is not None:
            return self._from_slices(planned, control)
        scratch = stack.enter_context(self.resolver.scratch())
        request = SqlRequest(
            query=planned.text,
            tables=planned.sql_tables(),
            output_path=str(scratch / "result"),
            limit=query.limit,
            skip=query.skip,
            max_bytes=query.max_bytes,
            shown=planned.shown,
        )
        return self.engines.get(planned.path).stream(request, control)

    @staticmethod
    def _explanation(planned: QueryPlan, control: CancellationToken) -> RowStream:
        import pyarrow as pa

        schema = pa.schema([pa.field("plan", pa.string())])
        return GeneratedRows(schema, lambda: lines_as_rows(planned.explained()), planned.query, control)

    def _from_slices(self, planned: QueryPlan, control: CancellationToken) -> RowStream:
        simple, schema, query, (scanned,) = planned.simple, planned.columns, planned.query, planned.scans
        assert simple is not None and schema is not None  # noqa: S101, PT018  that is what the path says
        rows = simple.rows(scanned.cut.num_rows, query.skip, query.limit)
        request = rows_of_slices(scanned, simple, schema, rows, query.max_bytes)
        return self.engines.scan(request, control) or GeneratedRows(
            schema, lambda: scan(request), query, control, is_cut=True
        )
