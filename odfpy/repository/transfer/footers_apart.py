"""Footers of slices from elsewhere are read in a process of its own: one that breaks the reader breaks only that.

pyarrow ends its whole process where a footer contradicts itself in some ways: as of version 26, what the metadata of a
column throws is caught by nobody. Whatever has been read here once can be read anywhere.
"""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from odfpy.data.slices.footer import ExpectedSlice, check_footer
from odfpy.errors import InternalError, OdfError
from odfpy.sandbox.python import python_command, python_environment

_PATIENCE = 60.0
_PATIENCE_EACH = 1.0


@dataclass(frozen=True, slots=True)
class FooterOf:
    """A slice whose footer is to be read.

    Attributes:
        path: the file.
        expected: what the block says of it.
        most_unpacked: bytes that its pages may have when they are unpacked.
    """

    path: str
    expected: ExpectedSlice
    most_unpacked: int


def first_problem(footers: Sequence[FooterOf]) -> tuple[int, str] | None:
    """The position of the first footer that is not what it should be, and what is wrong; None if there is none.

    Raises:
        InternalError: no process can be started.
    """
    try:
        done = subprocess.run(
            python_command(__name__),
            input=pickle.dumps(list(footers)),
            capture_output=True,
            env=python_environment(os.environ),
            timeout=_PATIENCE + _PATIENCE_EACH * len(footers),
            check=False,
        )
        output, code = done.stdout, done.returncode
    except subprocess.TimeoutExpired as error:
        output, code = error.stdout or b"", None
    except OSError as error:
        raise InternalError(f"Cannot start Python: {error.strerror or error}") from error
    told = [json.loads(line) for line in output.splitlines()]
    for at, problem in enumerate(told):
        if problem is not None:
            return at, problem
    if len(told) == len(footers):
        return None
    if code is not None and code >= 0:
        raise InternalError(f"Footers cannot be read: {done.stderr.decode(errors='replace')[-500:]}")
    why = "takes too long to read" if code is None else "breaks the reader of Parquet files"
    return len(told), f"Data file {footers[len(told)].path} is not what its block says: its footer {why}"


def main() -> None:
    """Read footers: what is asked comes from standard input, a line for each goes to standard output."""
    footers: list[FooterOf] = pickle.load(sys.stdin.buffer)  # noqa: S301  from the process that has started this
    for footer in footers:
        problem = None
        try:
            check_footer(footer.path, footer.expected, footer.most_unpacked)
        except OdfError as error:
            problem = error.message
        sys.stdout.write(json.dumps(problem) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
