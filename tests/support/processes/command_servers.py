"""`odf` as a program in a folder of its own, with command servers of its own."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.processes.terminal import PATIENCE, environment

ORDINARY, SERVED, ALONE = "odf", "served", "alone"
"""Programs: as installed; one that fails when no server runs its command; one for which no server does."""

_ODF = """
import atexit, os, signal, sys
from odfpy.cli import app
signal.signal(signal.SIGINT, signal.default_int_handler)  # tests may run in the background, where it is ignored
sys.argv[0] = "odf"
command = app._command
if seconds := os.environ.get("LOOK_SECONDS"):
    from odfpy.cli.command_server import server
    server._LOOK_SECONDS = float(seconds)

def tell_of_modules():
    before = {*sys.modules}

    def tell():
        with open(into, "w") as file:
            file.write("\\n".join(sorted({*sys.modules} - before)))

    if into := os.environ.get("TELL_MODULES"):
        atexit.register(tell)
    command()

app._command = tell_of_modules
app.main()
"""
_SERVED = """
from odfpy.cli import app
app._command = lambda: sys.exit("error: no server has run it")
import sys
sys.argv[0] = "odf"
app.main()
"""


@dataclass(frozen=True)
class Done:
    """The result of a command: its exit status, and its output."""

    code: int
    out: str
    err: str


class CommandServers:
    """Runs commands, and knows their servers.

    Attributes:
        folder: folder of the two programs.
        runtime: where the sockets are.
    """

    def __init__(self, folder: Path, runtime: Path) -> None:
        self.folder = folder
        self.runtime = runtime
        for program, text in ((ORDINARY, _ODF), (ALONE, _ODF), (SERVED, _SERVED)):
            (folder / program).write_text(f"#!{sys.executable}\n{text}")
            (folder / program).chmod(0o755)
        (folder / "odf-commands").mkdir(mode=0o755)  # which is not private

    def environment(self, program: str = ORDINARY, **variables: str) -> dict[str, str]:
        runtime = self.folder if program == ALONE else self.runtime
        own = environment(XDG_RUNTIME_DIR=str(runtime), PATH=f"{self.folder}:{os.environ['PATH']}")
        return {**own, "ODF_COMMANDS_SERVER": "true", **variables}

    def start(self, program: str, *arguments: str, **options: Any) -> subprocess.Popen[str]:
        """Start a program; its streams are pipes, and its server is enabled by default."""
        streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        words = [str(self.folder / program), *arguments]
        return subprocess.Popen(words, **{"text": True, "env": self.environment(program), **streams, **options})

    def run(self, program: str, *arguments: str, stdin: str = "", **options: Any) -> Done:
        process = self.start(program, *arguments, **options)
        out, err = process.communicate(stdin, timeout=PATIENCE)
        return Done(process.returncode, out, err)

    def serve(self, workspace: Path, **options: Any) -> int:
        """Have a server started, and wait until it listens; return its process id."""
        before = {*self.sockets()}
        done = self.run(ORDINARY, "config", "get", "commands.server", cwd=workspace, **options)
        assert done == Done(0, "true\n", ""), done
        wait_until(lambda: {*self.sockets()} - before != set())
        (made,) = {*self.sockets()} - before
        return self.process_of(made)

    def sockets(self) -> list[Path]:
        """Return where servers listen."""
        return [path for path in self.runtime.glob("odf-commands/*") if path.suffix != ".lock"]

    def processes(self) -> list[int]:
        """Return the servers that there are, or are about to be."""
        return [pid for pid in self._forked() if os.getpgid(pid) == pid]

    def commands(self) -> list[int]:
        """Return the processes of commands that listen to Ctrl-C."""
        return [pid for pid in self._forked() if os.getpgid(pid) != pid and _has_threads(pid)]

    def _forked(self) -> Iterator[int]:
        """Yield servers and their forks, which the system reports with the same arguments and environment."""
        ours = f"XDG_RUNTIME_DIR={self.runtime}".encode()
        for path in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                words, variables = ((path / name).read_bytes().split(b"\0") for name in ("cmdline", "environ"))
                if b"command-server" in words and ours in variables:
                    yield int(path.name)

    def command(self) -> int:
        """Wait for the process of a command, the only one; it listens to Ctrl-C."""
        wait_until(self.commands)
        (pid,) = self.commands()
        return pid

    def process_of(self, address: Path) -> int:
        """Return the server that listens at a socket."""
        return int(Path(f"{address}.lock").read_text())

    def end(self) -> None:
        for pid in self.processes():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


@contextmanager
def command_servers() -> Iterator[CommandServers]:
    """Set up programs in a new folder; their servers stop afterwards."""
    with tempfile.TemporaryDirectory(prefix="odf-") as name:  # names of sockets must be short
        folder = Path(name)
        (folder / "bin").mkdir()
        (folder / "run").mkdir(mode=0o700)
        servers = CommandServers(folder / "bin", folder / "run")
        try:
            yield servers
        finally:
            servers.end()
            shutil.rmtree(folder / "run", ignore_errors=True)


def wait_until(is_so: Any) -> None:
    """Wait for a condition, without a limit on how long it usually takes."""
    deadline = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def _has_threads(pid: int) -> bool:
    with suppress(OSError):
        return len([*Path(f"/proc/{pid}/task").iterdir()]) > 1
    return False


def state_of(pid: int) -> str:
    """Return the state of a process as a letter: T for stopped; empty if it has exited."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][:1]
    except OSError:
        return ""
    return "" if state in "ZX" else state
