"""Transports: nothing but the protocol on the wire, ends that are clean, calls that are cancelled, guards of HTTP."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest
from support.servers.agents import COMMAND, PUBLIC, Agent, over_http, over_stdio
from support.servers.serving import PATIENCE, Answer, ask, serving, wait_until

from odfpy.agents.http import PATH, McpApp
from odfpy.coordinator.workspace import Workspace
from odfpy.serving.callers.tokens import Scope, Tokens
from odfpy.serving.server import DatasetServer

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}
ENDLESS = "select sum(a.value + b.value) as n from generate_series(1, 10000000) as a, generate_series(1, 10000000) as b"


@contextmanager
def process(workspace: Workspace) -> Iterator[subprocess.Popen[str]]:
    """A server whose pipes the test holds, past the first exchange."""
    command = [*COMMAND, "-w", str(workspace.root), "mcp"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, text=True, **pipes) as started:  # type: ignore[call-overload]
        try:
            send(started, json.dumps(INITIALIZE))
            assert receive(started)["result"]["serverInfo"]["name"] == "odf"
            send(started, '{"jsonrpc":"2.0","method":"notifications/initialized"}')
            yield started
        finally:
            started.kill()


def send(started: subprocess.Popen[str], line: str) -> None:
    assert started.stdin
    started.stdin.write(f"{line}\n")
    started.stdin.flush()


def receive(started: subprocess.Popen[str]) -> dict[str, Any]:
    assert started.stdout
    found: dict[str, Any] = json.loads(started.stdout.readline())
    return found


def call(number: int, tool: str, **arguments: Any) -> str:
    parameters = {"name": tool, "arguments": arguments}
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": parameters})


# --- Standard input and output ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("way", "is_busy"), [("end of input", True), (signal.SIGINT, False), (signal.SIGINT, True), (signal.SIGTERM, True)]
)
def test_it_ends_cleanly(workspace: Workspace, way: str | signal.Signals, is_busy: bool):
    with process(workspace) as started:
        if is_busy:
            send(started, call(2, "query", sql=ENDLESS))
            send(started, '{"jsonrpc":"2.0","id":3,"method":"ping"}')
            assert receive(started)["id"] == 3
        if isinstance(way, signal.Signals):
            started.send_signal(way)
        else:
            assert started.stdin
            started.stdin.close()
        assert started.wait(PATIENCE) == 0
        assert started.stderr
        assert started.stderr.read() == ""


def test_it_ends_when_nobody_takes_its_answers(workspace: Workspace):
    with process(workspace) as started:
        assert started.stdout
        started.stdout.close()
        send(started, '{"jsonrpc":"2.0","id":2,"method":"ping"}')
        assert started.wait(PATIENCE) == 0
        assert started.stderr
        assert started.stderr.read() == ""


def test_what_is_no_message_is_an_error_of_the_protocol(workspace: Workspace):
    with process(workspace) as started:
        for line in ("nonsense", "[1]", '{"jsonrpc":"1.0","id":9}', '{"x":"' + "y" * 17 * 1024**2 + '"}', "\x00\ud7ff"):
            send(started, line)
            assert receive(started)["error"]["code"] == -32700
        send(started, '{"jsonrpc":"2.0","id":5,"method":"tools/nonsense"}')
        assert receive(started)["error"]["code"] == -32601
        send(started, '{"jsonrpc":"2.0","id":6,"method":"tools/call","params":{"name":5}}')
        assert receive(started)["error"]["code"] == -32602
        send(started, call(7, "query", sql=f'select count(*) as n from "{PUBLIC}"'))
        assert receive(started)["result"]["structuredContent"]["rows"] == [[41]]
        assert started.stdin
        started.stdin.close()
        assert started.wait(PATIENCE) == 0
        assert started.stderr
        assert "Traceback" not in started.stderr.read()


def test_a_query_is_cancelled_by_its_client(agent: Agent):
    for _ in range(6):  # more than run at the same time: each must leave its place
        call = agent.begin("query", sql=ENDLESS, proof=False)
        assert agent.answer("find_datasets")["total"] == 5
        call.cancel()
    assert agent.answer("query", sql=f'select count(*) as n from "{PUBLIC}"')["rows"] == [[41]]


def test_a_query_that_takes_too_long_is_stopped(workspace: Workspace, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ODF_SERVE_QUERY_TIMEOUT", "1")
    with over_stdio(workspace.root) as agent:
        assert "took longer than 1 s" in agent.refusal("query", sql=ENDLESS, proof=False)


# --- HTTP -------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def server(workspace: Workspace) -> Iterator[DatasetServer]:
    mounted_apps = {PATH: lambda app: McpApp(app, [workspace])}
    with serving(
        workspace, mounted_apps=mounted_apps, running_queries=1, base_url="https://data.example.org"
    ) as server:
        yield server


def post(server: DatasetServer, body: Any, **headers: str) -> Answer:
    accept = {"accept": "application/json, text/event-stream", "content_type": "application/json"}
    return ask(f"{server.url}/mcp", method="POST", body=json.dumps(body).encode(), **{**accept, **headers})


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"host": "data.example.org"}, 200),
        ({"host": "data.example.org", "origin": "https://data.example.org"}, 200),
        ({"host": "evil.example"}, 421),
        ({"host": "127.0.0.1.evil.example"}, 421),
        ({"origin": "https://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"content_type": "text/plain"}, 400),
        ({"Authorization": "Bearer nonsense"}, 401),
    ],
)
def test_pages_of_others_and_unknown_tokens_are_refused(server: DatasetServer, headers: dict[str, str], status: int):
    assert post(server, INITIALIZE, **headers).status == status


def test_a_cookie_is_no_token_for_agents(server: DatasetServer, workspace: Workspace):
    token = Tokens(workspace.odf).new("page", Scope.READ)
    listed = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "find_datasets", "arguments": {}}}
    cookie = f"odf_session_{urlsplit(server.url).port}={token}"
    answer = post(server, listed, cookie=cookie, mcp_protocol_version="2025-06-18")
    assert answer.status == 200
    assert b'"total":1' in answer.body


@pytest.mark.parametrize("body", [b"", b"nonsense", b"[]", b'{"jsonrpc":"2.0"}', b"\xff"])
def test_broken_messages_are_refused(server: DatasetServer, body: bytes):
    answer = ask(
        f"{server.url}/mcp",
        method="POST",
        body=body,
        accept="application/json, text/event-stream",
        content_type="application/json",
    )
    assert answer.status == 400
    assert answer.json["error"]["code"] in (-32700, -32600, -32602)


def test_other_paths_are_not_there(server: DatasetServer):
    assert ask(f"{server.url}/mcp/nonsense").status == 404
    assert ask(f"{server.url}/mcp", method="PUT", body=b"").status == 405


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_query_whose_client_goes_away_leaves_its_place(server: DatasetServer, mode: str):
    gate = server.app.state.gate
    with over_http(server.url, mode=mode) as agent:
        call = agent.begin("query", sql=ENDLESS, proof=False)
        wait_until(lambda: gate._here.total() == 1)
        call.cancel()
    wait_until(lambda: gate._here.total() == 0)


def test_a_server_without_agents_has_no_such_path(workspace: Workspace):
    with serving(workspace) as server:
        assert post(server, INITIALIZE).status in (401, 404, 405)
