"""A separate process that reads footers of untrusted slices, since a footer may crash the reader.

pyarrow aborts the process on some contradictory footers: as of version 26, exceptions for a column's metadata are not
caught in C++. A footer that was read here without a crash can be read anywhere.

Starting the process takes longer than reading hundreds of footers, so it remains alive for some seconds.
"""

from __future__ import annotations

import json
import os
import pickle
import select
import subprocess
import sys
import tempfile
import time
import weakref
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, Any

from odfpy.codec.errors import RaisedError, as_value
from odfpy.codec.tree import from_tree, to_tree
from odfpy.data.slices.footer import ExpectedSlice, check_footer
from odfpy.errors import IntegrityError, InternalError, OdfError
from odfpy.sandbox.python import python_command, python_environment

_PATIENCE = 60.0
_PATIENCE_EACH = 1.0
_IDLE_SECONDS = 10.0
_CHUNK = 1 << 16


@dataclass(frozen=True, slots=True)
class FooterOf:
    """A slice whose footer is to be checked.

    Attributes:
        path: path of the file.
        expected: properties of the slice as recorded in its block.
        most_unpacked: maximum uncompressed size of its pages in bytes.
    """

    path: str
    expected: ExpectedSlice
    most_unpacked: int


def first_problem(footers: Sequence[FooterOf]) -> tuple[int, RaisedError] | None:
    """Return index and error of the first invalid footer; None if all are valid.

    Raises:
        InternalError: the process cannot be started.
    """
    reader = _waiting_reader() or _Reader()
    is_whole = False
    try:
        answers = list(reader.ask(footers))
        problem = answers[-1] if answers else None
        is_whole = problem is not None or len(answers) == len(footers)
        if is_whole:
            return None if problem is None else (len(answers) - 1, problem)
        code = reader.exit_code()
        if code is not None and code > 0:
            raise InternalError(f"Footers cannot be read: {reader.last_words()}")
    finally:
        if is_whole:
            _waiting.append(reader)
        else:
            reader.end()
    if code == 0:  # its idle time ended just before the request
        return first_problem(footers)
    why = "took too long to read" if code is None else "crashes the Parquet reader"
    message = f"Data file {footers[len(answers)].path} does not match its block: its footer {why}"
    return len(answers), as_value(IntegrityError(message))


class _Reader:
    """The process, which serves one caller at a time.

    Attributes:
        owner: id of the process that started it.
        is_late: whether it has exceeded the time limit.
        end: function that stops the process.
    """

    def __init__(self) -> None:
        errors = tempfile.TemporaryFile()  # noqa: SIM115  closed with the process
        self.is_late = False
        try:
            process = subprocess.Popen(
                python_command(__name__),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=python_environment(os.environ),
                start_new_session=True,  # Ctrl-C must not reach the process
            )
        except OSError as error:
            errors.close()
            raise InternalError(f"Cannot start Python: {error.strerror or error}") from error
        self.owner = os.getpid()
        self._process = process
        self._errors = errors
        self.end = weakref.finalize(self, _end, process, errors, self.owner)

    def ask(self, footers: Sequence[FooterOf]) -> Iterator[RaisedError | None]:
        """Yield None for each valid footer; the first error ends the results.

        There are fewer results if the process crashes or exceeds the time limit.
        """
        deadline = time.monotonic() + _PATIENCE + _PATIENCE_EACH * len(footers)
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None  # noqa: S101  both are pipes
        assert stdout is not None  # noqa: S101
        with suppress(BrokenPipeError):  # in that case, there is no response either
            pickle.dump((_current_folder(), list(footers)), stdin)
            stdin.flush()
        rest, answered = b"", 0
        problem: RaisedError | None = None
        while problem is None and answered < len(footers):
            self.is_late = not _is_readable(stdout, deadline)
            if self.is_late or not (chunk := os.read(stdout.fileno(), _CHUNK)):
                return
            *lines, rest = (rest + chunk).split(b"\n")
            answered += len(lines)
            for line in lines:
                tree = json.loads(line)
                problem = None if tree is None else from_tree(RaisedError, tree)
                yield problem

    def is_ready(self) -> bool:
        """Return whether the process is alive, and was started by this process, not by the parent of a fork."""
        return self.owner == os.getpid() and self._process.poll() is None

    def exit_code(self) -> int | None:
        """Return the exit code, None after a timeout."""
        return None if self.is_late else self._process.wait()

    def last_words(self) -> str:
        """Return the end of the standard error."""
        self._errors.seek(0)
        return self._errors.read().decode(errors="replace")[-500:]


_waiting: list[_Reader] = []
"""Idle processes, at most as many as concurrent callers."""


def _waiting_reader() -> _Reader | None:
    while True:
        try:
            reader = _waiting.pop()
        except IndexError:
            return None
        if reader.is_ready():
            return reader
        reader.end()


def _is_readable(stream: IO[bytes], deadline: float) -> bool:
    poll = select.poll()  # supports file descriptors of any number
    poll.register(stream, select.POLLIN)
    return bool(poll.poll(max(0.0, deadline - time.monotonic()) * 1000))


def _end(process: subprocess.Popen[bytes], errors: IO[Any], owner: int) -> None:
    if owner == os.getpid():
        process.kill()
        process.wait()
    for stream in (process.stdin, process.stdout, errors):
        if stream is not None:
            with suppress(OSError):  # unread input is lost
                stream.close()


def _current_folder() -> str | None:
    try:
        return os.getcwd()  # noqa: PTH109
    except OSError:  # the folder was removed: no path is relative to it
        return None


def main() -> None:
    """Check footers up to the first error; read requests from standard input, and write one line for each footer."""
    while select.select([sys.stdin], [], [], _IDLE_SECONDS)[0]:
        try:
            folder, footers = pickle.load(sys.stdin.buffer)  # noqa: S301  from the process that has started this
        except EOFError:
            return
        if folder is not None:
            os.chdir(folder)
        for footer in footers:
            problem = _problem(footer)
            sys.stdout.write(json.dumps(None if problem is None else to_tree(problem)) + "\n")
            sys.stdout.flush()
            if problem is not None:
                break


def _problem(footer: FooterOf) -> RaisedError | None:
    try:
        check_footer(footer.path, footer.expected, footer.most_unpacked)
    except OdfError as error:
        return as_value(error)
    return None


if __name__ == "__main__":
    main()
