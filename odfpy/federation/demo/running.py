"""The running reference web: a process for each relay, and a socket that never responds.

No process outlives the one that started it, not even if that is killed.
"""

from __future__ import annotations

import os
import re
import selectors
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from odfpy.errors import OdfError
from odfpy.federation.client import Web, connect
from odfpy.federation.demo.documents import GUEST
from odfpy.federation.demo.layout import HOST, WebFolder
from odfpy.federation.demo.words import OFFLINE, RELAYS
from odfpy.sandbox.python import python_command, python_environment
from odfpy.sandbox.syscalls import die_with_parent

_ANSWERS: Final = re.compile(rb"answers at (grpc\+tls://\S+)")
_START_SECONDS: Final = 120.0
_END_SECONDS: Final = 20.0
_BACKLOG: Final = 128


@dataclass(frozen=True, slots=True)
class RunningWeb:
    """The reference web while it runs.

    Attributes:
        folder: its files.
        locations: location of each relay, by name: `grpc+tls://HOST:PORT`.
        pids: process ids of the relays, by name.
    """

    folder: WebFolder
    locations: dict[str, str]
    pids: dict[str, int]

    def connect(self, relay: str, user: str) -> Web:
        """Connect to the web through a relay, as one of the demo's users.

        Args:
            relay: name of the relay.
            user: name of the user.
        """
        folder = self.folder
        return connect(self.locations[relay], folder.certificate(user), folder.key(user), folder.authorities)


@contextmanager
def running_web(folder: WebFolder, *, port_base: int = 0, offline: bool = True) -> Iterator[RunningWeb]:
    """Run the reference web while the `with` block runs. Call it from the main thread: the processes end with that
    thread.

    Args:
        folder: its files.
        port_base: port of the first relay, the others use the next ones; 0 for any free ports.
        offline: whether to add the relay that never responds.

    Raises:
        OdfError: a relay does not start.
    """
    ports = {name: port_base + at if port_base else 0 for at, name in enumerate((*RELAYS, OFFLINE))}
    with ExitStack() as stack:
        locations = {}
        if offline:
            locations[OFFLINE] = _location(stack.enter_context(_silent(ports[OFFLINE])))
        processes: dict[str, subprocess.Popen[bytes]] = {}
        stack.callback(_end, processes)
        for name in RELAYS:
            processes[name] = _started(folder, name, ports[name])
        for name, process in processes.items():
            locations[name] = _answering(process, folder.workspace(name) / "relay.log", name)
        # The locations are known only now; applied documents take effect with the next query.
        for name in RELAYS:
            folder.apply(name, locations, offline=offline)
        web = RunningWeb(folder, locations, {name: process.pid for name, process in processes.items()})
        for name in RELAYS:
            with web.connect(name, GUEST) as asked:
                asked.entities()
        yield web


@contextmanager
def _silent(port: int) -> Iterator[socket.socket]:
    """Open a socket on which the kernel accepts connections, but no process responds."""
    with socket.socket() as listening:
        try:
            listening.bind((HOST, port))
        except OSError as error:
            raise OdfError(
                f"Cannot listen at {HOST}:{port}: {error.strerror}", hint="Choose other ports with --port-base."
            ) from error
        listening.listen(_BACKLOG)
        yield listening


def _location(listening: socket.socket) -> str:
    return f"grpc+tls://{HOST}:{listening.getsockname()[1]}"


def _started(folder: WebFolder, relay: str, port: int) -> subprocess.Popen[bytes]:
    """Start the process of a relay."""
    root = folder.workspace(relay)
    command = python_command("odfpy", "relay", "serve", "--host", HOST, "--port", str(port))

    def tied() -> None:
        die_with_parent(signal.SIGTERM)

    with (root / "relay.log").open("wb") as log:
        return subprocess.Popen(
            command,
            cwd=root,
            env=python_environment(os.environ, PYTHONUNBUFFERED="1"),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            start_new_session=True,  # Ctrl-C goes to the parent process, which then stops this one
            preexec_fn=tied,  # noqa: PLW1509  it takes no lock that another thread could hold
        )


def _answering(process: subprocess.Popen[bytes], log: Path, relay: str) -> str:
    """Wait until a relay reports the location that it listens on."""
    assert process.stdout is not None  # noqa: S101 - a pipe
    ends = time.monotonic() + _START_SECONDS
    output = b""
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while (left := ends - time.monotonic()) > 0 and selector.select(left):
            piece = os.read(process.stdout.fileno(), 4096)
            output += piece
            if (match := _ANSWERS.search(output)) and output.endswith(b"\n"):
                return match[1].decode()
            if not piece:
                break
    last = log.read_text(encoding="utf-8", errors="replace").strip()[-500:]
    raise OdfError(
        f"The relay {relay} does not start: {last or 'it says nothing'}", hint="Choose other ports with --port-base."
    )


def _end(processes: dict[str, subprocess.Popen[bytes]]) -> None:
    """Stop all processes; those that do not stop are killed."""
    for process in processes.values():
        process.terminate()
    ends = time.monotonic() + _END_SECONDS
    for process in processes.values():
        try:
            process.wait(max(0.1, ends - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()
