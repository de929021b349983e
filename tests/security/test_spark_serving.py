"""Queries of strangers for Spark: a server lets them into a whole sandbox, or nowhere."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pyarrow.flight as fl
import pytest
from support.chains.workspaces import feed, root, workspace_with
from support.engine.exploited_engine import start_exploited
from support.engine.session import MEMORY
from support.servers.serving import Answer, ask, serving

from odfpy.coordinator.workspace import Workspace
from odfpy.engine.contract import SqlRequest, SqlResponseSuccess
from odfpy.engine.settings import EngineSettings
from odfpy.engine.worker.admin import stop_engine
from odfpy.engine.worker.client import SparkEngine
from odfpy.errors import EngineUnavailable, SandboxRequired
from odfpy.serving.callers import engines
from odfpy.serving.callers.access import Caller
from odfpy.serving.callers.engines import UNCONFINED, ServedEngines, warning
from odfpy.serving.callers.tokens import Scope, Tokens
from odfpy.serving.callers.visibility import Visibility, set_visibility
from odfpy.serving.flight.errors import as_flight
from odfpy.serving.server import DatasetServer

NAME = "com.example.rates"
SETTINGS = EngineSettings(memory=MEMORY, master="local[2]")


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    """Its engine is not confined; nor could it start, so that whoever is let in is told so."""
    found = workspace_with(tmp_path / "workspace", root(NAME, "{kind: Append}"))
    feed(found, NAME, "1 a")
    set_visibility(found.storage.get(NAME).folder, Visibility.PUBLIC)
    found.config.set("engine.sandbox", "off")
    return Workspace.open(found.root)


@pytest.fixture
def no_java(monkeypatch: pytest.MonkeyPatch) -> None:
    def find_nothing() -> None:
        raise EngineUnavailable("Let in, and there is no Java")

    monkeypatch.setattr("odfpy.engine.worker.client.find_java", find_nothing)


@pytest.fixture
def server(workspace: Workspace, no_java: None) -> Iterator[DatasetServer]:
    with serving(workspace) as server:
        yield server


def query(server: DatasetServer, text: str, token: str | None = None, dialect: str = "SqlSpark") -> Answer:
    body = json.dumps({"query": text, "queryDialect": dialect}).encode()
    return ask(f"{server.url}/query", method="POST", body=body, token=token, content_type="application/json")


def test_strangers_are_refused_and_the_operator_is_not(server: DatasetServer, workspace: Workspace) -> None:
    tokens = Tokens(workspace.odf)
    text = f"select max(id) as m from `{NAME}`"
    for token in (None, tokens.new("reader", Scope.READ), tokens.new("writer", Scope.WRITE)):
        refused = query(server, text, token)
        assert (refused.status, "not fully sandboxed" in refused.json["message"]) == (400, True), refused.json
    assert "Let in" in query(server, text, tokens.new("admin", Scope.ADMIN)).json["message"]


def test_what_needs_no_spark_is_answered(server: DatasetServer) -> None:
    assert query(server, f"select count(*) as n from `{NAME}`").json["output"]["data"] == [{"n": 1}]
    plain = query(server, f'select max(id) as m from "{NAME}"', dialect="SqlDataFusion")
    assert plain.json["output"]["data"] == [{"m": 1}]


def test_an_operator_may_allow_it(workspace: Workspace, no_java: None) -> None:
    workspace.config.set(UNCONFINED, "true")
    with serving(workspace) as server:
        assert "Let in" in query(server, f"select max(id) as m from `{NAME}`").json["message"]


def test_a_cluster_is_no_sandbox(workspace: Workspace, tmp_path: Path) -> None:
    engine = SparkEngine(tmp_path / "run", EngineSettings(master="spark://nobody:7077")).sandboxed_only()
    with pytest.raises(SandboxRequired):
        engine.sql(SqlRequest("SELECT 1", (), str(tmp_path / "result")))


def test_callers_of_flight_are_told_the_same(workspace: Workspace) -> None:
    served = ServedEngines(workspace, 1 << 30, 60.0)
    engine = served.get(Caller()).get("spark")
    with pytest.raises(SandboxRequired) as caught:
        engine.sql(SqlRequest("SELECT 1", (), str(workspace.root / "result")))
    assert isinstance(as_flight(caught.value), fl.FlightUnauthorizedError)


def test_an_admin_of_another_workspace_is_a_stranger(workspace: Workspace, tmp_path: Path) -> None:
    other = workspace_with(tmp_path / "other")
    text = Tokens(other.odf).new("admin", Scope.ADMIN)
    served = ServedEngines(workspace, 1 << 30, 60.0)
    stranger = Caller(Tokens(other.odf).find(text), other.storage, text)
    assert served.get(stranger) is served.get(Caller())


def test_an_operator_is_told_before_he_serves(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "need a token with the scope admin: the engine is not fully sandboxed (engine.sandbox is off)" in str(
        warning(workspace)
    )
    workspace.config.set(UNCONFINED, "true")
    assert "run without a full sandbox (engine.sandbox is off)" in str(warning(workspace))
    workspace.config.set("engine.sandbox", "best-effort")
    check = SimpleNamespace(sandbox_obstacle=lambda: "user namespaces are not allowed here")
    monkeypatch.setitem(__import__("sys").modules, "odfpy.sandbox.check", check)
    assert "not allowed here" in str(engines.warning(workspace))
    check.sandbox_obstacle = lambda: None
    assert warning(workspace) is None


@pytest.mark.spark
def test_the_engine_itself_decides_where_only_files_are_confined(tmp_path: Path) -> None:
    engine = SparkEngine(tmp_path / ".odf" / "run", SETTINGS)
    worker = start_exploited(engine.run, SETTINGS, "refuse")
    request = SqlRequest("SELECT 1", (), str(tmp_path / "result"))
    try:
        with pytest.raises(SandboxRequired):
            engine.sandboxed_only().sql(request)
        assert engine.sql(request) == SqlResponseSuccess(1)
    finally:
        stop_engine(engine.run.path, force=True)
        worker.wait()
