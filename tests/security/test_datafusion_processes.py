"""What others have written is planned and computed by DataFusion where it can break nothing, nor take everything."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pyarrow as pa
import pytest
from support.chains.workspaces import derivative, feed, root, workspace_with
from support.servers.serving import ask, serving

from odfpy.chain.encoding import load_snapshots
from odfpy.cli.app import run
from odfpy.coordinator.workspace import Workspace
from odfpy.dataset.transform import TransformSql
from odfpy.engine.cancellation import CancellationToken
from odfpy.engine.contract import SqlRequest, SqlResponseSuccess
from odfpy.engine.datafusion import isolated
from odfpy.engine.datafusion.engine import DataFusionEngine
from odfpy.engine.datafusion.isolated import ForkServer, fork_server
from odfpy.errors import InvalidQuery, OdfError, QueryEnded, QueryTimedOut, QueryTooDeep
from odfpy.sandbox.landlock import landlock_version
from odfpy.serving.callers.tokens import Scope, Tokens

MEMORY = 512 << 20
NAME = "com.example.rates"
ROWS = pa.table({"id": pa.array([1, 2], pa.int64())})

GREEDY = {
    "repeat": "select repeat('x', 2000000000) as x from input",
    "unnest": "select unnest(range(0, 100000000000)) as x from input",
}
ENDLESS = "select count(*) as n from generate_series(1, 1000000) a cross join generate_series(1, 1000000) b"


@pytest.fixture(scope="module")
def engine() -> DataFusionEngine:
    return DataFusionEngine(fork_server(MEMORY), seconds=20.0)


def transform(query: str) -> TransformSql:
    return TransformSql(engine="datafusion", query=query)


def is_well(engine: DataFusionEngine) -> bool:
    return engine.preprocess(transform("select id + 1 as id from input"), {"input": ROWS}).to_pydict() == {"id": [2, 3]}


@pytest.mark.parametrize("name", GREEDY)
def test_a_query_that_wants_all_memory_ends_alone(engine: DataFusionEngine, name: str) -> None:
    with pytest.raises((QueryEnded, InvalidQuery)) as told:
        engine.preprocess(transform(GREEDY[name]), {"input": ROWS})
    assert told.value.hint or told.value.message
    assert is_well(engine)


@pytest.mark.parametrize("name", GREEDY)
def test_so_it_does_when_it_is_only_planned(engine: DataFusionEngine, name: str) -> None:
    """A constant may be computed as soon as there is a plan."""
    started = time.monotonic()
    try:
        engine.preprocess(transform(GREEDY[name]), {"input": ROWS.slice(0, 0)})
    except OdfError as error:
        assert error.code in ("E450", "E501")  # noqa: PT017
    assert time.monotonic() - started < 60
    assert is_well(engine)


def test_a_query_that_breaks_datafusion_is_told_in_plain_words() -> None:
    """So many operators are refused before by whoever takes in queries; the engine itself is asked here."""
    text = "select " + "+".join(["1"] * 40_000)
    rows = DataFusionEngine(fork_server(1 << 30))
    with pytest.raises(QueryEnded, match=r"crashed on the query \(SIG(SEGV|BUS)\)") as told:
        list(rows.stream(SqlRequest(text, (), ""), CancellationToken()))
    assert told.value.hint is not None
    assert told.value.code == "E450"
    assert is_well(rows)


def test_a_process_that_somebody_ends_is_told(engine: DataFusionEngine, tmp_path: Path) -> None:
    request = SqlRequest(ENDLESS, (), str(tmp_path / "rows"))
    told: list[object] = []

    def work() -> None:
        try:
            told.append(DataFusionEngine(engine.processes).sql(request))
        except OdfError as error:
            told.append(error)

    asking = threading.Thread(target=work)
    asking.start()
    deadline = time.monotonic() + 120
    while not (found := _requests(engine.processes)):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    os.kill(found[0], signal.SIGKILL)
    asking.join(30)
    assert isinstance(told[0], QueryEnded)


def test_work_ends_with_its_time(tmp_path: Path) -> None:
    engine = DataFusionEngine(fork_server(MEMORY), seconds=0.5)
    with pytest.raises(QueryTimedOut):
        engine.sql(SqlRequest(ENDLESS, (), str(tmp_path / "rows")))
    deadline = time.monotonic() + 120
    while _requests(engine.processes):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_planning_ends_with_its_time_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("odfpy.engine.datafusion.engine.PLANNING_SECONDS", 0.5)
    chain = "with a0 as (select id from input)" + "".join(
        f", a{at} as (select * from a{at - 1})" for at in range(1, 3000)
    )
    with pytest.raises((QueryTimedOut, QueryTooDeep)):
        DataFusionEngine(fork_server(MEMORY)).preprocess(
            transform(f"{chain} select * from a2999"), {"input": ROWS.slice(0, 0)}
        )


def test_queries_without_rows_are_planned_in_a_process_as_well(engine: DataFusionEngine) -> None:
    rows = engine.stream(SqlRequest("select 1 as one", (), "", limit=0), CancellationToken())
    assert rows.schema.names == ["one"]
    assert list(rows) == []
    rows.close()


def test_this_process_never_loads_datafusion() -> None:
    """Whatever is asked of the engine; else there would be a way around its processes."""
    program = (
        "import sys, pyarrow as pa\n"
        "from odfpy.engine.datafusion.engine import DataFusionEngine\n"
        "from odfpy.dataset.transform import TransformSql\n"
        "table = pa.table({'id': [1]})\n"
        "DataFusionEngine().preprocess(TransformSql(engine='datafusion', query='select id from input'), {'input': table})\n"
        "print('datafusion' in sys.modules)"
    )
    assert subprocess.check_output([sys.executable, "-c", program], text=True) == "False\n"


def _requests(server: ForkServer) -> list[int]:
    """The processes of requests that are under way."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == server.pid and fields[0] != "Z":
            found.append(int(folder.name))
    return found


