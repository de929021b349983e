"""The start and exit of a command's process. Most of these processes take a tenth of a second."""

# Import nothing slow here: it is one of the first modules that a command runs.

from __future__ import annotations

import atexit
import gc
import os
import sys
import threading
from contextlib import suppress
from typing import Final, NoReturn

_MANY: Final = 100_000
"""Number of objects; a short command creates fewer, even if it imports Arrow."""


def delay_garbage_collection() -> None:
    """Delay garbage collection until there are many objects; later collections skip these.

    Imports create permanent objects. Collections during imports find nothing, and take a tenth of the time.
    """
    usual = gc.get_threshold()

    def as_usual(phase: str, info: dict[str, int]) -> None:
        del phase, info
        gc.callbacks.remove(as_usual)
        gc.set_threshold(*usual)
        gc.freeze()  # before this collection, which would take as long as an import of Arrow

    gc.callbacks.append(as_usual)
    gc.set_threshold(_MANY)


def exit_without_teardown(code: int) -> NoReturn:
    """Exit without tearing down the interpreter, which is useful only if the process continues.

    The necessary steps still happen: working threads are joined, `atexit` callbacks run, and output is flushed. If one
    fails, the command has reported it before.
    """
    # The interpreter calls both at its exit. Its teardown after that takes time, and native libraries would report
    # objects still held by threads or tracebacks as leaks, on standard error.
    threading._shutdown()  # type: ignore[attr-defined]  # noqa: SLF001
    atexit._run_exitfuncs()  # noqa: SLF001
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)
