"""Schedules and runs over REST: who sees and changes what, and what a scheduler makes of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.chains.workspaces import derivative, feed, root, workspace_with
from support.servers.serving import Answer, ask, serving, wait_until

from odfpy.automation.background import scheduling
from odfpy.coordinator.schedules.file import load_schedule
from odfpy.coordinator.schedules.schedule import Job
from odfpy.coordinator.workspace import Workspace
from odfpy.serving.callers.tokens import Scope, Tokens
from odfpy.serving.callers.visibility import Visibility, set_visibility
from odfpy.serving.server import DatasetServer

SOURCE, DERIVED = "com.example.source", "com.example.derived"
YAML = "schedule:\n  pull: {rows: 1}\n  verify: {cron: '0 3 * * sun', timezone: Europe/Berlin}\n  maxAge: 2d\n"


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    found = workspace_with(tmp_path / "workspace", root(SOURCE, "{kind: Append}"), derivative(DERIVED, SOURCE))
    feed(found, SOURCE, "2 a", "3 b")
    return found


@pytest.fixture
def server(workspace: Workspace) -> Iterator[DatasetServer]:
    with serving(workspace) as server:
        yield server


@pytest.fixture
def reader(workspace: Workspace) -> str:
    return Tokens(workspace.odf).new("reader", Scope.READ)


@pytest.fixture
def writer(workspace: Workspace) -> str:
    return Tokens(workspace.odf).new("writer", Scope.WRITE)


def put(server: DatasetServer, token: str | None, yaml: str, name: str = DERIVED) -> Answer:
    body = json.dumps({"yaml": yaml}).encode()
    url = f"{server.url}/{name}/schedule"
    return ask(url, method="PUT", token=token, body=body, content_type="application/json")


def runs(server: DatasetServer, token: str | None, query: str = "") -> list[dict[str, Any]]:
    answer = ask(f"{server.url}/platform/runs{query}", token=token)
    assert answer.status == 200, answer.body
    found: list[dict[str, Any]] = answer.json
    return found


def test_a_schedule_is_kept_shown_paused_and_removed(
    server: DatasetServer, workspace: Workspace, writer: str, reader: str
) -> None:
    url, folder = f"{server.url}/{DERIVED}/schedule", workspace.storage.get(DERIVED).folder
    assert ask(url, token=reader).json["yaml"] is None
    kept = put(server, writer, YAML).json
    assert [(one["job"], one["trigger"]) for one in kept["upcoming"]] == [
        ("pull", "after 1 new row"),
        ("verify", "0 3 * * sun (Europe/Berlin)"),
    ]
    assert kept["upcoming"][0]["at"] is not None, "two rows are new already"
    assert kept["upcoming"][1]["local"].endswith(("+01:00", "+02:00"))
    found = load_schedule(folder)
    assert found is not None
    assert set(found.jobs) == {Job.PULL, Job.VERIFY}
    assert ask(url, token=reader).json | {"upcoming": []} == kept | {"upcoming": []}
    paused = ask(f"{url}/paused?value=true", method="PUT", token=writer).json
    assert paused["isPaused"]
    assert [(one["job"], one["at"]) for one in paused["upcoming"]] == [("pull", None), ("verify", None)]
    assert not ask(f"{url}/paused?value=false", method="PUT", token=writer).json["isPaused"]
    assert ask(url, method="DELETE", token=writer).json["yaml"] is None
    assert load_schedule(folder) is None
    assert ask(f"{url}/paused?value=true", method="PUT", token=writer).status == 404


def test_only_those_who_may_write_change_a_schedule(server: DatasetServer, reader: str, workspace: Workspace) -> None:
    assert put(server, None, YAML).status == 401
    assert put(server, reader, YAML).status == 403
    for method, path in (("DELETE", "schedule"), ("PUT", "schedule/paused?value=true"), ("POST", "runs?job=pull")):
        assert ask(f"{server.url}/{DERIVED}/{path}", method=method).status == 401
        assert ask(f"{server.url}/{DERIVED}/{path}", method=method, token=reader).status == 403
    assert load_schedule(workspace.storage.get(DERIVED).folder) is None
    assert ask(f"{server.url}/{DERIVED}/schedule").status == 401


@pytest.mark.parametrize(
    ("yaml", "message"),
    [
        ("schedule:\n  pull: {cron: '61 * * * *'}", "Line 2, column 10: "),
        ("schedule:\n  pull: {every: 1h, evry: 2h}", "evry"),
        ("schedule:\n  pull: {cron: '0 3 * * *', timezone: Europe/Berln}", "Did you mean Europe/Berlin?"),
        ("schedule:\n  compact: {every: 1h}", "derivative is not compacted"),
        ("schedule: {", "not YAML"),
        ("pull: {every: 1h}", "not a schedule"),
        ("", "found 0"),
        ("schedule: {push: {rows: 1, to: /tmp/place}}", "repositories of the workspace"),
        ("schedule: {push: {rows: 1, to: 'http://127.0.0.1/x'}}", "repositories of the workspace"),
    ],
)
def test_what_is_wrong_with_a_schedule_is_told(
    server: DatasetServer, writer: str, workspace: Workspace, yaml: str, message: str
) -> None:
    answer = put(server, writer, yaml)
    assert answer.status == 400
    assert message in answer.json["message"]
    assert load_schedule(workspace.storage.get(DERIVED).folder) is None


def test_without_a_scheduler_nobody_is_asked(server: DatasetServer, writer: str, reader: str) -> None:
    put(server, writer, YAML)
    answer = ask(f"{server.url}/{DERIVED}/runs?job=pull", method="POST", token=writer)
    assert answer.status == 409
    assert "odf run" in answer.json["message"]
    assert ask(f"{server.url}/platform/automation", token=reader).json == {
        "scheduler": None, "numSchedules": 1, "running": [], "late": [], "failing": [],
    }  # fmt: skip
    assert ask(f"{server.url}/{DERIVED}/runs?job=push", method="POST", token=writer).status == 404
    assert ask(f"{server.url}/{DERIVED}/runs?job=sleep", method="POST", token=writer).status == 422


def test_runs_are_seen_as_they_come_and_a_failure_says_why(
    server: DatasetServer, workspace: Workspace, writer: str, reader: str
) -> None:
    put(server, writer, "schedule: {pull: {rows: 1}, push: {cron: '0 3 1 1 *'}, retry: {attempts: 1}}")
    with scheduling(workspace):
        wait_until(lambda: [one for one in runs(server, reader) if one["outcome"] == "updated"])
        assert ask(f"{server.url}/platform/automation", token=reader).json["scheduler"] == "works"
        assert "process" in ask(f"{server.url}/platform/automation", token=writer).json["scheduler"]
        asked = ask(f"{server.url}/{DERIVED}/runs?job=push", method="POST", token=writer)
        assert asked.status == 202
        wait_until(lambda: [one for one in runs(server, reader, "?outcome=failed") if one["outcome"] == "failed"])
    [failed] = runs(server, writer, "?outcome=failed")
    assert failed["id"] == asked.json["id"]
    assert failed["reason"] == "manual"
    assert failed["errorCode"]
    assert failed["errorMessage"]
    assert runs(server, reader, "?outcome=failed") == [failed]
    set_visibility(workspace.storage.get(DERIVED).folder, Visibility.PUBLIC)
    assert runs(server, None, "?outcome=failed") == [failed | {"errorMessage": None}]
    both = runs(server, reader, f"?dataset={DERIVED}")
    assert [one["job"] for one in both] == ["push", "pull"], "the newest first, out of the dataset of runs"
    assert both[1]["rows"] == 2
    assert [one["job"] for one in runs(server, reader, f"?until={both[1]['at']}")] == ["pull"]
    assert runs(server, reader, "?since=2100-01-01T00:00:00Z") == []
    assert runs(server, reader, "?dataset=com.example.nothing") == []
    state = ask(f"{server.url}/platform/automation", token=reader).json
    assert [one["id"] for one in state["failing"]] == [failed["id"]]


def test_strangers_see_runs_of_public_datasets_only(server: DatasetServer, workspace: Workspace, writer: str) -> None:
    put(server, writer, "schedule: {pull: {rows: 1}, maxAge: 1s}")
    put(server, writer, "schedule: {verify: {every: 30d}}", SOURCE)
    with scheduling(workspace):
        wait_until(lambda: len([one for one in runs(server, writer) if one["outcome"] != "running"]) == 2)
    assert runs(server, None) == []
    assert ask(f"{server.url}/platform/schedules").json == []
    assert ask(f"{server.url}/platform/automation").json["numSchedules"] == 0
    set_visibility(workspace.storage.get(DERIVED).folder, Visibility.PUBLIC)
    assert {one["dataset"] for one in runs(server, None)} == {DERIVED}
    assert runs(server, None, f"?dataset={SOURCE}") == []
    listed = ask(f"{server.url}/platform/schedules")
    assert [one["dataset"] for one in listed.json] == [DERIVED]
    assert listed.headers["x-total-count"] == "1"
    wait_until(lambda: ask(f"{server.url}/platform/automation").json["late"])
    [late] = ask(f"{server.url}/platform/automation").json["late"]
    assert late["dataset"] == DERIVED
    assert late["maxAge"] == "1s"
    info = ask(f"{server.url}/{DERIVED}").json
    assert (info["maxAge"], info["isLate"]) == ("1s", True)
    numbers = ask(f"{server.url}/metrics/datasets", token=writer).body.decode()
    assert f'odf_dataset_max_age_seconds{{dataset="{DERIVED}"}} 1' in numbers
    assert f'odf_dataset_max_age_seconds{{dataset="{SOURCE}"}}' not in numbers


def test_a_schedule_that_cannot_be_read_is_told_and_hides_no_others(
    server: DatasetServer, workspace: Workspace, writer: str, reader: str
) -> None:
    put(server, writer, YAML)
    (workspace.storage.get(SOURCE).folder / "info" / "schedule.yaml").write_text("{")
    found = {one["dataset"]: one for one in ask(f"{server.url}/platform/schedules", token=reader).json}
    assert found[SOURCE]["problem"]
    assert found[DERIVED]["problem"] is None
    assert ask(f"{server.url}/platform/schedules?search=DERIV", token=reader).headers["x-total-count"] == "1"


@pytest.mark.parametrize("query", ["?since=yesterday", "?until=x"])
def test_times_that_are_none_are_told(server: DatasetServer, reader: str, query: str) -> None:
    assert ask(f"{server.url}/platform/runs{query}", token=reader).status == 400