# --- Through commands ------------------------------------------------------------------------------------------------


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    found = workspace_with(tmp_path, root(NAME, "{kind: Append}"))
    feed(found, NAME, "1 a")
    found.config.set("engine.maxMemory", "512m")
    monkeypatch.chdir(tmp_path)
    return Workspace.open(tmp_path)


@pytest.mark.parametrize(
    "query",
    [
        "select op, event_time, id, repeat('x', 2000000000) as x from source",
        "select op, event_time, unnest(range(0, 100000000000)) as x from source",
        "select op, event_time, id" + " + 1" * 9_990 + " as x from source",
    ],
)
def test_a_greedy_derivative_ends_its_own_pull_and_nothing_else(
    workspace: Workspace, query: str, capsys: pytest.CaptureFixture[str]
) -> None:
    workspace.config.set("engine.jobTimeout", "20")
    Path("greedy.yaml").write_text(derivative("greedy", NAME, query))
    code = run(["add", "greedy.yaml"])
    if code == 0:
        code = run(["pull", "greedy"])
    said = capsys.readouterr().err
    assert code in (1, 2)
    assert "E999" not in said
    assert "hint:" in said


def test_a_process_that_breaks_down_over_a_replay_is_a_finding(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`odf verify` of a derivative that somebody else has made."""
    workspace.add(load_snapshots(derivative("derived", NAME, "select op, event_time, id from source"), "manifest"))
    (pulled,) = workspace.pull(["derived"])
    assert pulled.error is None

    def ended(*_: object, **__: object) -> SqlResponseSuccess:
        raise isolated._ended(None, MEMORY, is_planning=False)

    monkeypatch.setattr("odfpy.engine.datafusion.engine.ask", ended)
    (report,) = workspace.verify(["derived"])
    assert ["most likely because it used more than 0.5 GiB" in one.message for one in report.findings] == [True]


@pytest.mark.parametrize("name", GREEDY)
def test_a_greedy_ingest_over_the_network_leaves_the_server_alone(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    step = f'preprocess: {{kind: Sql, engine: datafusion, query: "{GREEDY[name]}"}}'
    manifest = root(NAME, "{kind: Append}").replace("      merge:", f"      {step}\n      merge:")
    found = workspace_with(tmp_path / "workspace", manifest)
    token = Tokens(found.odf).new("writer", Scope.WRITE)
    row = b'{"event_time":"2024-01-01T00:00:00Z","id":1,"name":"a"}\n'
    with serving(found, query_memory=MEMORY, ingest_timeout=20.0) as server:
        url = f"{server.url}/{NAME}/ingest"
        answer = ask(url, method="POST", body=row, token=token, content_type="application/x-ndjson")
        assert (answer.status, "Preprocessing" in answer.json["message"]) == (400, True), answer
        assert ask(f"{server.url}/health").status == 200


# --- What such a process can reach -----------------------------------------------------------------------------------

_INSIDE = """
import os, socket, sys
from odfpy.engine.datafusion import fork_server
from odfpy.engine.contract import SqlRequest, SqlTable
from odfpy.data.vocabulary import DEFAULT_VOCABULARY
given, other = sys.argv[1:]
fork_server._confine(SqlRequest("select 1", (SqlTable("t", given, (), DEFAULT_VOCABULARY),), ""))
def attempt(work):
    try:
        work()
    except OSError as error:
        return type(error).__name__
    return "done"
print(
    attempt(lambda: open(given).read()),
    attempt(lambda: open(other).read()),
    attempt(lambda: open(other, "w")),
    attempt(lambda: open("/etc/passwd").read()),
    attempt(lambda: socket.socket(socket.AF_INET)),
    attempt(lambda: socket.socket(socket.AF_UNIX)),
    attempt(lambda: os.memfd_create("x")),
    attempt(lambda: socket.socketpair()),
)
"""


@pytest.mark.skipif(not landlock_version(), reason="this kernel has no Landlock")
def test_a_process_reads_the_files_of_its_request_and_reaches_nothing_else(tmp_path: Path) -> None:
    for name in ("given", "other"):
        (tmp_path / name).write_text(name)
    command = [sys.executable, "-c", _INSIDE, str(tmp_path / "given"), str(tmp_path / "other")]
    said = subprocess.check_output(command, text=True).split()
    assert said == ["done", *["PermissionError"] * 3, *["OSError"] * 3, "done"]
