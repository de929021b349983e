"""DataFusion: row-by-row derivatives, preprocessing of ingests, ad hoc queries; each runs in a separate process.

`engine: datafusion` selects the dialect and semantics of the reference implementation, whose datasets verify by replay:
the operation type is the column of that name that the query selects, else every row is appended. (`engine: spark`
passes it through; see the decision record "op in row-by-row queries".)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from odfpy.dataset.transform import TransformSql
from odfpy.engine.cancellation import CancellationToken
from odfpy.engine.contract import (
    AnalyzeRequest,
    AnalyzeResponse,
    PreprocessRequest,
    PreprocessResponseSuccess,
    PreprocessTable,
    SqlRequest,
    SqlResponse,
    TransformRequest,
    TransformResponse,
    TransformResponseInternalError,
    TransformResponseInvalidQuery,
)
from odfpy.engine.datafusion.isolated import PLANNING_SECONDS, ForkServer, IsolatedQuery, ask, fork_server
from odfpy.engine.datafusion.version import engine_version
from odfpy.engine.responses import as_error
from odfpy.engine.row_stream import RowStream
from odfpy.engine.tracing import TraceRequest, TraceResponse
from odfpy.engine.worker.messages import Job, Result
from odfpy.errors import EngineError
from odfpy.sandbox.limits import most_memory

if TYPE_CHECKING:
    import pyarrow as pa


def _default() -> ForkServer:
    return fork_server(most_memory())


@dataclass(frozen=True, slots=True)
class DataFusionEngine:
    """The DataFusion engine; each request runs in a process of its own.

    Attributes:
        processes: source of the processes; by default ones that may use most of the machine's memory.
        seconds: maximum seconds of work other than an ad hoc query, which has its own limit; None for no limit.
        control: the token of the work that it is part of, None for nothing.
    """

    processes: ForkServer = field(default_factory=_default)
    seconds: float | None = None
    name: str = "datafusion"
    control: CancellationToken | None = None

    def with_cancellation(self, token: CancellationToken) -> DataFusionEngine:
        """Return the same engine with a token that cancels its work."""
        return replace(self, control=token)

    @property
    def version(self) -> str:
        """The version of everything that results depend on besides query and inputs, as recorded with transforms."""
        return engine_version()

    def analyze(self, request: AnalyzeRequest) -> AnalyzeResponse:
        """Return the analysis of a transform's queries, without running them."""
        return self._ask(request, is_planning=True)  # type: ignore[return-value]

    def transform(self, request: TransformRequest) -> TransformResponse:
        """Run the queries of a transform over the new rows of its inputs and write the slice."""
        return self._ask(request)  # type: ignore[return-value]

    def trace(self, request: TraceRequest) -> TraceResponse:
        """Return the input rows that output rows are derived from."""
        return self._ask(request)  # type: ignore[return-value]

    def sql(self, request: SqlRequest) -> SqlResponse:
        """Run a query of any class over whole datasets and write its rows as an Arrow IPC stream."""
        return self._ask(request)  # type: ignore[return-value]

    def stream(self, request: SqlRequest, control: CancellationToken) -> RowStream:
        """Return the rows of a query as they are made.

        Raises:
            InvalidQuery: the query is at fault; also while the rows are read.
            QueryEnded: its process used too much memory, or crashed; also raised while the rows are read.
        """
        return IsolatedQuery(self.processes, replace(request, output_path=""), control)

    def preprocess(
        self, transform: TransformSql, tables: Mapping[str, pa.Table], *, spool: Path | None = None
    ) -> pa.Table:
        """Return the result of a transform of any class over tables, in the order of their rows if row by row.

        The rows go to the process and back as files.

        Args:
            transform: the queries.
            tables: tables by their names in the queries.
            spool: a new file for the rows of the result, in a folder that has room for those of the tables, too; by
                default it is one of the system's for temporary files.

        Returns:
            The result, mapped into memory.

        Raises:
            InvalidQuery: a query cannot be run; the message names the step.
            NondeterministicQuery: its result would not be a function of the tables.
            UnsupportedQuery: temporal tables.
            QueryEnded: its process used too much memory, or crashed.
        """
        from odfpy.engine.ipc import map_stream

        with _place_of(spool) as place:
            handed = []
            try:
                for number, (name, table) in enumerate(tables.items()):
                    path = place.with_name(f"{place.name}.{number}")
                    _hand_over(name, table, path)
                    handed.append(PreprocessTable(name, str(path)))
                request = PreprocessRequest(transform, tuple(handed), str(place))
                response = self._ask(request, is_planning=not any(table.num_rows for table in tables.values()))
            finally:
                for handed_table in handed:
                    Path(handed_table.data_path).unlink(missing_ok=True)
            if not isinstance(response, PreprocessResponseSuccess):
                assert isinstance(response, TransformResponseInvalidQuery | TransformResponseInternalError)  # noqa: S101
                raise as_error(response)
            return map_stream(str(place))

    def _ask(self, request: Job, *, is_planning: bool = False) -> Result:
        with CancellationToken(PLANNING_SECONDS if is_planning else self.seconds, parent=self.control) as control:
            return ask(self.processes, request, control, is_planning=is_planning)


@contextmanager
def _place_of(spool: Path | None) -> Iterator[Path]:
    if spool is not None:
        yield spool.absolute()
        return
    with TemporaryDirectory(prefix="odf-") as folder:
        yield Path(folder) / "result"


def _hand_over(name: str, table: pa.Table, path: Path) -> None:
    import pyarrow as pa

    from odfpy.engine.ipc import even_batches

    try:
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
            # How a file was read must not show in a sum of floating point numbers, which depends on batches.
            for batch in even_batches([table]):
                writer.write_batch(batch)
    except OSError as error:
        path.unlink(missing_ok=True)
        raise EngineError(f"The rows of `{name}` cannot be handed to the engine: {error}") from error
