"""Registry of engines, by the name that queries give them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from odfpy.engine.settings import EngineSettings
from odfpy.errors import EngineNotFound, did_you_mean

if TYPE_CHECKING:
    import pyarrow as pa

    from odfpy.dataset.transform import Transform
    from odfpy.engine.cancellation import CancellationToken, JobProgress
    from odfpy.engine.contract import (
        AnalyzeRequest,
        AnalyzeResponse,
        SqlRequest,
        SqlResponse,
        TransformRequest,
        TransformResponse,
    )
    from odfpy.engine.row_stream import RowStream
    from odfpy.engine.scans import ScanRequest


class Engine(Protocol):
    """Interface of engines. A user's mistake is a response; other failures are responses or raise `EngineError`."""

    @property
    def name(self) -> str:
        """Return its name in queries."""

    @property
    def version(self) -> str:
        """Return everything that results depend on besides query and inputs, as recorded with every transform."""

    def analyze(self, request: AnalyzeRequest) -> AnalyzeResponse:
        """Return the properties of the queries of a transform, without running them.

        Raises:
            EngineUnavailable: the engine cannot be reached.
        """

    def transform(self, request: TransformRequest) -> TransformResponse:
        """Run the queries of a transform over the new rows of its inputs.

        Raises:
            EngineUnavailable: the engine cannot be reached.
        """

    def sql(self, request: SqlRequest) -> SqlResponse:
        """Run a query over whole datasets.

        Raises:
            EngineUnavailable: the engine cannot be reached.
        """

    def stream(self, request: SqlRequest, control: CancellationToken) -> RowStream:
        """Return the rows of a query over whole datasets, as they are computed.

        Raises:
            InvalidQuery: the query is at fault; may also be raised while the rows are read.
            EngineUnavailable: the engine cannot be reached.
            QueryCancelled, QueryTimedOut: the token has been stopped.
        """

    def with_cancellation(self, token: CancellationToken) -> Engine:
        """Return the same engine with a token that can cancel its work, and is notified of its progress.

        Args:
            token: the token of the caller; once it is stopped, the engine raises the reason.
        """

    def preprocess(
        self, transform: Transform, tables: Mapping[str, pa.Table], *, spool: Path | None = None
    ) -> pa.Table:
        """Run the queries of an ingest over what was read.

        Args:
            transform: the queries.
            tables: the tables, by the names that the queries use.
            spool: a new file for the result rows, which are then mapped into memory; without one, they are held in
                memory.

        Raises:
            InvalidQuery, UnsupportedQuery, NondeterministicQuery: a query is at fault; the message names the step.
            EngineUnavailable: the engine cannot be reached.
        """


class EngineRegistry:
    """Engines by name; each is created on first use."""

    def __init__(self, factories: Mapping[str, Callable[[], Engine]]) -> None:
        self._factories = dict(factories)
        self._engines: dict[str, Engine] = {}
        self._listener: Callable[[JobProgress], None] | None = None
        self._isolated_memory: int | None = None

    @classmethod
    def standard(cls, run_dir: Path, settings: EngineSettings | None = None) -> EngineRegistry:
        """Return the engines of this release.

        Args:
            run_dir: the workspace's run folder.
            settings: settings of the Spark engine; DataFusion's processes use its memory and time, too.
        """
        chosen = settings or EngineSettings()
        registry = cls({"datafusion": partial(_datafusion, chosen.most_memory, chosen.job_seconds)})

        def spark() -> Engine:
            from odfpy.engine.worker.client import SparkEngine

            return SparkEngine(run_dir, settings, registry._report)

        registry._factories = {"spark": spark, **registry._factories}
        return registry

    @contextmanager
    def reporting_to(self, listener: Callable[[JobProgress], None]) -> Iterator[None]:
        """Report the progress of jobs that have no `CancellationToken` to a listener."""
        before, self._listener = self._listener, listener
        try:
            yield
        finally:
            self._listener = before

    def _report(self, progress: JobProgress) -> None:
        if self._listener is not None:
            self._listener(progress)

    def with_limits(self, memory: int, seconds: float) -> EngineRegistry:
        """Return the same engines for servers, with lower limits for DataFusion.

        Args:
            memory: bytes that each of its processes may use.
            seconds: how long one may work on an ingest; queries have their own time.
        """
        datafusion = partial(_datafusion, memory, seconds)

        registry = EngineRegistry({**{name: partial(self.get, name) for name in self.names}, "datafusion": datafusion})
        registry._isolated_memory = memory
        return registry

    def scan(self, request: ScanRequest, control: CancellationToken) -> RowStream | None:
        """Return the rows of a scan in a separate process; None where this process may read them itself.

        Raises:
            OdfError: it was stopped, or a slice cannot be read.
        """
        if self._isolated_memory is None:
            return None
        from odfpy.engine.datafusion.isolated import IsolatedQuery, fork_server

        return IsolatedQuery(fork_server(self._isolated_memory), request, control)

    def sandboxed_only(self) -> EngineRegistry:
        """Return the same engines for untrusted queries: Spark answers them only when it is fully sandboxed."""

        def spark() -> Engine:
            from odfpy.engine.worker.client import SparkEngine

            engine = self.get("spark")
            return engine.sandboxed_only() if isinstance(engine, SparkEngine) else engine

        registry = EngineRegistry({**{name: partial(self.get, name) for name in self.names}, "spark": spark})
        registry._isolated_memory = self._isolated_memory
        return registry

    def with_cancellation(self, token: CancellationToken) -> EngineRegistry:
        """Return the same engines with a token that can cancel their work, and is notified of its progress.

        Args:
            token: the token of a request; several requests may run at once, each with its own.
        """

        def bound(name: str) -> Engine:
            return self.get(name).with_cancellation(token)

        registry = EngineRegistry({name: partial(bound, name) for name in self.names})
        registry._isolated_memory = self._isolated_memory
        return registry

    def expect(self, name: str) -> None:
        """Create an engine that will be needed soon, if it exists: its start takes a while."""
        if name.lower() in self._factories:
            self.get(name)

    @property
    def names(self) -> list[str]:
        """Return the names of all engines."""
        return sorted(self._factories)

    def get(self, name: str) -> Engine:
        """Return the engine with a name; case does not matter.

        Raises:
            EngineNotFound: there is none; with a suggestion.
        """
        key = name.lower()
        if key not in self._factories:
            known = f"Engines of this release: {', '.join(self.names)}."
            raise EngineNotFound(f"No engine is called {name!r}", hint=did_you_mean(name, self.names, otherwise=known))
        if key not in self._engines:
            self._engines[key] = self._factories[key]()
        return self._engines[key]


def _datafusion(memory: int | None, seconds: float | None) -> Engine:
    from odfpy.engine.datafusion.engine import DataFusionEngine
    from odfpy.engine.datafusion.isolated import fork_server
    from odfpy.sandbox.limits import most_memory

    processes = fork_server(memory or most_memory())
    processes.begin()  # whoever requests an engine will need it in a moment
    return DataFusionEngine(processes, seconds)
