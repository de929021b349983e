"""Piping through a command (ODF specification, "PrepStep: Pipe").

The command reads the file from standard input and writes the prepared one to standard output, streaming. There is no
shell. It runs in its own process group, which is killed as a whole: when the command exits, exceeds a limit of time or
output, and when the pull is interrupted or killed.
"""

from __future__ import annotations

import os
import selectors
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, BinaryIO, cast

from odfpy.chain.sources import PrepPipe
from odfpy.errors import PrepareError
from odfpy.ingest.archive import UnpackLimits
from odfpy.ingest.fetch.redact import last_words
from odfpy.sandbox.command import environment, isolation, only_files, tether

_BLOCK = 1 << 16
_GRACE = 1.0  # seconds in which processes outside of its group may still write output
_TAIL = 1 << 14  # bytes of standard error that are retained
_MAX_LENGTH = 200  # characters of a command in a message


def check_pipe(step: PrepPipe) -> None:
    """Validate the step before there is a file.

    Raises:
        PrepareError: there is no such command on this machine.
    """
    if not step.command:
        raise PrepareError("Prepare step Pipe has no command", hint="`command` is a list: a program and its arguments.")
    program = Path(step.command[0])
    is_relative = len(program.parts) > 1 and not program.is_absolute()
    if is_relative or shutil.which(program, path=os.environ.get("PATH", os.defpath)) is None:
        raise PrepareError(
            f"Prepare step Pipe runs {step.command[0]!r}, and there is no such program",
            hint="Install it, so that it is in PATH. A name with a / must be an absolute path.",
        )


def pipe(
    step: PrepPipe,
    source: Path,
    target: Path,
    name: str,
    *,
    folder: Path,
    timeout: float | None,
    limits: UnpackLimits,
) -> None:
    """Write the output of a command.

    Args:
        step: the command.
        source: its standard input.
        target: the file to create.
        name: name of the input in errors.
        folder: a temporary folder to create and delete.
        timeout: maximum seconds, None for no limit.
        limits: limits on the output.

    Raises:
        PrepareError: the command fails, or exceeds a limit; the message has the end of its standard error.
        OSError: a file cannot be read or written.
    """
    folder.mkdir()
    try:
        with source.open("rb") as stdin, target.open("xb") as output, _running(step, stdin, folder) as process:
            command = _Command(process, f"Prepare step Pipe, {_describe(step)}, on {name}")
            command.collect(output, timeout, limits.max_bytes)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _running(step: PrepPipe, stdin: BinaryIO, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    try:
        process = subprocess.Popen(
            (*tether(), *isolation(), *only_files(step.command, folder), *step.command),
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=folder,
            env=environment(folder),
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise PrepareError(f"Prepare step Pipe cannot run {_describe(step)}: {error}") from error
    with process:
        try:
            yield process
        finally:
            _kill_group(process)


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    """Kill all processes of the command. Only valid before the process is reaped: afterwards its id may be reused."""
    if process.returncode is None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)


class _Command:
    """A running command.

    Attributes:
        title: name of the command in errors.
    """

    def __init__(self, process: subprocess.Popen[bytes], title: str) -> None:
        self.title = title
        self._process = process
        self._errors = bytearray()
        self._has_ended = False

    def collect(self, output: BinaryIO, timeout: float | None, max_bytes: int) -> None:
        """Write its standard output until it exits successfully."""
        deadline = float("inf") if timeout is None else time.monotonic() + timeout
        stdout, stderr = cast("IO[bytes]", self._process.stdout), cast("IO[bytes]", self._process.stderr)
        end = os.pidfd_open(self._process.pid)
        count = 0
        try:
            with selectors.DefaultSelector() as selector:
                for file in (stdout, stderr, end):
                    selector.register(file, selectors.EVENT_READ)
                while selector.get_map():
                    for key in self._wait(selector, deadline, timeout):
                        if key.fileobj == end:
                            self._has_ended = True
                            _kill_group(self._process)  # processes that the command may have left behind
                            selector.unregister(end)
                            continue
                        block = os.read(key.fd, _BLOCK)
                        if not block:
                            selector.unregister(key.fileobj)
                        elif key.fileobj is stderr:
                            self._errors = (self._errors + block)[-_TAIL:]
                        else:
                            count += len(block)
                            if count > max_bytes:
                                raise self._failure(f"gives more than {max_bytes} bytes", _SIZE_HINT)
                            output.write(block)
        finally:
            os.close(end)
        self._check()

    def _wait(
        self, selector: selectors.BaseSelector, deadline: float, timeout: float | None
    ) -> list[selectors.SelectorKey]:
        """Return the readable streams; after the command has exited, all that are left if nothing more arrives."""
        patience = deadline - time.monotonic()
        if self._has_ended:
            patience = min(patience, _GRACE)
        ready = [key for key, _ in selector.select(None if patience == float("inf") else max(0.0, patience))]
        if time.monotonic() > deadline:
            raise self._failure(f"took more than {timeout:g} seconds", _TIME_HINT)
        if not ready and self._has_ended:
            for key in list(selector.get_map().values()):
                selector.unregister(key.fileobj)
        return ready

    def _check(self) -> None:
        code = self._process.wait()
        if code < 0:
            raise self._failure(f"was terminated by the signal {signal.Signals(-code).name}", _FAILURE_HINT)
        if code > 0:
            raise self._failure(f"failed with exit code {code}", _FAILURE_HINT)

    def _failure(self, what: str, hint: str) -> PrepareError:
        words = last_words(bytes(self._errors), ())
        return PrepareError(f"{self.title}, {what}" + (f"\n{words}" if words else ""), hint=hint)


_TIME_HINT = "`odf config set prepare.timeout` allows more; the command may wait for input that never arrives."
_SIZE_HINT = "`odf config set prepare.maxSize` allows more; the command may never end."
_FAILURE_HINT = (
    "Run the command on the fetched file manually. It sees only the variable PATH and the files that it names, and"
    " usually has no network."
)


def _describe(step: PrepPipe) -> str:
    text = shlex.join(step.command)
    return f"`{text if len(text) <= _MAX_LENGTH else text[:_MAX_LENGTH] + '...'}`"
