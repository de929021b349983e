"""Attacks in their real size on `odf serve` as a process: it stays small, and answers while they last."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.flight as fl
import pytest
from support.servers.flight import OPEN, act, command, small_workspace
from support.servers.serving import PATIENCE, ask
from websockets.sync.client import connect

from odfpy.serving.flight.messages import message, unwrap, wrap

pytestmark = pytest.mark.attack

MAX_MEMORY = 300 << 20


@dataclass(frozen=True)
class Running:
    """A server.

    Attributes:
        url: for HTTP.
        flight: for Flight SQL.
        process: the process.
    """

    url: str
    flight: str
    process: subprocess.Popen[str]

    @property
    def most_memory(self) -> int:
        """Bytes that it had in memory at most."""
        text = Path(f"/proc/{self.process.pid}/status").read_text(encoding="utf-8")
        return int(text.partition("VmHWM:")[2].split()[0]) * 1024

    def dial(self) -> socket.socket:
        parts = urlsplit(self.url)
        return socket.create_connection((parts.hostname or "", parts.port or 0), PATIENCE)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Running]:
    workspace = small_workspace(tmp_path / "w")
    words = [
        sys.executable,
        "-m",
        "odfpy",
        "-q",
        "-w",
        str(workspace.root),
        "serve",
        "--port",
        "0",
        "--flight-port",
        "0",
    ]
    with subprocess.Popen(
        words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        try:
            assert process.stdout
            first, second = process.stdout.readline(), process.stdout.readline()
            found = Running(first.split()[-1], second.split()[-1], process)
            ask(f"{found.url}/query?query=select+1")  # so that all is loaded before anything is measured
            yield found
        finally:
            process.kill()


@contextmanager
def bearing(server: Running) -> Iterator[None]:
    """While something is done to the server, it answers within a second, and stays small."""
    slowest, is_over = [0.0], threading.Event()

    def look() -> None:
        while not is_over.wait(0.2):
            begin = time.monotonic()
            assert ask(f"{server.url}/health").status == 200
            slowest.append(time.monotonic() - begin)

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        yield
        time.sleep(1)
    finally:
        is_over.set()
        watcher.join()
    print(f"{server.most_memory >> 20} MiB, slowest /health {max(slowest):.2f} s")  # noqa: T201
    assert server.most_memory < MAX_MEMORY
    assert max(slowest) < 1
    assert len(slowest) > 2


def quietly(work: Callable[[], object]) -> None:
    with suppress(Exception):
        work()


def test_unfinished_bodies(server: Running) -> None:
    head = b"POST /query HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 16000000\r\n\r\n"
    with bearing(server), ExitStack() as stack:
        for _ in range(120):
            connection = stack.enter_context(server.dial())
            with suppress(OSError):
                connection.sendall(head + b" " * 15_000_000)


def test_json_over_a_websocket(server: Running) -> None:
    large = "[" + "[]," * (20 << 20) + "[]]"

    def send() -> None:
        url = f"{server.url.replace('http', 'ws')}/{OPEN}/pull"
        with connect(url, additional_headers={"x-odf-smtp-version": "1"}, compression="deflate") as connection:
            connection.send(large)
            connection.recv(PATIENCE)

    with bearing(server):
        threads = [threading.Thread(target=quietly, args=(send,)) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


@pytest.mark.parametrize("compression", [None, "zstd"])
def test_parameters_of_flight(server: Running, compression: str | None) -> None:
    zeros = pa.record_batch([pa.array([bytes(256 << 20)])], ["1"])
    options = fl.FlightCallOptions(write_options=pa.ipc.IpcWriteOptions(compression=compression))

    def send() -> None:
        with closing(fl.connect(server.flight)) as client:
            request = message("ActionCreatePreparedStatementRequest", query="select ?")
            handle = unwrap(act(client, "CreatePreparedStatement", wrap(request))).prepared_statement_handle
            descriptor = command("CommandPreparedStatementQuery", prepared_statement_handle=handle)
            writer, reader = client.do_put(descriptor, zeros.schema, options)
            writer.write_batch(zeros)
            writer.done_writing()
            reader.read()
            writer.close()

    with bearing(server):
        for _ in range(6):
            quietly(send)


def test_prepared_statements(server: Running) -> None:
    with bearing(server), closing(fl.connect(server.flight)) as client:
        for number in range(20):
            text = f"select {number} -- " + "x" * 200_000
            quietly(lambda text=text: act(client, "CreatePreparedStatement", wrap(_prepared(text))))  # type: ignore[misc]


def _prepared(text: str) -> object:
    return message("ActionCreatePreparedStatementRequest", query=text)


def test_patterns(server: Running) -> None:
    with bearing(server), closing(fl.connect(server.flight)) as client:
        for size in (30, 900, 100_000):
            ticket = fl.Ticket(wrap(message("CommandGetTables", table_name_filter_pattern="%m" * size + "%!")))
            quietly(lambda ticket=ticket: client.do_get(ticket).read_all())  # type: ignore[misc]


def test_answers_of_nulls(server: Running) -> None:
    columns = ", ".join(f"null as c{at}" for at in range(1000))
    body = json.dumps({"query": f"select {columns} from generate_series(1, 100000)", "limit": 100_000}).encode()
    with bearing(server):
        answer = ask(f"{server.url}/query", method="POST", body=body, content_type="application/json")
        assert answer.status == 400
