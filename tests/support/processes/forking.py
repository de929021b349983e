"""A process that has everything imported and forks a child for each command: real processes, without the start-up.

A child can be killed before any change of files.
"""

from __future__ import annotations

import subprocess
import sys

_PROGRAM = """
import os, signal, sys, traceback
import blake3, cryptography.hazmat.primitives.asymmetric.ed25519, flatbuffers, rfc8785, sqlglot
import duckdb, pyarrow, pyarrow.compute, pyarrow.parquet, datafusion

def die_at(last, also):
    changing = {"os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.truncate", *also}
    def count(event, arguments):
        if event == "open":
            changes = isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
        else:
            changes = event in changing
        if changes:
            steps.append(event)
            if len(steps) == last:
                os.kill(os.getpid(), signal.SIGKILL)
    steps = []
    sys.addaudithook(count)
    return steps
"""

_SERVE = """
print("ready", flush=True)
for line in sys.stdin:
    told, telling = os.pipe()
    child = os.fork()
    if child:
        os.close(telling)
        print(child, flush=True)
        status = os.waitpid(child, 0)[1]
        print(status, os.read(told, 100).decode() or 0, flush=True)
        os.close(told)
        continue
    try:
        steps, code = run(line[:-1])
        os.write(telling, str(len(steps)).encode())
        os._exit(code)
    except BaseException:
        traceback.print_exc()
        os._exit(2)
"""


class ForkingProcess:
    """Runs commands, which are lines of text, in children.

    Args:
        program: source text that imports what children need and defines `run(line)`, which returns a list of steps and
            the exit code. It can call `die_at(last, also)`: from then on the process gets SIGKILL before one of its
            changes of files, the first being 1; events in `also` count as changes, too. It returns them as a growing
            list.
    """

    def __init__(self, program: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM + program + _SERVE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._read() == "ready"

    def close(self) -> None:
        """Stop the process."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()

    def _start(self, command: str) -> int:
        """Start a command; return its process id."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{command}\n")
        self._process.stdin.flush()
        return int(self._read())

    def _outcome(self) -> tuple[int, int]:
        """Wait for its exit; return its status and the number of steps, 0 if it did not get so far."""
        status, steps = self._read().split()
        return int(status), int(steps)

    def _read(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()
