"""A dataset that Spark computes: its run by a scheduler, and its query, origins and verification over REST."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest
from support.chains.workspaces import derivative, feed, root, workspace_with
from support.engine.session import MEMORY
from support.servers.serving import ask, serving, wait_until

from odfpy.automation.history import last_runs
from odfpy.coordinator.schedules.file import save_schedule
from odfpy.coordinator.schedules.schedule import DatasetSchedule, Trigger
from odfpy.coordinator.workspace import Workspace
from odfpy.data.duration import Duration
from odfpy.engine.worker.admin import stop_engine
from odfpy.serving.callers.tokens import Scope, Tokens
from odfpy.serving.server import DatasetServer

pytestmark = pytest.mark.spark

SOURCE, DERIVED = "com.example.source", "com.example.derived"
DAILY = "SELECT window.start AS event_time, name, count(*) AS n FROM source GROUP BY window(event_time, '1 day'), name"


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    """The rows of a day are counted by Spark, in a run of a scheduler."""
    derived = derivative(DERIVED, SOURCE, DAILY, engine="spark")
    made = workspace_with(tmp_path_factory.mktemp("spark") / "workspace", root(SOURCE, "{kind: Append}"), derived)
    made.config.set("engine.memory", MEMORY)
    feed(made, SOURCE, "1 a", "2 a", "3 b")
    feed(made, SOURCE, "4 c", day=5)
    save_schedule(made.storage.get(DERIVED).folder, DatasetSchedule(pull=Trigger(every=Duration(3600))))
    program = [sys.executable, "-m", "odfpy", "-w", str(made.root), "run", "--once"]
    subprocess.run(program, check=True, capture_output=True)
    yield made
    stop_engine(made.odf / "run", force=True)


@pytest.fixture(scope="module")
def server(workspace: Workspace) -> Iterator[DatasetServer]:
    with serving(workspace) as server:
        yield server


@pytest.fixture(scope="module")
def admin(workspace: Workspace) -> str:
    return Tokens(workspace.odf).new("admin", Scope.ADMIN)


def test_the_run_tells_the_memory_of_the_engine(workspace: Workspace) -> None:
    [run] = last_runs(workspace, num=5)
    assert (run["outcome"], run["dataset"]) == ("updated", DERIVED)
    assert run["engine_memory"] > run["peak_memory"]  # a JVM with Spark, beside a process that waits for it


def test_its_query_is_shown_with_class_and_state(server: DatasetServer, admin: str) -> None:
    found = ask(f"{server.url}/{DERIVED}/analysis", token=admin).json
    assert found["engine"] == "spark"
    [step] = found["steps"]
    assert "window" in step["queryClass"].lower()
    assert step["state"]


def test_a_row_is_followed_to_the_rows_that_were_counted(server: DatasetServer, admin: str) -> None:
    found = ask(f"{server.url}/{DERIVED}/provenance?offset=0", token=admin).json
    derived, source = found["datasets"]
    [row] = derived["rows"]
    assert (row["values"]["name"], row["values"]["n"]) == ("a", 2)
    assert [one["values"]["id"] for one in source["rows"]] == [1, 2]
    assert found["check"] == "checked"


def test_it_is_verified_by_a_replay(server: DatasetServer, admin: str) -> None:
    url = f"{server.url}/{DERIVED}/verification"
    assert ask(url, method="POST", token=admin, body=b"{}", content_type="application/json").status == 202
    wait_until(lambda: ask(url, token=admin).json["underWay"] is None)
    found = ask(url, token=admin).json
    assert found["stopped"] is None
    assert (found["report"]["ok"], found["report"]["transformsReplayed"]) == (True, 1)
