"""The beginning and end of the process of one command: most of them live for a tenth of a second."""

# Nothing is imported here that takes time: it is among the first things that a command does.

from __future__ import annotations

import atexit
import gc
import os
import sys
import threading
from contextlib import suppress
from typing import Final, NoReturn

_MANY: Final = 100_000
"""Objects; a short command makes fewer, also if it imports Arrow."""


def put_off_collection() -> None:
    """Look for garbage only when there are many objects, and then as usual, but not among these.

    To import is to make objects that stay; a look for garbage among them finds none, at a tenth of the time.
    """
    usual = gc.get_threshold()

    def as_usual(phase: str, info: dict[str, int]) -> None:
        del phase, info
        gc.callbacks.remove(as_usual)
        gc.set_threshold(*usual)
        gc.freeze()  # before the look for which this was called, which would take as long as an import of Arrow

    gc.callbacks.append(as_usual)
    gc.set_threshold(_MANY)


def leave(code: int) -> NoReturn:
    """End the process without taking the interpreter apart, which is of use only to a program that continues.

    What has to be done at the end is done: threads that work are waited for, what is registered with `atexit` runs, and
    output is flushed. Where that fails, the command has been told of it before.
    """
    # Both are what the interpreter calls. To take it apart after that is not only a waste: what a thread or a traceback
    # still holds, native libraries report as leaks, on standard error.
    threading._shutdown()  # type: ignore[attr-defined]  # noqa: SLF001
    atexit._run_exitfuncs()  # noqa: SLF001
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)
