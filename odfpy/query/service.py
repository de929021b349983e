"""One service answers questions, whoever asks: command line, Python, REST, Flight SQL.

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
from odfpy.query.plan import QueryPlan, as_lines, only_schema, plan
from odfpy.query.query import Query
from odfpy.query.resolver import DatasetResolver

if TYPE_CHECKING:
    from odfpy.engine.row_stream import RowStream

__all__ = ["Answer", "CancellationToken", "PreparedQuery", "Query", "QueryInput", "QueryService"]


class QueryService:
    """Answers queries over the datasets of a resolver; from several threads, if need be.

    Attributes:
        resolver: the datasets.
        engines: who answers what needs an engine.
    """

    def __init__(self, resolver: DatasetResolver, engines: EngineRegistry) -> None:
        self.resolver = resolver
        self.engines = engines

    def run(self, query: Query, control: CancellationToken | None = None) -> Answer:
        """Begin to answer; use it as a context manager. Its columns are known when this comes back.

        Args:
            query: the question.
            control: stops it from elsewhere, also while this still waits; `Answer.cancel` does the same afterwards.

        Raises:
            UnknownTable: a name is that of no dataset; with a suggestion.
            InvalidQuery, WrongProjection: the query is at fault; the message shows the place.
            NotYetThen, BlockOfAnother, NotFound: a dataset has no such moment.
            QueryCancelled, QueryTimedOut: it has been stopped.
            EngineUnavailable: the engine cannot be reached.
        """
        with ExitStack() as stack:
            control = stack.enter_context(CancellationToken(query.timeout, parent=control))
            found = plan(self.resolver, query)
            rows = self._explanation(found, control) if found.is_explained else self._rows(found, control, stack)
            stack.callback(rows.close)
            return Answer(rows, found.inputs, found.path, control, stack.pop_all())

    def prepare(self, query: Query) -> PreparedQuery:
        """Return what a query would give; it is planned and not run. Parameters without a value are null.

        Raises as `run` does.
        """
        found = plan(self.resolver, only_schema(query), is_bound=False)
        with ExitStack() as stack:
            control = stack.enter_context(CancellationToken(query.timeout))
            rows = self._explanation(found, control) if found.is_explained else self._rows(found, control, stack)
            stack.callback(rows.close)
            return PreparedQuery(rows.schema, found.inputs, found.num_parameters)

    def explain(self, query: Query) -> str:
        """Return how a query is answered, for people: by what way, from which slices, and which are not opened.

        Raises as `run` does, as far as that shows without running it.
        """
        return "\n".join(plan(self.resolver, query).explained())

    def _rows(self, found: QueryPlan, control: CancellationToken, stack: ExitStack) -> RowStream:
        query, simple = found.query, found.simple
        if found.path == "chain" and simple is not None:
            schema, row = totals(simple, found.tables[0][1])
            return GeneratedRows(schema, lambda: iter([row]), query, control)
        if found.path == "slices" and simple is not None and found.columns is not None:
            return self._from_slices(found, control)
        scratch = stack.enter_context(self.resolver.scratch())
        request = SqlRequest(
            query=found.text,
            tables=found.sql_tables(),
            output_path=str(scratch / "result"),
            limit=query.limit,
            skip=query.skip,
            max_bytes=query.max_bytes,
            shown=found.shown,
        )
        return self.engines.get(found.path).stream(request, control)

    @staticmethod
    def _explanation(found: QueryPlan, control: CancellationToken) -> RowStream:
        import pyarrow as pa

        schema = pa.schema([pa.field("plan", pa.string())])
        return GeneratedRows(schema, lambda: as_lines(found.explained()), found.query, control)

    def _from_slices(self, found: QueryPlan, control: CancellationToken) -> RowStream:
        simple, schema, query, (only,) = found.simple, found.columns, found.query, found.scans
        assert simple is not None and schema is not None  # noqa: S101, PT018  that is what the path says
        wanted = simple.rows(only.cut.num_rows, query.skip, query.limit)
        request = rows_of_slices(only, simple, schema, wanted, query.max_bytes)
        return self.engines.scan(request, control) or GeneratedRows(
            schema, lambda: scan(request), query, control, is_cut=True
        )
