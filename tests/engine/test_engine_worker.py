"""The Spark engine as a process: started on demand, shared, ended, killed. With the real thing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.chains.workspaces import copied, derivative, feed, root, workspace_with
from support.engine.session import MEMORY

from odfpy.automation.history import last_runs
from odfpy.chain.encoding import load_snapshots
from odfpy.coordinator.schedules.file import save_schedule
from odfpy.coordinator.schedules.schedule import DatasetSchedule, Trigger
from odfpy.data.duration import Duration
from odfpy.dataset.transform import TransformSql
from odfpy.engine.cancellation import CancellationToken, JobProgress, Stage
from odfpy.engine.contract import (
    AnalyzeResponseSuccess,
    SqlRequest,
    SqlResponseSuccess,
    TransformRequest,
    TransformResponseSuccess,
)
from odfpy.engine.ipc import map_stream
from odfpy.engine.settings import EngineSettings
from odfpy.engine.tracing import WANTED, WEIGHT, TraceRequest, TraceResponseSuccess
from odfpy.engine.worker.admin import engine_status, stop_engine
from odfpy.engine.worker.client import SparkEngine
from odfpy.engine.worker.training import training_jobs
from odfpy.errors import EngineError, EngineUnavailable, InvalidQuery, QueryCancelled, ResultTooLarge
from odfpy.stages import profiling

pytestmark = pytest.mark.spark

REPOSITORY = Path(__file__).resolve().parents[2]
SETTINGS = EngineSettings(memory=MEMORY, master="local[2]")
PATIENCE = 300.0

CLIENT = """
import sys
from dataclasses import replace
from pathlib import Path
from odfpy.engine.worker.client import SparkEngine
from odfpy.engine.contract import SqlRequest
from odfpy.engine.settings import EngineSettings
run, query, output, memory = sys.argv[1:]
engine = SparkEngine(Path(run), EngineSettings(memory=memory, master="local[2]"))
print(engine.sql(SqlRequest(query, (), output)), flush=True)
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A workspace's folder for what runs, whose engine is ended when the tests are done."""
    path = tmp_path_factory.mktemp("workspace") / ".odf" / "run"
    yield path
    stop_engine(path, force=True)


@pytest.fixture
def engine(run: Path) -> SparkEngine:
    return SparkEngine(run, SETTINGS)


def eventually(holds: Callable[[], object]) -> None:
    """Wait for what happens in another process."""
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.02)


def is_gone(pid: int) -> bool:
    """Whether a process has ended, also when nobody has asked for its exit code yet."""
    try:
        return ") Z " in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return True


def task_seconds(java: int) -> float:
    """Processor time of Spark's tasks in a Java process; earlier, a cancelled task would not even begin."""
    ticks = 0
    for thread in Path(f"/proc/{java}/task").iterdir():
        with suppress(OSError):  # threads come and go
            name, _, numbers = (thread / "stat").read_text().rpartition(") ")
            if "(Executor task" in name:
                ticks += int(numbers.split()[11])
    return ticks / os.sysconf("SC_CLK_TCK")


def status_of(engine: SparkEngine):
    status = engine_status(engine.run.path)
    assert status is not None, "no engine is running"
    return status


def query(text: str, folder: Path) -> SqlRequest:
    return SqlRequest(text, (), str(folder / "result"))


def endless(folder: Path) -> SqlRequest:
    """A query that takes longer than anybody waits over its only row, where Spark does not look for cancellation."""
    steps = "aggregate(sequence(1, n), 0L, (s, i) -> s + aggregate(sequence(1, n), i, (t, j) -> (t + j) % 7))"
    return query(f"SELECT {steps} AS s FROM (SELECT explode(array(1000000)) AS n)", folder)


def lengthy(folder: Path) -> SqlRequest:
    """A query of so many short tasks that it takes minutes, but no task does."""
    numbers = "SELECT explode(sequence(1, 100000)) AS n"
    return query(f"SELECT sum(n) AS s FROM (SELECT /*+ REPARTITION(50000) */ n FROM ({numbers}))", folder)


