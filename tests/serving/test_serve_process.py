"""`odf serve` as a process: TLS, what it logs, how it ends; and the client's side of tokens against it."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow.flight as fl
import pytest
from support.chains.small_datasets import add_slice, image
from support.servers.certificates import self_signed
from support.servers.flight import query
from support.servers.serving import PATIENCE, ask, put, workspace_at

from odfpy.chain.layout import DatasetLayout
from odfpy.coordinator.storage.storage import StoredDataset
from odfpy.coordinator.workspace import Workspace
from odfpy.repository.credentials import Credentials
from odfpy.repository.exchange import send_dataset
from odfpy.repository.locations.http import http_dataset
from odfpy.repository.login import LoginRefused, try_token
from odfpy.repository.peer_errors import AccessRefused
from odfpy.repository.transfer.simple import transfer
from odfpy.serving.callers.tokens import Scope, Tokens

REPOSITORY = Path(__file__).resolve().parents[2]
LARGE = 24 << 20


@dataclass(frozen=True)
class Running:
    """A server in a separate process."""

    url: str
    process: subprocess.Popen[str]

    def end(self) -> tuple[int, list[dict[str, object]], str]:
        """Exit code, what was logged, and all that was written."""
        self.process.send_signal(signal.SIGTERM)
        out, err = self.process.communicate(timeout=PATIENCE)
        return (
            self.process.returncode,
            [json.loads(line) for line in err.splitlines() if line.startswith("{")],
            out + err,
        )


@contextmanager
def odf_serve(workspace: Workspace, *options: str) -> Iterator[Running]:
    command = [sys.executable, "-m", "odfpy", "-w", str(workspace.root), "serve", "--port", "0", *options]
    with subprocess.Popen(
        command, cwd=REPOSITORY, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        try:
            first = process.stdout.readline()
            assert first.startswith("Serving "), process.stderr.read() if process.stderr else ""
            yield Running(first.split()[-1], process)
        finally:
            process.kill()


def served(folder: Path) -> tuple[Workspace, StoredDataset, str]:
    workspace = workspace_at(folder / "workspace")
    return workspace, put(workspace, "com.example.rates", 1), Tokens(workspace.odf).new("reader", Scope.READ)


def test_with_tls_and_a_token_that_was_tried_and_kept(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace, dataset, token = served(home)
    certificate, key = self_signed(home)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    with odf_serve(workspace, "--tls-cert", str(certificate), "--tls-key", str(key)) as server:
        assert server.url.startswith("https://127.0.0.1:")
        known = try_token(server.url, token)
        assert known
        assert (known.name, known.scope) == ("reader", "read")
        with pytest.raises(LoginRefused, match="does not accept"):
            try_token(server.url, "odf_nonsense")
        Credentials().save(server.url, token)
        copy = DatasetLayout.in_memory()
        transfer(http_dataset(f"{server.url}/com.example.rates"), copy)
        assert image(copy) == image(dataset.layout)
        with pytest.raises(AccessRefused):
            send_dataset(copy, f"odf+{server.url}/com.example.other")
        code, logged, everything = server.end()
    assert code == 0
    assert [line["event"] for line in logged if line["event"] != "request"] == ["listening", "stopping", "stopped"]
    requests = [line for line in logged if line["event"] == "request"]
    assert {line["token"] for line in requests if line["path"] == "/com.example.rates/refs/head"} == {"reader"}
    assert token not in everything
    assert "odf_nonsense" not in everything


def test_what_is_under_way_ends_well_when_the_server_is_stopped(home: Path) -> None:
    workspace, dataset, token = served(home)
    name = add_slice(dataset.layout, bytes(LARGE))[0]
    with odf_serve(workspace) as server:
        host, port = server.url.removeprefix("http://").split(":")
        assert ask(f"{server.url}/com.example.rates/refs/head?token=s3cr3t").status == 401
        with socket.create_connection((host, int(port)), PATIENCE) as raw:
            raw.sendall(
                f"GET /com.example.rates/data/{name} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\r\n".encode()
            )
            received = raw.recv(65536)
            server.process.send_signal(signal.SIGINT)
            assert server.process.stderr
            log = [server.process.stderr.readline()]
            while '"stopping"' not in log[-1]:
                log.append(server.process.stderr.readline())
                assert log[-1], log
            total = len(received) - received.index(b"\r\n\r\n") - 4
            while data := raw.recv(1 << 20):
                total += len(data)
        assert total == LARGE
        assert server.process.wait(PATIENCE) == 0
    assert any("/refs/head" in line for line in log)
    assert not any("s3cr3t" in line for line in log)  # what follows the question mark is nobody's business


def test_certificates_that_are_of_no_use_are_told(home: Path) -> None:
    workspace, _, _ = served(home)
    (home / "other").mkdir()
    certificate, key = self_signed(home)
    other = self_signed(home / "other")[1]
    from odfpy.cli.app import run

    (home / "text.pem").write_text("no certificate")
    for options in ([certificate, other], [home / "text.pem", key], [home / "missing.pem", key]):
        words = ["-w", str(workspace.root), "serve", "--port", "0", "--tls-cert", str(options[0]), "--tls-key"]
        assert run([*words, str(options[1])]) in (1, 2)


def test_it_ends_though_a_client_of_flight_sql_takes_no_rows(home: Path) -> None:
    workspace, _, _ = served(home)
    with odf_serve(workspace, "--flight-port", "0", "--grace", "1") as running:
        assert running.process.stdout
        address = running.process.stdout.readline().removeprefix("Flight SQL at ").strip()
        with closing(fl.connect(address)) as client:
            endless = query("select * from generate_series(1, 100000000000)")
            reader = client.do_get(client.get_flight_info(endless).endpoints[0].ticket)
            reader.read_chunk()
            code, events, _ = running.end()
    assert code == 0
    assert "clients cut off" in [event["event"] for event in events]
