"""Spark in this process: starting it, serving requests one by one, cancelling, ending."""

from __future__ import annotations

import gc
import logging
import os
import socketserver
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from odfpy.engine.contract import AnalyzeRequest, JobRequest, PreprocessRequest, SqlRequest, TransformRequest
from odfpy.engine.settings import EngineSettings
from odfpy.engine.spark.plan.failures import cause_of
from odfpy.engine.spark.process.cluster import PAGE, Cluster, find_cluster
from odfpy.engine.spark.process.java import JavaRuntime
from odfpy.engine.spark.process.jvm import Jvm, JvmDied, connect, end, java_command, java_environment, spark_home, spawn
from odfpy.engine.tracing import TraceRequest
from odfpy.errors import EngineUnavailable, OdfError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from odfpy.engine.spark.process.calls import Calls
    from odfpy.engine.worker.messages import Job, Result

_END_SECONDS: Final = 10.0
_DEATH_SECONDS: Final = 1.0
_SETTLE_POLL_SECONDS: Final = 0.02
_HERE: Final = "127.0.0.1"
_YOUNG: Final = 1
_OLD: Final = 2
_JOBS_BETWEEN_FULL_COLLECTIONS: Final = 32


class SparkHost:
    """Spark, started and controlled by this process. It does one job at a time.

    Args of the constructor: `cached` are Java options that use a start-up cache (or make one); if Java does not start
    with them, it is started without.

    Attributes:
        java: the Java runtime it runs on.
        uses_cache: whether Java uses a start-up cache.
        timings: seconds from the beginning of the start to the end of each of its phases.
    """

    def __init__(
        self, settings: EngineSettings, java: JavaRuntime, scratch: Path, log: int, cached: Sequence[str] = ()
    ) -> None:
        self.java = java
        self.uses_cache = False
        self.timings: dict[str, float] = {}
        self._settings = settings
        self._begin = 0.0
        self._scratch = scratch
        self._log = log
        self._cached = tuple(cached)
        self._connection = scratch / "connection"
        self._cluster: Cluster | None = None
        self._jvm: Jvm | None = None
        self._spark: SparkSession | None = None
        self._jobs = 0
        self._operations: dict[type, Callable[[SparkSession, Any], Result]] = {}

    @property
    def java_pid(self) -> int | None:
        """Return the process id of the Java process while it runs."""
        return self._jvm.process.pid if self._jvm else None

    def start(self) -> None:
        """Start Spark; call it from the main thread, since Java ends with the thread that started it.

        Raises:
            EngineUnavailable: it does not start, or its cluster is unavailable or unsuitable.
        """
        if self._settings.is_cluster:
            self._cluster = find_cluster(self._settings)
        self.start_java()
        try:
            self._spark = self._open_session()
        except BaseException:
            self.end(0)
            raise
        self._note("spark")
        gc.freeze()  # objects from the start stay, and need not be traversed after each job

    def start_java(self) -> None:
        """Run the first half of a start: afterwards Java runs, and Spark's classes can be reached."""
        self._begin = time.monotonic()
        deadline = self._begin + self._settings.start_seconds
        cached = self._cached
        process = self._spawn(cached)
        try:
            self._import_operations()  # while Java starts
            self._note("python")
            try:
                self._jvm = connect(process, self._connection, deadline - time.monotonic())
            except JvmDied:
                if not cached:
                    raise
                cached = ()  # the cache may be at fault
                process = self._spawn(cached)
                self._jvm = connect(process, self._connection, deadline - time.monotonic())
        except BaseException:
            end(process, 0)
            raise
        self.uses_cache = bool(cached)
        self._note("java")

    def _note(self, part: str) -> None:
        self.timings[part] = time.monotonic() - self._begin

    def _spawn(self, options: Sequence[str]) -> Any:
        home, cluster = spark_home(), self._cluster
        arguments = () if cluster is None else cluster.arguments
        command = java_command(
            self.java, home, self._scratch, memory=self._settings.memory, options=options, arguments=arguments
        )
        environment = java_environment(
            os.environ, home, self._scratch, self._connection, is_cluster=cluster is not None
        )
        return spawn(command, environment, self._log)

    def _import_operations(self) -> None:
        import pyspark.sql  # noqa: F401

        from odfpy.engine.jobs import run_job

        self._operations = {JobRequest: run_job}
        if self._settings.jobs_only:
            return
        from odfpy.engine.spark.execution import operations, preprocess
        from odfpy.engine.spark.provenance.operation import trace

        self._operations |= {
            AnalyzeRequest: operations.analyze,
            TransformRequest: operations.transform,
            PreprocessRequest: preprocess.preprocess,
            SqlRequest: operations.sql,
            TraceRequest: trace,
        }

    def _open_session(self) -> SparkSession:
        from odfpy.engine.spark.process.session import open_session

        jvm = self._jvm
        if jvm is None:
            raise EngineUnavailable("Spark's Java process has not been started")
        jvm.offer_to_pyspark()
        places = {"spark.sql.warehouse.dir": str(self._scratch / "warehouse")}
        try:
            if self._cluster is not None:
                return self._open_on_cluster(self._cluster, places, jvm)
            host = self._settings.host or _HERE
            places |= {"spark.driver.host": host, "spark.driver.bindAddress": host}
            return open_session(self._settings.master, places, is_cold=not self.uses_cache)
        except OdfError:
            raise
        except Exception as error:
            cause = cause_of(error)
            death = jvm.death(_DEATH_SECONDS)
            raise EngineUnavailable(f"Spark could not start: {f'Java {death}' if death else cause}") from error

    def _open_on_cluster(self, cluster: Cluster, places: dict[str, str], jvm: Jvm) -> SparkSession:
        """Open a session whose executors have been checked; give up on a cluster that does not answer in time."""
        from odfpy.engine.spark.process.cluster_check import check_cluster
        from odfpy.engine.spark.process.session import open_session
        from odfpy.engine.spark.process.shared_files import STORAGE

        places |= cluster.places()
        if self._settings.storage is not None:
            places[STORAGE] = self._settings.storage
        limit, waits_for = self._settings.start_seconds, "to accept the engine"
        gave_up = threading.Event()

        def give_up() -> None:
            gave_up.set()
            jvm.process.kill()

        timer = threading.Timer(max(1.0, self._begin + limit - time.monotonic()), give_up)
        timer.daemon = True
        timer.start()
        try:
            spark = open_session(cluster.master, places, is_cold=not self.uses_cache)
            waits_for = "to run a first task"
            check_cluster(spark, self._scratch)
        except Exception as error:
            if not gave_up.is_set():
                raise
            raise EngineUnavailable(
                f"The cluster at {cluster.master} was asked {waits_for}, and has not done so within {limit} s",
                hint=f"Check that workers have free cores and memory (1 GB if spark.executor.memory is not set), "
                f"and that they reach this machine at {cluster.host or 'its own address'} (engine.host). {PAGE}",
            ) from error
        finally:
            timer.cancel()
        return spark

    # --- Serving ---

    def serve(self, job: Job) -> Result:
        """Run a job; errors are part of the result, and exceptions are bugs of the operation."""
        if self._spark is None:
            raise EngineUnavailable("Spark has not been started")
        from odfpy.engine.spark.process.counting import count_jobs

        count_jobs(self._spark)
        try:
            return self._operations[type(job)](self._spark, job)
        finally:
            with suppress(Exception):  # Java may have died, which the client learns in another way
                count_jobs(self._spark)
            if self._settings.storage is not None:
                self._forget_files()

    def clean_up(self) -> None:
        """Release what a job has left over, once the client has its answer."""
        # Java objects live as long as the Python objects that refer to them. These are small, so Python would free some
        # of them only after hundreds of jobs. Left-overs of a job are young objects; traversing long-lived ones as well
        # takes 20 ms, for which the next job would have to wait.
        gc.collect(_OLD if self._jobs % _JOBS_BETWEEN_FULL_COLLECTIONS == 0 else _YOUNG)
        if self._jobs == 0:
            gc.freeze()  # modules loaded on demand stay, like those of the start
        self._jobs += 1
        if self._spark is not None:
            with suppress(Exception):  # Java may have died, which the client learns in another way
                _calls(self._spark).flush()

    def _forget_files(self) -> None:
        from odfpy.engine.spark.process.shared_files import forget

        if self._spark is not None:
            with suppress(Exception):  # the job has its result; left-over files carry the application's name
                forget(self._spark)

    def cancel(self) -> None:
        """Cancel the current work of Spark; called from another thread than the one that serves."""
        if self._spark is not None:
            self._spark.sparkContext.cancelAllJobs()
            _calls(self._spark).cancel()

    def settles(self, seconds: float) -> bool:
        """Return whether all tasks end within some seconds; True if Spark has died."""
        deadline = time.monotonic() + seconds
        with suppress(Exception):
            while self._running_tasks() > 0:
                if time.monotonic() > deadline:
                    return False
                time.sleep(_SETTLE_POLL_SECONDS)
        return True

    def _running_tasks(self) -> int:
        if self._spark is None:
            return 0
        # The status tracker learns of running tasks only from time to time; the scheduler knows at once.
        scheduler = self._spark.sparkContext._jsc.sc().taskScheduler()  # noqa: SLF001
        by_executor = scheduler.runningTasksByExecutors().values().iterator()
        count = int(_calls(self._spark).is_running)
        while by_executor.hasNext():
            count += by_executor.next()
        return count

    def tasks(self) -> tuple[int, int]:
        """Return how many tasks of Spark's current stages are done, and how many there are; from any thread."""
        if self._spark is None:
            return 0, 0
        tracker = self._spark.sparkContext.statusTracker()
        stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        known = [stage for stage in stages if stage is not None]
        return sum(stage.numCompletedTasks for stage in known), sum(stage.numTasks for stage in known)

    def death(self, *, suspected: bool = False) -> str | None:
        """Return how the Java process ended, or None while it lives; a suspected death is awaited."""
        return self._jvm.death(_DEATH_SECONDS if suspected else 0) if self._jvm else None

    def end(self, wait_seconds: float = _END_SECONDS) -> None:
        """Stop Spark."""
        if self._jvm is not None:
            logging.disable()  # PySpark would complain that Java is gone
            socketserver.BaseServer.handle_error = _ignore_error  # type: ignore[assignment, method-assign]
            self._jvm.end(wait_seconds)
            self._spark = None

    def kill(self) -> None:
        """Kill Spark at once, whatever it is doing."""
        if self._jvm is not None:
            self._jvm.process.kill()
            self._jvm.process.wait()


def _calls(spark: SparkSession) -> Calls:
    from odfpy.engine.spark.process.calls import calls_of

    return calls_of(spark._jvm)  # noqa: SLF001


def _ignore_error(_server: object, _request: object, _address: object) -> None:
    """Suppress the message of PySpark's accumulator server that Java has gone."""