def client_process(run: Path, request: SqlRequest, environment: dict[str, str] | None = None) -> subprocess.Popen[str]:
    """A client with the settings of the tests' own, perhaps in another environment."""
    return subprocess.Popen(
        [sys.executable, "-c", CLIENT, str(run), request.query, request.output_path, MEMORY],
        cwd=REPOSITORY, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def failure_of(engine: SparkEngine, request: SqlRequest, meanwhile: Callable[[], None]) -> EngineError:
    """The error of a request that something happens to once it is being worked at."""
    errors: list[EngineError] = []

    def ask() -> None:
        try:
            engine.sql(request)
        except EngineError as error:
            errors.append(error)

    asking = threading.Thread(target=ask)
    asking.start()
    eventually(lambda: (status := engine_status(engine.run.path)) and status.busy)
    meanwhile()
    asking.join(PATIENCE)
    assert errors
    return errors[0]


def test_two_clients_at_once_start_one_engine_without_path_and_java_home(run: Path, tmp_path: Path):
    home = {"HOME": str(tmp_path), "XDG_CACHE_HOME": os.environ["XDG_CACHE_HOME"]}
    clients = [client_process(run, query("SELECT 1 AS one", tmp_path / str(n)), home) for n in range(2)]
    for client in clients:
        (tmp_path / str(clients.index(client))).mkdir()
    for client in clients:
        output, errors = client.communicate(timeout=PATIENCE)
        assert output.strip() == "SqlResponseSuccess(num_rows=1)", errors
    assert (run / "engine.log").read_text().count(": ready after ") == 1
    status = engine_status(run)
    assert status is not None
    assert (status.jobs_done, status.ready, status.busy) == (2, True, False)


def test_rows_of_an_ingest_go_to_the_engine_and_back(engine: SparkEngine):
    rows = pa.table({"u": pa.array([3, 1, 2], pa.uint64()), "v": ["c", "a", "b"]})
    transform = TransformSql("spark", query="select u, upper(v) as v from input where u > 1")
    made = engine.preprocess(transform, {"input": rows})
    assert made.equals(pa.table({"u": pa.array([3, 2], pa.uint64()), "v": ["C", "B"]}))
    with pytest.raises(InvalidQuery, match="nope"):
        engine.preprocess(TransformSql("spark", query="select nope from input"), {"input": rows})
    assert not list(engine.run.path.glob("clients/*"))


def test_it_serves_every_kind_of_request_and_stays_warm(engine: SparkEngine, tmp_path: Path):
    analyze, transform, sql = training_jobs(tmp_path)
    engine.sql(sql)
    before = status_of(engine)
    assert isinstance(engine.analyze(analyze), AnalyzeResponseSuccess)
    answer = engine.transform(transform)
    assert isinstance(answer, TransformResponseSuccess)
    assert traced(engine, transform, tmp_path) == answer.slices[0].offset_interval.end + 1
    assert answer.engine_version == engine.version == before.engine_version
    assert isinstance(engine.sql(sql), SqlResponseSuccess)
    after = status_of(engine)
    assert (after.pid, after.java_pid) == (before.pid, before.java_pid)
    assert after.jobs_done == before.jobs_done + 4
    assert after.memory_bytes > 100 << 20


def traced(engine: SparkEngine, made: TransformRequest, folder: Path) -> int:
    """How many rows the engine knows the origin of, of those that it has just made."""
    rows = pq.read_table(made.new_data_path)
    weights = pa.array([1] * rows.num_rows, pa.int32())
    wanted = rows.append_column(WANTED, rows.column("offset")).append_column(WEIGHT, weights)
    pq.write_table(wanted, folder / "wanted")
    inputs, path = made.query_inputs, str(folder / "traced")
    asked = TraceRequest(
        transform=made.transform,
        vocab=made.vocab,
        query_inputs=inputs,
        wanted_path=str(folder / "wanted"),
        output_path=path,
    )
    answer = engine.trace(asked)
    assert isinstance(answer, TraceResponseSuccess), answer
    return len(set(map_stream(path).column(WANTED).to_pylist()))


def test_a_job_that_takes_too_long_is_cancelled_and_the_next_one_served(engine: SparkEngine, tmp_path: Path):
    engine.sql(query("SELECT 1 AS one", tmp_path))
    pid = status_of(engine).pid
    hasty = SparkEngine(engine.run.path, replace(SETTINGS, job_seconds=1))
    with pytest.raises(EngineError, match="took longer than 1 s"):
        hasty.sql(lengthy(tmp_path))
    assert engine.sql(query("SELECT 1 AS one", tmp_path)) == SqlResponseSuccess(1)
    assert status_of(engine).pid == pid


def test_a_job_that_does_not_let_itself_be_cancelled_costs_a_restart(engine: SparkEngine, tmp_path: Path):
    engine.sql(query("SELECT 1 AS one", tmp_path))
    java = status_of(engine).java_pid
    before = task_seconds(java)

    def interrupt_in_the_loop(progress: JobProgress) -> None:
        if progress.stage is Stage.RUNNING and task_seconds(java) > before + 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        SparkEngine(engine.run.path, SETTINGS, on_progress=interrupt_in_the_loop).sql(endless(tmp_path))
    assert engine.sql(query("SELECT 1 AS one", tmp_path)) == SqlResponseSuccess(1)
    assert is_gone(java)


def test_an_interrupted_client_takes_its_job_back(engine: SparkEngine, tmp_path: Path):
    engine.sql(query("SELECT 1 AS one", tmp_path))

    def interrupt(progress: JobProgress) -> None:
        if progress.stage is Stage.RUNNING:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        SparkEngine(engine.run.path, SETTINGS, on_progress=interrupt).sql(lengthy(tmp_path))
    assert engine.sql(query("SELECT 1 AS one", tmp_path)) == SqlResponseSuccess(1)


def test_a_killed_client_leaves_a_free_engine_and_a_clean_workspace(engine: SparkEngine, tmp_path: Path):
    engine.sql(query("SELECT 1 AS one", tmp_path))
    pid = status_of(engine).pid
    client = client_process(engine.run.path, lengthy(tmp_path))
    eventually(lambda: status_of(engine).busy)
    client.kill()
    client.communicate()
    eventually(lambda: not status_of(engine).busy)
    assert not (tmp_path / "result").exists()
    assert status_of(engine).pid == pid


def test_a_stranger_without_the_secret_gets_nothing(engine: SparkEngine, tmp_path: Path):
    engine.sql(query("SELECT 1 AS one", tmp_path))
    secret = engine.run.path / "engine.secret"
    mine = secret.read_text()
    secret.write_text("guessed")
    with pytest.raises(EngineUnavailable, match="The secret is wrong"):
        engine.sql(query("SELECT 1 AS one", tmp_path))
    secret.write_text(mine)


def test_a_java_process_killed_at_work_is_a_clear_error_and_the_next_job_runs(engine: SparkEngine, tmp_path: Path):
    engine.sql(query("SELECT 1 AS one", tmp_path))
    java, worker = status_of(engine).java_pid, status_of(engine).pid
    assert java is not None
    error = failure_of(engine, endless(tmp_path), lambda: os.kill(java, signal.SIGKILL))
    assert isinstance(error, EngineUnavailable)
    assert error.message == "The engine crashed: its Java process was ended by SIGKILL"
    assert "engine.log" in str(error.hint)
    assert not (tmp_path / "result").exists()
    assert engine.sql(query("SELECT 1 AS one", tmp_path)) == SqlResponseSuccess(1)
    assert is_gone(worker)


def test_a_worker_killed_at_work_takes_its_java_along_and_the_next_job_runs(engine: SparkEngine, tmp_path: Path):
    engine.sql(query("SELECT 1 AS one", tmp_path))
    before = status_of(engine)
    error = failure_of(engine, endless(tmp_path), lambda: os.kill(before.pid, signal.SIGKILL))
    assert isinstance(error, EngineUnavailable)
    assert error.message == "The engine died in the middle of the job"
    assert "Try again; a new engine will be started." in str(error.hint)
    assert before.java_pid is not None
    eventually(lambda: is_gone(before.java_pid))
    assert {path.name for path in engine.run.path.iterdir()} <= {"engine.lock", "engine.log", "clients"}
    assert not (tmp_path / "result").exists()
    assert engine.sql(query("SELECT 1 AS one", tmp_path)) == SqlResponseSuccess(1)
    assert status_of(engine).pid != before.pid


def test_stopping_waits_for_the_job_unless_forced(engine: SparkEngine, tmp_path: Path):
    engine.sql(query("SELECT 1 AS one", tmp_path))
    with pytest.raises(EngineUnavailable, match="still busy") as waited:
        failure_of(engine, endless(tmp_path), lambda: stop_engine(engine.run.path, wait_seconds=0.1))
    assert "--force" in str(waited.value.hint)
    stop_engine(engine.run.path, force=True)
    assert engine_status(engine.run.path) is None
    assert {path.name for path in engine.run.path.iterdir()} <= {"engine.lock", "engine.log", "clients"}


def test_an_idle_engine_ends(engine: SparkEngine, tmp_path: Path):
    hasty = SparkEngine(engine.run.path, replace(SETTINGS, idle_seconds=1))
    hasty.sql(query("SELECT 1 AS one", tmp_path))
    pid = status_of(hasty).pid
    eventually(lambda: is_gone(pid))
    assert engine_status(engine.run.path) is None
    assert "it was idle for 1 s" in hasty.run.log.read_text()


def test_it_tells_its_stages(engine: SparkEngine, tmp_path: Path):
    stop_engine(engine.run.path, force=True)
    _, transform, _ = training_jobs(tmp_path)
    with profiling("test") as whole:
        engine._ask(transform, object)
        cold = whole.at("Spark")
        assert cold is not None
        assert list(cold.parts) == ["connect", "start", "queue", "job"]
        engine._ask(transform, object)
    assert cold.times == 2
    job = cold.parts["job"]
    assert job.times == 2
    assert cold.parts["start"].times == 1
    assert {"sandbox", "session", "analysis", "output"} <= job.parts.keys()
    assert job.all_calls > 50
    assert job.all_jobs >= 2
    for _, one in cold.walk():
        assert sum(part.seconds for part in one.parts.values()) <= one.seconds or not one.parts, one.name


def test_a_java_that_does_not_start_is_a_clear_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    java = tmp_path / "java" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text("#!/bin/sh\necho no memory\nexit 7\n")
    java.chmod(0o755)
    java.parents[1].joinpath("release").write_text('JAVA_VERSION="21.0.1"\n')
    monkeypatch.setenv("JAVA_HOME", str(java.parents[1]))
    engine = SparkEngine(tmp_path / "run", SETTINGS)
    with pytest.raises(EngineUnavailable, match=r"could not start: it ended with code 7: no memory$") as error:
        engine.sql(query("SELECT 1 AS one", tmp_path))
    assert "engine.log" in str(error.value.hint)
    assert "no memory" in engine.run.log.read_text()
    with suppress(EngineUnavailable):
        eventually(lambda: engine_status(engine.run.path) is None)


def test_rows_are_there_before_the_query_is_done_and_whoever_has_enough_stops_it(engine, tmp_path):
    slowly = query("SELECT id FROM range(0, 50000, 1, 50000)", tmp_path)
    control = CancellationToken()
    rows = engine.stream(slowly, control)
    assert rows.schema.names == ["id"]
    batches = iter(rows)
    assert next(batches).column(0).to_pylist() == [0]
    control.cancel()
    with pytest.raises(QueryCancelled):
        list(batches)
    rows.close()
    assert engine.sql(query("SELECT 1 AS one", tmp_path)) == SqlResponseSuccess(1)


def test_what_goes_wrong_while_rows_are_read_is_told(engine, tmp_path):
    rows = engine.stream(query("SELECT 1 / (2 - id) AS x FROM range(0, 4, 1, 4)", tmp_path), CancellationToken())
    with pytest.raises(InvalidQuery, match="by zero"):
        list(rows)
    rows.close()
    with pytest.raises(InvalidQuery, match="nope"):
        engine.stream(query("SELECT nope", tmp_path), CancellationToken())
    too_large = replace(query("SELECT id FROM range(100000)", tmp_path), max_bytes=1000)
    with pytest.raises(ResultTooLarge):
        list(engine.stream(too_large, CancellationToken()))


def test_a_run_of_a_scheduler_tells_the_memory_of_the_engine(run: Path, tmp_path: Path):
    workspace = copied(workspace_with(tmp_path), run.parent.parent)
    workspace.config.set("engine.memory", MEMORY)
    workspace.config.set("engine.master", SETTINGS.master)
    workspace.add([one for text in (root(), derivative(engine="spark")) for one in load_snapshots(text, "new")])
    feed(workspace, "root", "1 a", "2 b")
    save_schedule(workspace.storage.get("derived").folder, DatasetSchedule(pull=Trigger(every=Duration(3600))))
    program = [sys.executable, "-m", "odfpy", "-w", str(workspace.root), "run", "--once"]
    subprocess.run(program, check=True, capture_output=True)
    [told] = last_runs(workspace, num=5)
    assert (told["outcome"], told["dataset"]) == ("updated", "derived")
    assert told["engine_memory"] > told["peak_memory"]  # a JVM with Spark, beside a process that waits for it


def test_an_engine_whose_workspace_is_removed_ends(engine: SparkEngine, tmp_path: Path):
    engine.sql(query("SELECT 1 AS one", tmp_path))
    status = status_of(engine)
    engine.run.path.rename(tmp_path / "removed")
    eventually(lambda: is_gone(status.pid))
    assert status.java_pid is not None
    assert is_gone(status.java_pid)
