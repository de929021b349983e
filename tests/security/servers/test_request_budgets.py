"""What callers send takes no more memory than there is for it, and whoever sends too much takes nobody's place."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from support.servers.serving import PATIENCE, ask, put, serving, wait_until, workspace_at
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from odfpy.coordinator.workspace import Workspace
from odfpy.serving.callers.tokens import Scope, Tokens
from odfpy.serving.http.budget import BudgetHolder, MemoryBudget, OverBudget, weight_of_json
from odfpy.serving.server import DatasetServer
from odfpy.serving.settings import ServeSettings

VERSION = {"x-odf-smtp-version": "1"}
NAME = "com.example.open"
FEW: dict[str, Any] = {
    "max_stranger_body": 64 * 1024,
    "request_memory": 4 << 20,
    "request_memory_each": 2 << 20,
    "stranger_memory": 1 << 20,
    "stranger_memory_each": 512 * 1024,
}


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    found = workspace_at(tmp_path / "w")
    put(found, NAME, 1, public=True)
    return found


@pytest.fixture
def server(workspace: Workspace) -> Iterator[DatasetServer]:
    with serving(workspace, **FEW) as found:
        yield found


def budget_of(server: DatasetServer) -> MemoryBudget:
    found: MemoryBudget = server.app.state.budget
    return found


def dial(server: DatasetServer) -> socket.socket:
    parts = urlsplit(server.url)
    return socket.create_connection((parts.hostname or "", parts.port or 0), PATIENCE)


def post(path: str, length: int, kind: str = "application/json", **headers: str) -> bytes:
    fields = {"Host": "x", "Content-Type": kind, "Content-Length": str(length), **headers}
    return (
        f"POST {path} HTTP/1.1\r\n".encode() + b"".join(f"{k}: {v}\r\n".encode() for k, v in fields.items()) + b"\r\n"
    )


def status_of(connection: socket.socket) -> int:
    return int(connection.recv(65536).split(b" ")[1])


def is_well(server: DatasetServer) -> bool:
    begin = time.monotonic()
    return ask(f"{server.url}/health").status == 200 and time.monotonic() - begin < 60


# --- The budget ---


def test_a_caller_has_his_share_and_strangers_leave_the_rest_to_others() -> None:
    budget = MemoryBudget(ServeSettings(**FEW))
    first = budget.reserve(BudgetHolder.at("192.0.2.1"), 512 * 1024)
    with pytest.raises(OverBudget, match="one caller") as own:
        budget.reserve(BudgetHolder.at("192.0.2.1"), 1)
    budget.reserve(BudgetHolder.at("192.0.2.2"), 512 * 1024)
    with pytest.raises(OverBudget, match="memory left") as all_of_it:
        budget.reserve(BudgetHolder.at("192.0.2.3"), 1)
    assert (own.value.is_own, all_of_it.value.is_own) == (True, False)
    with budget.reserve(BudgetHolder.of_token("me"), 1 << 20) as held:
        with pytest.raises(OverBudget):
            held.grow(2 << 20)
        assert (held.size, budget.taken) == (1 << 20, 2 << 20)
    first.pass_to(BudgetHolder.of_token("me"))
    budget.reserve(BudgetHolder.at("192.0.2.3"), 1)
    first.release()
    assert budget.taken == 512 * 1024 + 1


@pytest.mark.parametrize("text", ["[[],[],[]]", '{"a": {"b": "c"}}', "[1,2,3]", '["a","b"]'])
def test_json_weighs_what_is_made_of_it(text: str) -> None:
    import sys

    def size(tree: Any) -> int:
        parts = [*tree, *tree.values()] if isinstance(tree, dict) else tree if isinstance(tree, list) else ()
        return sys.getsizeof(tree) + sum(map(size, parts))

    large = f"[{','.join([text] * 1000)}]"
    assert weight_of_json(large) > size(json.loads(large)) / 3
    assert weight_of_json(large.encode()) == weight_of_json(large)


# --- REST ---


def test_without_a_token_little_may_be_sent(server: DatasetServer, workspace: Workspace) -> None:
    token = Tokens(workspace.odf).new("me", Scope.READ)
    body = json.dumps({"query": "select 1", "more": "x" * 70_000}).encode()
    fields = {"method": "POST", "body": body, "content_type": "application/json"}
    assert ask(f"{server.url}/query", **fields).status == 413
    assert ask(f"{server.url}/query", token="odf_wrong", **fields).status == 401
    assert ask(f"{server.url}/query", token=token, **fields).status == 422
    wait_until(lambda: budget_of(server).taken == 0)


def test_a_token_is_asked_for_before_the_body_is_taken_in(server: DatasetServer) -> None:
    with dial(server) as connection:
        connection.sendall(post("/query", 1 << 30) + bytes(80_000))
        assert status_of(connection) == 413


@pytest.mark.parametrize(
    "path",
    [
        "/signed-data/info",
        "/signed-checkpoints/verification",
        "/com.example/signed-data/verification",
        "/platform/users/signed-data/tokens",
    ],
)
def test_no_name_of_a_dataset_or_user_lifts_the_limits(server: DatasetServer, path: str) -> None:
    body = json.dumps({"paths": [], "more": "x" * 70_000}).encode()
    assert ask(f"{server.url}{path}", method="POST", body=body, content_type="application/json").status == 413


def test_unfinished_bodies_do_not_add_up(server: DatasetServer) -> None:
    with ExitStack() as stack:
        connections = [stack.enter_context(dial(server)) for _ in range(40)]
        for connection in connections:
            connection.sendall(post("/query", 60_000) + b" " * 50_000)
        budget = budget_of(server)
        wait_until(lambda: budget.taken > 300_000)
        assert is_well(server)
        assert budget.taken <= FEW["stranger_memory_each"]
        refused = 0
        for connection in connections:
            connection.settimeout(0.1)
            try:
                refused += status_of(connection) == 429
            except TimeoutError:
                continue
        assert refused >= 30
    wait_until(lambda: budget.taken == 0)


def test_small_json_that_becomes_large_is_refused(server: DatasetServer) -> None:
    body = b"[" + b"{}," * 5000 + b"{}]"
    answer = ask(f"{server.url}/query", method="POST", body=body, content_type="application/json")
    assert answer.status == 429
    assert "E460" not in answer.body.decode()
    assert answer.headers["retry-after"] == "1"


# --- WebSockets ---


def pulling(server: DatasetServer, **options: Any) -> Any:
    url = f"{server.url.replace('http', 'ws')}/{NAME}/pull"
    return connect(url, additional_headers=VERSION, **options)


def test_nothing_is_compressed(server: DatasetServer) -> None:
    with pulling(server, compression="deflate") as connection:
        assert connection.protocol.extensions == []


def closed_with(connection: Any, text: str | list[str]) -> int:
    try:
        connection.send(text)
        while True:
            connection.recv(PATIENCE)
    except ConnectionClosed as closed:
        return closed.rcvd.code if closed.rcvd else 1006


def test_whoever_pulls_says_little(workspace: Workspace) -> None:
    with serving(workspace) as server, pulling(server) as connection:
        assert closed_with(connection, "[" + " " * (5 << 20)) in (1009, 1006)
        wait_until(lambda: budget_of(server).taken == 0)


def test_messages_in_many_pieces_are_counted_while_they_come(server: DatasetServer) -> None:
    with pulling(server) as connection:
        assert closed_with(connection, (" " * 1000 for _ in range(1000))) in (1013, 1006)  # type: ignore[arg-type]
    wait_until(lambda: budget_of(server).taken == 0)
    assert is_well(server)


def test_frames_that_do_not_end_are_counted(server: DatasetServer) -> None:
    budget = budget_of(server)
    head = b"\x81\xff" + (1 << 20).to_bytes(8, "big") + b"\0\0\0\0"
    with ExitStack() as stack:
        ends = []
        for _ in range(4):
            connection = stack.enter_context(pulling(server, close_timeout=0.1))
            connection.socket.sendall(head + bytes(200_000))
            ends.append(connection)
        wait_until(lambda: budget.taken > 300_000)
        assert budget.taken <= FEW["stranger_memory_each"]
        assert is_well(server)
    wait_until(lambda: budget.taken == 0)


def test_a_message_that_is_small_and_becomes_large_is_refused(server: DatasetServer) -> None:
    with pulling(server) as connection:
        assert closed_with(connection, "[" + "{}," * 5000 + "{}]") == 1013
    wait_until(lambda: budget_of(server).taken == 0)


def test_nothing_may_come_before_the_handshake_is_answered(server: DatasetServer) -> None:
    parts = urlsplit(server.url)
    upgrade = "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
    with dial(server) as connection:
        connection.sendall(f"GET /{NAME}/pull HTTP/1.1\r\nHost: {parts.netloc}\r\n{upgrade}{key}\r\n".encode())
        connection.sendall(b"\x81\xff" + (1 << 20).to_bytes(8, "big") + bytes(500_000))
        with suppress(ConnectionResetError):
            while connection.recv(65536):
                pass
    wait_until(lambda: budget_of(server).taken == 0)


# --- Connections ---


def test_one_address_has_not_all_connections(workspace: Workspace) -> None:
    with serving(workspace, max_connections_each=3) as server, ExitStack() as stack:
        here = [stack.enter_context(dial(server)) for _ in range(3)]
        answer = ask(f"{server.url}/health")
        assert (answer.status, answer.body) == (503, b"Too many connections from this address")
        here.pop().close()
        wait_until(lambda: ask(f"{server.url}/health").status == 200)


def test_websockets_count_too(workspace: Workspace) -> None:
    with serving(workspace, max_connections_each=2) as server:
        for _ in range(3):  # whoever goes leaves his place
            with pulling(server):
                wait_until(lambda: ask(f"{server.url}/health").status == 200)
            wait_until(lambda: ask(f"{server.url}/health").status == 200)
        with pulling(server), pulling(server):
            assert ask(f"{server.url}/health").status == 503
