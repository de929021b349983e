"""A token sees what it may read, and nothing tells it that there is more; a pattern hides what does not fit."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp.types import ResourceTemplateReference
from support.chains.workspaces import derivative, feed, root, workspace_with
from support.servers.agents import (
    COMMAND,
    DERIVED,
    EVIL,
    MIXED,
    PRIVATE,
    PUBLIC,
    Agent,
    error_of,
    over_http,
    over_stdio,
    text_of,
)
from support.servers.serving import ask, serving

from odfpy.agents.http import PATH, McpApp
from odfpy.coordinator.workspace import Workspace
from odfpy.serving.callers.tokens import Scope, Tokens
from odfpy.serving.callers.visibility import Visibility, set_visibility
from odfpy.serving.server import DatasetServer

COUNT = f'select count(*) as n from "{PUBLIC}"'


@pytest.fixture(scope="module")
def server(workspace: Workspace) -> Iterator[DatasetServer]:
    with serving(workspace, mounted_apps={PATH: lambda app: McpApp(app, [workspace])}) as server:
        yield server


@pytest.fixture(scope="module")
def reader(workspace: Workspace) -> str:
    return Tokens(workspace.odf).new("reader", Scope.READ)


@pytest.fixture(scope="module", params=["anybody over HTTP", "a pattern over stdio"])
def stranger(request: pytest.FixtureRequest, workspace: Workspace) -> Iterator[Agent]:
    """An agent that sees the public dataset only."""
    if "stdio" in request.param:
        with over_stdio(workspace.root, "--dataset", PUBLIC) as agent:
            yield agent
    else:
        with over_http(request.getfixturevalue("server").url) as agent:
            yield agent


def test_strangers_find_public_datasets_only(stranger: Agent):
    assert [one["name"] for one in stranger.answer("find_datasets")["datasets"]] == [PUBLIC]
    assert stranger.answer("find_datasets", search="secret")["total"] == 0
    assert [one.name for one in stranger.ask("list_resources").resources] == [PUBLIC]
    assert stranger.answer("query", sql=COUNT)["rows"] == [[41]]


HIDING: list[tuple[str, dict[str, Any]]] = [
    ("describe_dataset", {"dataset": "?"}),
    ("query", {"sql": 'select * from "?"'}),
    ("query", {"sql": "select * from odf_current('?')"}),
    ("query", {"sql": "select * from odf_as_at('?', '2024-01-01')"}),
    ("query", {"sql": "select 1", "blocks": {"?": "f1620" + "0" * 64}}),
    ("row_provenance", {"dataset": "?", "offset": 0}),
    ("dataset_history", {"dataset": "?"}),
    ("compare_states", {"dataset": "?", "old": "2024-01-01", "new": "2030-01-01"}),
]


@pytest.mark.parametrize(("tool", "arguments"), HIDING)
def test_a_hidden_dataset_is_refused_as_one_that_is_not_there(stranger: Agent, tool: str, arguments: dict[str, Any]):
    if tool not in stranger.tools():
        assert "no tool" in error_of(stranger, "call_tool", tool, arguments).message
        return

    def refusal(name: str) -> str:
        filled = json.loads(json.dumps(arguments).replace("?", name))
        text = stranger.refusal(tool, **filled)
        return text[text.index("{") : text.rindex("}")].replace(name, "?")

    hidden, missing = refusal(PRIVATE), refusal("com.example.sacred")
    assert hidden == missing
    for name in (PRIVATE, DERIVED, MIXED, EVIL):
        assert name not in hidden


def test_a_hidden_dataset_is_not_there_by_id_block_or_resource(stranger: Agent, workspace: Workspace):
    dataset = workspace.storage.get(PRIVATE)
    assert PRIVATE not in stranger.refusal("describe_dataset", dataset=str(dataset.handle.id))
    head = str(dataset.state.head)
    assert PRIVATE not in stranger.refusal("query", sql=COUNT, blocks={PUBLIC: head})
    assert PRIVATE not in stranger.refusal("compare_states", dataset=PUBLIC, old=head, new=head)
    for uri in (f"odf://dataset/{PRIVATE}", f"odf://dataset/{PRIVATE}/schema", f"odf://dataset/{dataset.handle.id}"):
        assert "No dataset" in error_of(stranger, "read_resource", uri).message


def test_completion_knows_visible_names_only(stranger: Agent, agent: Agent):
    reference = ResourceTemplateReference(uri="odf://dataset/{name}")
    argument = {"name": "name", "value": "com."}
    assert stranger.ask("complete", reference, argument).completion.values == [PUBLIC]
    assert agent.ask("complete", reference, argument).completion.values == [MIXED, PUBLIC, PRIVATE, DERIVED]


def test_rows_of_hidden_inputs_are_not_told(workspace: Workspace, agent: Agent):
    with over_stdio(workspace.root, "--dataset", MIXED) as blinkered:
        assert blinkered.answer("describe_dataset", dataset=MIXED)["inputs"] != [PRIVATE]
        found = blinkered.answer("row_provenance", dataset=MIXED, offset=0)
        assert found["hidden_datasets"] == 1
        assert [one["dataset"] for one in found["datasets"]] == [MIXED]
        assert found["datasets"][0]["rows"][0]["made_of"] == []
        assert "hushed" not in json.dumps(found)
    assert agent.answer("row_provenance", dataset=MIXED, offset=0)["datasets"][1]["dataset"] == PRIVATE


@pytest.mark.parametrize("way", ["http", "stdio"])
@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_token_reads_its_workspace(server: DatasetServer, workspace: Workspace, reader: str, way: str, mode: str):
    with (
        over_http(server.url, reader, mode)
        if way == "http"
        else over_stdio(workspace.root, "--token", reader, mode=mode) as agent
    ):
        assert agent.answer("find_datasets")["total"] == 5
        assert agent.answer("query", sql=f'select count(*) as n from "{PRIVATE}"')["rows"] == [[2]]
        assert "pull" not in agent.tools()
        assert "no tool" in error_of(agent, "call_tool", "pull", {"dataset": PRIVATE}).message


def test_a_token_that_ends_is_refused(server: DatasetServer, workspace: Workspace):
    tokens = Tokens(workspace.odf)
    text = tokens.new("brief", Scope.READ)
    with over_stdio(workspace.root, "--token", text) as agent:
        assert agent.answer("find_datasets")["total"] == 5
        tokens.revoke("brief")
        assert agent.answer("find_datasets")["total"] == 1
    refused = ask(f"{server.url}/mcp", method="POST", token=text, body=b"{}", content_type="application/json")
    assert refused.status == 401
    assert refused.headers["www-authenticate"].startswith("Bearer")
    done = subprocess.run(
        [*COMMAND, "-w", str(workspace.root), "mcp", "--token", text], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "Unknown or expired" in done.stderr


def test_a_proof_is_for_whoever_has_asked(server: DatasetServer, workspace: Workspace, reader: str, tmp_path: Path):
    with over_http(server.url, reader) as agent, over_http(server.url) as other:
        proof = agent.answer("query", sql=f'select count(*) as n from "{PRIVATE}"')["proof"]
        assert agent.answer("check_proof", proof=proof["hash"])["ok"]
        assert "There is no proof" in other.refusal("check_proof", proof=proof["hash"])
    place = f"{server.url}/mcp/proofs/{proof['hash']}"
    assert place in proof["check"]
    assert ask(place).status == 404
    assert ask(place, method="POST", token=reader, body=b"").status == 405
    answer = ask(place, token=reader)
    assert answer.status == 200
    (tmp_path / "answer.json").write_bytes(answer.body)
    command = [*COMMAND, "-w", str(workspace.root), "verify-result", str(tmp_path / "answer.json")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "gives the same answer" in done.stdout, done.stderr


def test_a_token_of_scope_write_may_pull_and_nothing_else(tmp_path: Path):
    workspace = workspace_with(
        tmp_path / "workspace", root("com.example.a", "{kind: Append}"), derivative("com.example.b", "com.example.a")
    )
    feed(workspace, "com.example.a", "1 one", "2 two")
    token = Tokens(workspace.odf).new("writer", Scope.WRITE)
    with over_stdio(workspace.root, "--token", token) as agent:
        tools = agent.tools()
        assert [name for name, tool in tools.items() if not tool.annotations.read_only_hint] == ["pull"]
        assert tools["pull"].annotations.destructive_hint is False
        assert agent.answer("pull", dataset="com.example.b")["new_rows"] == 1
        assert agent.answer("pull", dataset="com.example.b")["outcome"] == "up to date"
        assert "Not a" in agent.refusal("pull", dataset="https://example.org/x")
        assert "Not a" in agent.refusal("pull", dataset="com.example.%")


def test_a_writer_does_not_pull_what_belongs_to_others(tmp_path: Path):
    mine = workspace_with(tmp_path / "mine", root("com.example.a", "{kind: Append}"))
    theirs = workspace_with(tmp_path / "theirs", root("com.example.b", "{kind: Append}"))
    set_visibility(theirs.storage.get("com.example.b").folder, Visibility.PUBLIC)
    token = Tokens(mine.odf).new("writer", Scope.WRITE)
    mounted_apps = {PATH: lambda app: McpApp(app, [mine, theirs])}
    with serving(mine, theirs, mounted_apps=mounted_apps) as server, over_http(server.url, token) as agent:
        assert "scope write" in agent.refusal("pull", dataset="com.example.b")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"origin": "null"}, 403),
        ({"origin": "file://"}, 403),
        ({"origin": "http://[evil"}, 403),
        ({"host": "evil.example"}, 421),
        ({"host": "[evil"}, 421),
        ({"origin": "http://localhost:1"}, 403),
    ],
)
def test_browsers_do_not_ask_for_others(server: DatasetServer, reader: str, headers: dict[str, str], status: int):
    body = {"accept": "application/json, text/event-stream", "content_type": "application/json"}
    answer = ask(f"{server.url}/mcp", method="POST", body=b"{}", token=reader, **body, **headers)
    assert answer.status == status


def test_strangers_do_not_follow_rows(server: DatasetServer):
    with over_http(server.url) as agent:
        assert "row_provenance" not in agent.tools()


def test_texts_of_errors_name_no_files(stranger: Agent, workspace: Workspace):
    for tool, arguments in HIDING:
        if tool not in stranger.tools():
            continue
        filled = json.loads(json.dumps(arguments).replace("?", PRIVATE))
        assert str(workspace.root) not in text_of(stranger.call(tool, **filled))
