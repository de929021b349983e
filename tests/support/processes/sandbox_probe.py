"""A sandbox with a Python that runs arbitrary code of a test, as if its content had been exploited.

As a program it is the owner: it builds the sandbox before it has any thread, which pytest's own process could not.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

from odfpy.sandbox.limits import ProcessLimits, excess, family_of
from odfpy.sandbox.supervisor import SandboxError, run_confined, run_restricted
from odfpy.sandbox.view import view_of_python

REPOSITORY = Path(__file__).resolve().parents[3]


class SandboxProbe:
    """An owner with its sandbox.

    Attributes:
        owner: the program that has built it.
    """

    def __init__(self, folder: Path, *, way: str = "confined", memory: int = 1 << 30, processes: int = 400) -> None:
        arguments = [str(folder), way, str(memory), str(processes)]
        self.owner = subprocess.Popen(
            [sys.executable, __file__, *arguments], cwd=REPOSITORY, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            text=True, env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        )  # fmt: skip
        self.trouble = self._hear()

    def tells(self, expression: str) -> Any:
        """Evaluate an expression inside; return its value, or the name of its exception."""
        return self._ask("tell", expression)

    def grant(self, reads: list[Path], folders: list[Path]) -> None:
        self._ask("grant", [list(map(str, reads)), list(map(str, folders))])

    def revoke(self) -> None:
        self._ask("revoke", None)

    def excess(self, folder: Path, *, memory: int = 1 << 40, disk: int | None = None) -> str | None:
        found: str | None = self._ask("excess", [str(folder), memory, disk])
        return found

    def family(self) -> list[int]:
        """Return the process ids of all processes inside, as seen from outside."""
        found: list[int] = self._ask("family", None)
        return found

    def kill(self) -> None:
        """Kill the processes inside, and wait for their exit."""
        self._ask("kill", None)

    def close(self) -> None:
        self.owner.kill()
        self.owner.communicate()

    def _ask(self, what: str, about: object) -> Any:
        assert self.owner.stdin is not None
        self.owner.stdin.write(json.dumps([what, about]) + "\n")
        self.owner.stdin.flush()
        return self._hear()

    def _hear(self) -> Any:
        assert self.owner.stdout is not None
        return json.loads(self.owner.stdout.readline())


def namespaces_work(folder: Path) -> bool:
    """Return whether this system permits building a full sandbox."""
    probe = SandboxProbe(folder)
    probe.close()
    return probe.trouble is None


def _obey(orders: socket.socket) -> int:
    """Evaluate received expressions inside."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    known: dict[str, Any] = {}
    exec("import os, sys, socket, subprocess, signal, time, ctypes, pathlib", known)
    with orders.makefile("rw", encoding="utf-8") as lines:
        for line in lines:
            try:
                value = eval(json.loads(line), known)
            except BaseException as error:  # noqa: BLE001
                value = f"{type(error).__name__}: {error}"
            lines.write(json.dumps(value, default=repr) + "\n")
            lines.flush()
    return 0


def main(arguments: list[str]) -> None:
    folder, way, memory, processes = arguments
    ours, theirs = socket.socketpair()
    limits = ProcessLimits(memory=int(memory), processes=int(processes))
    view = view_of_python(folder=Path(folder))
    keep = (theirs.fileno(),)
    try:
        if way == "confined":
            sandbox = run_confined(lambda: _obey(theirs), view, limits, keep)
        else:
            sandbox = run_restricted(
                lambda: _obey(theirs), (*view.reads, "/proc", "/dev"), (view.folder,), limits, keep
            )
    except SandboxError as error:
        print(json.dumps(str(error)), flush=True)  # noqa: T201
        return
    theirs.close()
    print("null", flush=True)  # noqa: T201
    with ours.makefile("rw", encoding="utf-8") as inside:
        for line in sys.stdin:
            answer: object = None
            match json.loads(line):
                case ["tell", expression]:
                    inside.write(json.dumps(expression) + "\n")
                    inside.flush()
                    answer = json.loads(inside.readline() or '"it has ended"')
                case ["grant", [reads, folders]]:
                    sandbox.grant(reads, folders)
                case ["revoke", None]:
                    sandbox.revoke()
                case ["excess", [place, most_memory, disk]]:
                    answer = excess(sandbox.pid, [place], ProcessLimits(memory=most_memory, disk=disk))
                case ["family", None]:
                    answer = [member.pid for member in family_of(sandbox.pid)]
                case ["kill", None]:
                    sandbox.kill()
            print(json.dumps(answer), flush=True)  # noqa: T201


if __name__ == "__main__":
    main(sys.argv[1:])
