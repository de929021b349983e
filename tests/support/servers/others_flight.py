"""Third-party Flight SQL servers, as separate processes; `.ci/flight` installs them."""

from __future__ import annotations

import os
import re
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support.servers.serving import wait_until

PROGRAMS = Path(__file__).resolve().parents[3] / ".venv-flight" / "bin"
KEY = "sesame"
"""The token that BenoStreamDB requires."""


@contextmanager
def benostream(warehouse: Path) -> Iterator[str]:
    """BenoStreamDB, in Rust on DataFusion, without tables."""
    port = _free_port()  # it does not report its port
    settings = {
        "BSDB_WAREHOUSE": str(warehouse),
        "BSDB_FLIGHT_PORT": str(port),
        "BSDB_METRICS_PORT": "0",
        "BSDB_API_KEY": KEY,
        "BSDB_AUTH_REQUIRED": "true",
        "HOME": str(warehouse),
    }
    with _running([PROGRAMS / "benostreamdb-flight"], settings) as url:
        yield url


@contextmanager
def sqlite() -> Iterator[str]:
    """The example of Arrow's Go library: SQLite in memory, with the tables of its tests."""
    with _running([PROGRAMS / "sqlite_flightsql_server", "-host", "127.0.0.1", "-port", "0"], {}) as url:
        yield url


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def _listens(port: int) -> bool:
    """Return whether a server listens: it may report so a moment earlier."""
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def _running(command: list[str | Path], settings: dict[str, str]) -> Iterator[str]:
    environment = {**os.environ, **settings}
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        try:
            assert process.stdout
            said = []
            for line in process.stdout:
                said.append(line)
                if found := re.search(r"127\.0\.0\.1:(\d+)", line):
                    wait_until(lambda port=int(found[1]): process.poll() is not None or _listens(port))
                    yield f"grpc://127.0.0.1:{found[1]}"
                    break
            else:
                raise AssertionError("".join(said))
        finally:
            process.kill()
