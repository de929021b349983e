"""Programs at a pseudo-terminal: keys go in, a screen comes out."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[3]
PATIENCE = 300.0
"""Seconds after which a wait fails."""

INTERRUPTIBLE = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
"""Tests may run in the background, where shells have SIGINT ignored, and that is inherited."""

_COMMAND = f"{INTERRUPTIBLE}; import sys; from odfpy.cli.app import main; sys.argv[0] = 'odf'; main()"
_AT_TERMINAL = (
    f"import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); {INTERRUPTIBLE}; "
    "os.execvp(sys.argv[1], sys.argv[1:])"
)


def environment(**variables: str) -> dict[str, str]:
    """Return the environment of users: without the variable that makes Python write to pipes unbuffered."""
    return {**os.environ, "PYTHONUNBUFFERED": "", "PYTHONPATH": str(REPOSITORY), "TERM": "xterm", **variables}


def start(*arguments: str, cwd: Path, flags: tuple[str, ...] = (), **options: object) -> subprocess.Popen[str]:
    """Start `odf` as a process; its streams are pipes by default; the flags are for Python."""
    streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    return subprocess.Popen(  # type: ignore[call-overload,no-any-return]
        [sys.executable, *flags, "-c", _COMMAND, *arguments], cwd=cwd, env=environment(), text=True, **streams
    )


def wait_until_interruptible(process: subprocess.Popen[str]) -> None:
    """Wait until `odf` handles Ctrl-C, for which it has a thread; before that, Python's default applies."""
    deadline = time.monotonic() + PATIENCE
    while process.poll() is None and len([*Path(f"/proc/{process.pid}/task").iterdir()]) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.001)


class Terminal:
    """A program at a terminal; Ctrl-C reaches it and everything it has started, as from a keyboard."""

    def __init__(self, *words: str, cwd: Path, columns: int, **variables: str) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        self._process = subprocess.Popen(
            [sys.executable, "-c", _AT_TERMINAL, *words],
            cwd=cwd,
            env=environment(**variables),
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
        )
        os.close(slave)
        self.screen = ""

    def close(self) -> None:
        """Terminate the process, whatever it is doing."""
        self._process.kill()
        self._process.wait()
        os.close(self._master)

    def hang_up(self) -> None:
        """Hang up, as when a terminal window is closed."""
        os.close(self._master)
        self._master = os.open(os.devnull, os.O_RDWR)

    def type(self, keys: str) -> None:
        os.write(self._master, keys.encode())

    def wait_for(self, text: str, after: int = 0) -> str:
        """Read until the text is on the screen after a position; return everything up to its end."""
        deadline = time.monotonic() + PATIENCE
        while text not in self.screen[after:]:
            if not self._read(deadline):
                raise AssertionError(f"{text!r} did not come:\n{self.screen[after:]}")
        return self.screen[: self.screen.index(text, after) + len(text)]

    def wait_for_work(self, seconds: float) -> None:
        """Wait until the program, or its children, have used some more processor time without reading keys."""
        enough = self._processor_seconds() + seconds
        deadline = time.monotonic() + PATIENCE
        while self._processor_seconds() < enough:
            assert time.monotonic() < deadline, f"it does nothing:\n{self.screen}"
            self._read(time.monotonic() + 0.05)

    def _processor_seconds(self) -> float:
        parents: dict[int, int] = {}
        ticks: dict[int, int] = {}
        for process in Path("/proc").glob("[0-9]*/stat"):
            with suppress(OSError):  # it has exited
                numbers = process.read_text().rpartition(") ")[2].split()
                pid = int(process.parent.name)
                parents[pid], ticks[pid] = int(numbers[1]), sum(map(int, numbers[11:13]))
        family = {self._process.pid}
        while more := {pid for pid, parent in parents.items() if parent in family} - family:
            family |= more
        return sum(ticks.get(pid, 0) for pid in family) / os.sysconf("SC_CLK_TCK")

    def interrupt(self, until: str) -> None:
        """Press Ctrl-C until a text appears: a key that arrives just before readline waits is read with the next."""
        before = len(self.screen)
        deadline = time.monotonic() + PATIENCE
        while until not in self.screen[before:]:
            ended = self._process.poll()
            assert ended is None or self._read(time.monotonic() + 1), f"it has ended with {ended}:\n{self.screen}"
            assert time.monotonic() < deadline, self.screen
            self.type("\x03")
            while until not in self.screen[before:] and self._read(time.monotonic() + 1):
                pass

    def ask(self, line: str, prompt: str = "odf> ") -> str:
        """Type a line and return the output up to the next prompt."""
        before = len(self.screen)
        self.type(f"{line}\n")
        self.wait_for(prompt, before)
        return self.plain[len(_plain(self.screen[:before])) :].removesuffix(prompt)

    def wait(self) -> int:
        """Read to the end; return the exit code."""
        deadline = time.monotonic() + PATIENCE
        while self._read(deadline):
            pass
        return self._process.wait(PATIENCE)

    @property
    def plain(self) -> str:
        """The screen without colors and other control sequences."""
        return _plain(self.screen)

    def _read(self, deadline: float) -> bool:
        ready, _, _ = select.select([self._master], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            return False
        try:
            data = os.read(self._master, 65536)
        except OSError:  # the other side is closed
            return False
        self.screen += data.decode()
        return bool(data)


def _plain(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", text).replace("\r\n", "\n")


@contextmanager
def terminal(*arguments: str, cwd: Path, columns: int = 80, **variables: str) -> Iterator[Terminal]:
    """`odf` at a terminal of some width, with some environment variables."""
    with program_at_terminal(sys.executable, "-c", _COMMAND, *arguments, cwd=cwd, columns=columns, **variables) as made:
        yield made


@contextmanager
def program_at_terminal(*words: str, cwd: Path, columns: int = 80, **variables: str) -> Iterator[Terminal]:
    """Any program at a terminal of some width, with some environment variables."""
    made = Terminal(*words, cwd=cwd, columns=columns, **variables)
    try:
        yield made
    finally:
        made.close()
