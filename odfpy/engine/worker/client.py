"""Client of the Spark engine, as commands use it: requests go to the workspace's worker, which is started on demand.

This module is light: neither Spark nor Java nor Arrow is loaded here.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn, TypeVar

from odfpy.engine.cancellation import CancellationToken, JobProgress, Stage
from odfpy.engine.contract import (
    AnalyzeRequest,
    AnalyzeResponse,
    AnalyzeResponseSuccess,
    JobRequest,
    JobResponseDone,
    PreprocessRequest,
    PreprocessResponseSuccess,
    SqlRequest,
    SqlResponse,
    SqlResponseSuccess,
    TransformRequest,
    TransformResponse,
    TransformResponseInternalError,
    TransformResponseInvalidQuery,
    TransformResponseNeedsHistory,
    TransformResponseSuccess,
)
from odfpy.engine.settings import EngineSettings, SandboxMode
from odfpy.engine.spark.process.java import find_java
from odfpy.engine.spark.process.jvm import JvmDied
from odfpy.engine.tracing import TraceRequest, TraceResponse, TraceResponseSuccess
from odfpy.engine.worker.admin import POLL_SECONDS, SILENCE_SECONDS, greet, stop_engine
from odfpy.engine.worker.job_profile import JobProfile
from odfpy.engine.worker.launch import exit_code, java_log_tail, launch, log_tail, reap, recent_fingerprint
from odfpy.engine.worker.leftovers import remove_output
from odfpy.engine.worker.messages import (
    Answer,
    Breakdown,
    Channel,
    Job,
    Refusal,
    Result,
    Welcome,
)
from odfpy.engine.worker.run_folder import RunFolder
from odfpy.errors import EngineError, EngineUnavailable, MalformedData, SandboxRequired
from odfpy.stages import stage

if TYPE_CHECKING:
    import pyarrow as pa

    from odfpy.dataset.transform import Transform
    from odfpy.engine.row_stream import RowStream

_SANDBOX_HINT: Final = (
    "See docs/sandbox.md; `odf config set engine.sandbox off` turns the sandbox and this warning off."
)

ProgressListener = Callable[[JobProgress], None]
R = TypeVar("R")

_TRY_AGAIN: Final = "Try again; a new engine will be started."
_ATTEMPTS: Final = 3
_LOG: Final = logging.getLogger(__name__)


class SparkEngine:
    """The Spark engine of a workspace, which runs in its worker process.

    Attributes:
        run: the workspace's run folder.
        settings: the settings with which the worker is started.
    """

    name = "spark"

    def __init__(
        self, run_dir: Path, settings: EngineSettings | None = None, on_progress: ProgressListener | None = None
    ) -> None:
        self.run = RunFolder(run_dir)
        self.settings = settings or EngineSettings()
        self._on_progress = on_progress
        self._has_launched = False
        self._sandboxed_only = False
        self._control: CancellationToken | None = None

    def with_cancellation(self, token: CancellationToken) -> SparkEngine:
        """Return the same engine with a token that can cancel its jobs, and is notified of their progress."""
        engine = SparkEngine(self.run.path, self.settings, self._on_progress)
        engine._sandboxed_only, engine._control = self._sandboxed_only, token
        return engine

    def sandboxed_only(self) -> SparkEngine:
        """Return the same engine for untrusted queries: it raises `SandboxRequired` unless it is fully sandboxed."""
        engine = SparkEngine(self.run.path, self.settings, self._on_progress)
        engine._sandboxed_only, engine._control = True, self._control
        return engine

    @property
    def version(self) -> str:
        """Return the engine version that it would record with a transform; known without starting it."""
        from odfpy.engine.spark.process.version import installed_engine_version

        return installed_engine_version()

    def analyze(self, request: AnalyzeRequest) -> AnalyzeResponse:
        """Return the properties of the queries of a transform, without running them.

        Raises:
            EngineUnavailable: the worker does not start, or dies.
            EngineError: the job takes too long.
        """
        return self._ask(request, AnalyzeResponseSuccess)

    def transform(self, request: TransformRequest) -> TransformResponse:
        """Run the queries of a transform over new rows; raises as `analyze` does."""
        return self._ask(request, TransformResponseSuccess, TransformResponseNeedsHistory)

    def sql(self, request: SqlRequest) -> SqlResponse:
        """Run a query over whole datasets; raises as `analyze` does."""
        return self._ask(request, SqlResponseSuccess)

    def stream(self, request: SqlRequest, control: CancellationToken) -> RowStream:
        """Return the rows of a query as they are computed; raises as `analyze` does, and for faults of the query."""
        from odfpy.engine.responses import as_error
        from odfpy.engine.row_stream import Spooled

        def ask() -> None:
            response = self._ask(request, SqlResponseSuccess, control=control)
            if not isinstance(response, SqlResponseSuccess):
                raise as_error(response)

        return Spooled(Path(request.output_path), ask, control)

    def trace(self, request: TraceRequest) -> TraceResponse:
        """Return the input rows from which output rows were computed; raises as `analyze` does."""
        return self._ask(request, TraceResponseSuccess)

    def preprocess(
        self,
        transform: Transform,
        tables: Mapping[str, pa.Table],
        *,
        spool: Path | None = None,  # noqa: ARG002 - the result is mapped into memory anyway
    ) -> pa.Table:
        """Run the queries of an ingest over tables; the rows go to the worker and back as files.

        Args:
            transform: queries of any class whose result is a function of the tables.
            tables: the tables, by the names that the queries use.
            spool: not used.

        Returns:
            The result. Its rows have the order of the input if the queries work row by row, or that of a final ORDER
            BY, or are sorted by all columns. A column that is passed unchanged keeps its own type.

        Raises:
            InvalidQuery, UnsupportedQuery, NondeterministicQuery: as the engine says.
            EngineUnavailable: the worker does not start, or dies.
        """
        from odfpy.engine.responses import as_error
        from odfpy.engine.spark.rows.handover import hand_over, take_back

        with self.run.client_scratch() as folder:
            output = folder / "result"
            request = PreprocessRequest(transform, hand_over(tables, folder), str(output))
            response = self._ask(request, PreprocessResponseSuccess)
            if not isinstance(response, PreprocessResponseSuccess):
                raise as_error(response)
            return take_back(output, response.unchanged, tables)

    def run_job(self, function: str, arguments: str, folder: Path, reads: Iterable[str] = ()) -> str:
        """Run a function of another package in the worker; see `odfpy.engine.jobs`.

        Args:
            function: `module:name`.
            arguments: text that is passed to it.
            folder: folder for the files that it writes.
            reads: files that it reads, besides those in the folder.

        Raises:
            OdfError: the error that the function raised.
            EngineUnavailable: the worker does not start, or dies.
        """
        from odfpy.engine.jobs import result_of
        from odfpy.engine.responses import as_error

        response = self._ask(JobRequest(function, arguments, str(folder), tuple(reads)), JobResponseDone)
        if not isinstance(response, JobResponseDone):
            raise as_error(response)
        return result_of(response)

    # --- One request ---

    def _ask(
        self, job: Job, *success: type[R], control: CancellationToken | None = None
    ) -> R | TransformResponseInvalidQuery | TransformResponseInternalError:
        if control is None and self._control is not None:
            with CancellationToken(
                parent=self._control
            ) as own:  # so that the parent forgets it together with the job, however many jobs there are
                return self._ask(job, *success, control=own)
        with stage("Spark"):
            return self._tried(job, *success, control=control)

    def _tried(
        self, job: Job, *success: type[R], control: CancellationToken | None
    ) -> R | TransformResponseInvalidQuery | TransformResponseInternalError:
        for _ in range(_ATTEMPTS):
            with stage("connect"):
                opened = self._open(control)
            with closing(opened) as channel:  # an interrupted client hangs up, which cancels the job
                if control is not None:
                    control.check()
                    control.on_stop(channel.hang_up)
                answer = self._converse(channel, job, control)
            if isinstance(answer, (TransformResponseInvalidQuery, TransformResponseInternalError)):
                return answer
            if isinstance(answer, success):
                return answer
            if answer is not None:
                nonsense = f"{type(answer).__name__} is not an answer to {type(job).__name__}"
                raise EngineUnavailable(f"Malformed reply from the engine: {nonsense}", hint=self._see_log)
            self._wait_for_end()
        raise EngineUnavailable("The engine repeatedly exits before it accepts the request", hint=self._see_log)

    def _wait_for_end(self) -> None:
        """Wait until a worker that takes no more jobs has ended."""
        pid = self.run.holder()
        deadline = time.monotonic() + self.settings.start_seconds
        while pid is not None and self.run.holder() == pid and time.monotonic() < deadline:
            time.sleep(POLL_SECONDS)

    def _converse(self, channel: Channel, job: Job, control: CancellationToken | None) -> Result | None:
        """Return the answer, or None when the worker ends before it has begun with the job."""
        began: float | None = None
        try:
            channel.send(job)
            while True:
                match self._received(channel):
                    case JobProgress() as progress:
                        if self._on_progress:
                            self._on_progress(progress)
                        if control is not None and control.on_progress is not None:
                            control.on_progress(progress)
                        if progress.stage is Stage.RUNNING:
                            began = began or time.monotonic()
                            self._check_time(time.monotonic() - began)
                    case JobProfile() as profile:
                        profile.add_to_current()
                    case Refusal(message, retry):
                        if not retry:
                            raise EngineUnavailable(f"The engine refuses the request: {message}", hint=self._see_log)
                        return None
                    case Breakdown() as ended:
                        error = ended.raised()
                        hint = " ".join(filter(None, (error.hint, self._see_log)))
                        words = java_log_tail(self.run) if isinstance(error, JvmDied) else ""
                        raise error.with_message(f"{error.message}: {words}" if words else error.message, hint=hint)
                    case None:
                        if control is not None:
                            control.check()
                        self._lost(job, "died in the middle of the job", _TRY_AGAIN)
                    case result:
                        return result
        except TimeoutError:
            self._lost(job, f"did not respond for {SILENCE_SECONDS:.0f} s", "`odf engine stop --force` stops it.")
        except ConnectionError:
            if control is not None:
                control.check()
            self._lost(job, "died in the middle of the job", _TRY_AGAIN)

    def _received(self, channel: Channel) -> Answer | None:
        try:
            answer: Answer | None = channel.receive(Answer)
        except MalformedData as error:
            raise EngineUnavailable(f"Malformed reply from the engine: {error.message}", hint=self._see_log) from error
        return answer

    def _lost(self, job: Job, how: str, hint: str) -> NoReturn:
        reap()
        self.run.sweep_if_abandoned()
        remove_output(job)
        raise EngineUnavailable(f"The engine {how}", hint=f"{hint} {self._see_log}") from None

    def _check_time(self, seconds: float) -> None:
        limit = self.settings.job_seconds
        if limit is not None and seconds > limit:
            raise EngineError(f"The engine took longer than {limit} s; the job has been cancelled")

    @property
    def _see_log(self) -> str:
        return f"The log is {self.run.log}"

    # --- Finding or starting the worker ---

    def _check_confined(self, weakness: str | None = None) -> None:
        """Refuse untrusted queries unless the engine is, or would be, fully sandboxed."""
        is_confined = weakness is None and self.settings.sandbox is not SandboxMode.OFF and not self.settings.is_cluster
        if self._sandboxed_only and not is_confined:
            raise SandboxRequired(
                "This server runs Spark queries only for admins: its Spark engine is not fully sandboxed",
                hint="Use SqlDataFusion, or a token with the scope admin.",
            )

    def _open(self, control: CancellationToken | None) -> Channel:
        self._check_confined()
        self.run.create()
        java = find_java()
        mine = recent_fingerprint(self.settings, java)
        deadline = time.monotonic() + self.settings.start_seconds
        started: int | None = None
        refusals = 0
        while True:
            if control is not None:
                control.check()
            match greet(self.run):
                case (channel, Welcome(theirs, weakness)):
                    if theirs == mine:
                        self._warn(weakness)
                        try:
                            self._check_confined(weakness)
                        except SandboxRequired:
                            channel.close()
                            raise
                        return channel
                    channel.close()  # it runs other code or settings, and has to make room
                    stop_engine(self.run.path)
                    continue
                case (channel, Refusal(message)):
                    channel.close()
                    refusals += 1  # the first may be due to a worker that is just starting
                    if refusals > _ATTEMPTS:
                        raise EngineUnavailable(f"The engine rejected the connection: {message}", hint=self._see_log)
            if started is not None and (code := exit_code(started)) is not None:
                if code:
                    self._not_started(f"it ended with code {code}")
                started = None
            if started is None and self.run.holder() is None:
                started = launch(self.run, self.settings, java)
                self._has_launched = True
            if time.monotonic() > deadline:
                self._not_started(f"it was not there within {self.settings.start_seconds} s")
            time.sleep(POLL_SECONDS)

    def _warn(self, weakness: str | None) -> None:
        """Warn, once per engine, that it is less confined than it should be; the user who started it is told."""
        if weakness and self._has_launched:
            _LOG.warning("The sandbox of the engine is incomplete: %s.\n%s", weakness, _SANDBOX_HINT)
        self._has_launched = False

    def _not_started(self, reason: str) -> NoReturn:
        words = log_tail(self.run)
        raise EngineUnavailable(
            f"The engine could not be started: {reason}" + (f"\n{words}" if words else ""), hint=self._see_log
        )
