"""Verifications over REST: begun, watched, stopped, and a report that outlives the server."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.chains.workspaces import derivative, feed, root, workspace_with
from support.servers.serving import Answer, ask, serving, wait_until

from odfpy.chain.events import ExecuteTransform, ExecuteTransformInput
from odfpy.coordinator.maintenance.last_verification import MAX_FINDINGS, last_verification
from odfpy.coordinator.workspace import Workspace
from odfpy.data.timestamp import Timestamp
from odfpy.engine.datafusion.isolated import fork_server
from odfpy.errors import SandboxRequired
from odfpy.serving.callers.tokens import Scope, Tokens
from odfpy.serving.callers.visibility import Visibility, set_visibility
from odfpy.serving.server import DatasetServer

SOURCE, DERIVED, OTHER, THIRD = "com.b", "com.derived", "com.other", "com.third"
MEMORY = 512 * 1024**2


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    derived = [derivative(name, SOURCE) for name in (DERIVED, OTHER, THIRD)]
    found = workspace_with(tmp_path / "workspace", root(SOURCE, "{kind: Append}"), *derived)
    feed(found, SOURCE, *(f"{number} b" for number in range(9)))
    assert {one.error for one in found.pull(all=True)} == {None}
    return found


@pytest.fixture
def server(workspace: Workspace) -> Iterator[DatasetServer]:
    with serving(workspace, query_memory=MEMORY) as server:
        yield server


@pytest.fixture
def writer(workspace: Workspace) -> str:
    return Tokens(workspace.odf).new("writer", Scope.WRITE)


def call(
    server: DatasetServer, token: str | None, name: str = DERIVED, method: str = "GET", body: Any = None
) -> Answer:
    data = None if body is None else json.dumps(body).encode()
    return ask(
        f"{server.url}/{name}/verification", method=method, token=token, body=data, content_type="application/json"
    )


def start(server: DatasetServer, token: str | None, name: str = DERIVED, **wanted: bool) -> Answer:
    return call(server, token, name, "POST", wanted)


def report(server: DatasetServer, token: str | None, name: str = DERIVED) -> Any:
    """The report, once nothing is under way."""
    wait_until(lambda: call(server, token, name).json["underWay"] is None)
    return call(server, token, name).json["report"]


@contextmanager
def stalled_engine() -> Iterator[None]:
    """No query is begun as long as this lasts."""
    processes = fork_server(MEMORY)
    processes.begin()
    assert processes.pid is not None
    os.kill(processes.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(processes.pid, signal.SIGCONT)


def test_a_report_says_what_was_looked_at_and_who_has_signed(
    server: DatasetServer, workspace: Workspace, writer: str
) -> None:
    assert call(server, writer).json == {"underWay": None, "stopped": None, "report": None}
    assert start(server, writer).status == 202
    found = report(server, writer)
    head = str(workspace.storage.get(DERIVED).state.head)
    assert found["ok"]
    assert found["isCurrent"]
    assert found["head"] == head
    assert (found["blocks"], found["slices"], found["transformsReplayed"]) == (5, 1, 1)
    assert found["signatures"]["signed"] == 5
    assert found["signatures"]["signers"]
    assert found["findings"] == []
    feed(workspace, SOURCE, "77 later", day=3)
    assert [one.error for one in workspace.pull([DERIVED])] == [None]
    assert not report(server, writer)["isCurrent"]


def test_integrity_only_replays_nothing_and_recursive_takes_the_inputs_along(
    server: DatasetServer, writer: str
) -> None:
    start(server, writer, integrityOnly=True, recursive=True)
    found = report(server, writer)
    assert found["integrityOnly"]
    assert found["transformsReplayed"] == 0
    assert report(server, writer, SOURCE)["ok"]
    assert report(server, writer, OTHER) is None


def test_findings_are_kept_with_hint_and_explanation_and_only_writers_see_places(
    workspace: Workspace, writer: str
) -> None:
    dataset = workspace.storage.get(DERIVED)
    [file] = (dataset.folder / "data").iterdir()
    data = bytearray(file.read_bytes())
    data[-20] ^= 1
    file.write_bytes(bytes(data))
    set_visibility(dataset.folder, Visibility.PUBLIC)
    with serving(workspace) as server:
        start(server, writer)
        assert not report(server, writer)["ok"]
    with serving(workspace) as server:  # another process would say the same
        [finding] = report(server, writer)["findings"]
        assert finding["severity"] == "error"
        assert finding["check"] == "slice"
        assert finding["file"] == str(file)
        assert "--repair` fetches it" in finding["hint"]
        answer = call(server, None)
        found = answer.json["report"]
        assert found["explanations"][finding["code"]]["title"] == "a hash does not match"
        assert (found["findings"][0]["message"], found["findings"][0]["file"]) == ("", None)
        assert found["findings"][0]["sequenceNumber"] == finding["sequenceNumber"]
        assert str(workspace.root) not in answer.body.decode()


def test_the_code_of_an_error_is_explained_to_anybody(server: DatasetServer) -> None:
    found = ask(f"{server.url}/platform/errors/e221").json
    assert found["title"] == "a hash does not match"
    assert "**Try:**" in found["text"]
    unknown = ask(f"{server.url}/platform/errors/E000")
    assert (unknown.status, unknown.json["message"]) == (404, "No error has the code E000")


def test_a_head_that_cannot_be_read_is_a_finding_of_the_report(workspace: Workspace, writer: str) -> None:
    dataset = workspace.storage.get(DERIVED)
    middle = str(list(workspace.datasets.log(DERIVED))[2].hash)
    (dataset.folder / "blocks" / middle).unlink()
    [found] = workspace.verify([DERIVED], integrity_only=True)
    kept = last_verification(dataset)
    assert kept is not None
    assert kept.head == dataset.layout.refs.get("head")
    assert [one.check for one in kept.findings or ()] == [one.check for one in found.findings]
    assert not kept.ok


def test_many_findings_are_counted_and_the_first_are_kept(workspace: Workspace, writer: str) -> None:
    blocks = workspace.storage.get(SOURCE).folder / "blocks"
    for number in range(MAX_FINDINGS + 20):
        (blocks / f"no hash {number}").write_text("x")
    with serving(workspace) as server:
        start(server, writer, SOURCE, integrityOnly=True)
        found = report(server, writer, SOURCE)
    assert found["errors"] + found["warnings"] == MAX_FINDINGS + 20
    assert len(found["findings"]) == MAX_FINDINGS


def test_one_at_a_time_for_a_dataset_and_two_for_a_server(server: DatasetServer, writer: str) -> None:
    with stalled_engine():
        assert start(server, writer).status == 202
        again = start(server, writer)
        assert (again.status, again.json["message"]) == (409, "A verification of this dataset is running")
        assert start(server, writer, OTHER).status == 202
        assert start(server, writer, THIRD).status == 503
    assert report(server, writer)["ok"]
    assert report(server, writer, OTHER)["ok"]
    assert start(server, writer, THIRD).status == 202


def test_it_tells_how_far_it_is_and_can_be_stopped(server: DatasetServer, workspace: Workspace, writer: str) -> None:
    reader = Tokens(workspace.odf).new("reader", Scope.READ)
    with stalled_engine():
        start(server, writer)
        wait_until(lambda: call(server, writer).json["underWay"]["action"] == "replaying")
        under_way = call(server, writer).json["underWay"]
        assert (under_way["startedBy"], under_way["dataset"]) == ("writer", DERIVED)
        assert (under_way["done"], under_way["total"], under_way["unit"]) == (4, 5, "blocks")
        assert call(server, reader).json["underWay"]["startedBy"] is None
        assert call(server, reader, method="DELETE").status == 403
        assert call(server, writer, method="DELETE").status == 200
        wait_until(lambda: call(server, writer).json["underWay"] is None)
    found = call(server, writer).json
    assert found["stopped"]["message"] == "The verification was stopped"
    assert found["report"] is None
    assert call(server, writer, method="DELETE").status == 404
    start(server, writer)
    assert report(server, writer)["ok"]
    assert call(server, writer).json["stopped"] is None


def test_it_ends_with_the_server(workspace: Workspace, writer: str) -> None:
    with stalled_engine():
        with serving(workspace, query_memory=MEMORY) as server:
            start(server, writer)
            wait_until(lambda: call(server, writer).json["underWay"]["action"] == "replaying")
        with serving(workspace, query_memory=MEMORY) as server:
            assert call(server, writer).json == {"underWay": None, "stopped": None, "report": None}


def test_an_engine_that_fails_is_a_finding(workspace: Workspace, writer: str) -> None:
    with stalled_engine(), serving(workspace, query_memory=MEMORY, ingest_timeout=0.1) as server:
        assert start(server, writer).status == 202
        [finding] = report(server, writer)["findings"]
        assert finding["message"].startswith("Cannot be replayed: The query took longer than 0.1 s")
        assert finding["check"] == "replay"


def test_who_is_no_admin_has_spark_in_a_whole_sandbox_only_and_that_is_no_finding_of_the_dataset(
    workspace: Workspace, writer: str
) -> None:
    workspace.config.set("engine.sandbox", "off")
    run_by_spark(workspace)
    with serving(Workspace.open(workspace.root)) as server:
        start(server, writer)
        assert report(server, writer) is None
        stopped = call(server, writer).json["stopped"]
        assert "runs Spark queries only for admins" in stopped["message"]
        assert stopped["code"] == SandboxRequired.code


def run_by_spark(workspace: Workspace) -> None:
    """One more run of the derivative, which says that Spark has made it."""
    feed(workspace, SOURCE, "77 later", day=3)
    source, dataset = workspace.storage.get(SOURCE), workspace.storage.get(DERIVED)
    state = dataset.state
    assert state.set_transform is not None
    [known] = state.query_inputs
    item = ExecuteTransformInput(
        dataset_id=source.handle.id,
        prev_block_hash=known.last_block_hash,
        new_block_hash=source.state.head,
        prev_offset=known.last_offset,
        new_offset=source.state.last_offset,
    )
    by_spark = replace(state.set_transform, transform=replace(state.set_transform.transform, engine="spark"))
    watermark = source.state.watermark
    run = ExecuteTransform(query_inputs=(item,), prev_offset=state.last_offset, new_watermark=watermark)
    chain = dataset.layout.chain
    chain.commit(chain.prepare(state, [by_spark, run], Timestamp.now()))


def test_who_may_verify_and_nonsense(server: DatasetServer, workspace: Workspace, writer: str) -> None:
    reader = Tokens(workspace.odf).new("reader", Scope.READ)
    assert start(server, None).status == 401
    assert start(server, reader).status == 403
    assert call(server, None).status == 401
    assert call(server, reader).status == 200
    assert start(server, writer, "com.missing").status == 404
    assert call(server, writer, method="POST", body={"repair": True}).status == 422
    assert call(server, writer, method="POST", body={"recursive": "perhaps"}).status == 422
