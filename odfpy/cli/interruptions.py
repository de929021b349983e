"""Handling of Ctrl-C, whatever the command is doing.

Python handles signals between two bytecode instructions. Native code that it has called (a database, a library that is
being loaded) has to return before that, or check by itself.
"""

# Nothing is imported here that takes time: it is the first thing that a command does.

from __future__ import annotations

import os
import select
import signal
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NoReturn

if TYPE_CHECKING:
    from types import FrameType

INTERRUPTED: Final = 130
"""Exit code of a command that was interrupted."""

MESSAGE: Final = "interrupted; the current operation was rolled back, earlier commits stay"

_HEARD: Final = b"\0"
_GRACE_SECONDS: Final = 3.0
_UNHEARD: Final = b"\nwarning: odf is at something that cannot be interrupted; Ctrl-C again ends it at once\n"


def listen() -> None:
    """Let Ctrl-C raise KeyboardInterrupt in the main thread, and a second one end the process if it cannot."""
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:  # a job in the background
        return
    import threading

    reader, writer = os.pipe()
    os.set_blocking(writer, False)

    def interrupt(_: int, frame: FrameType | None) -> None:
        if _is_importing(frame):  # native libraries abort the process when their start fails
            signal.setitimer(signal.ITIMER_REAL, 0.02)  # and try again
        else:
            os.write(writer, _HEARD)
            raise KeyboardInterrupt

    signal.signal(signal.SIGALRM, interrupt)
    signal.signal(signal.SIGINT, interrupt)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)  # gets the number of each signal when it comes
    threading.Thread(target=_watch, args=(reader,), daemon=True).start()


def end() -> None:
    """Nothing is left to be undone: from here on, Ctrl-C ends the process at once, if it was listened to."""
    if getattr(signal.getsignal(signal.SIGINT), "__module__", None) == __name__:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def tell() -> int:
    """Say that the command was interrupted, where there is no session yet that could; returns the exit code."""
    end()
    with suppress(OSError, AttributeError):  # standard error is closed, or takes nothing
        sys.stderr.write(f"error: {MESSAGE}\n")
    return INTERRUPTED


def _watch(reader: int) -> NoReturn:
    """End the process by the second Ctrl-C, if the first was not heard and that has been told.

    That is as safe as any other sudden end: what was committed stays, and the next command tidies up.
    """
    deadline: float | None = None
    is_told = False
    while True:
        patience = None if deadline is None else max(0.0, deadline - time.monotonic())
        if not select.select([reader], [], [], patience)[0]:
            deadline, is_told = None, True
            os.write(2, _UNHEARD)
            continue
        match os.read(reader, 1)[0]:  # the number of a signal, or that one was heard
            case signal.SIGINT if is_told:
                os._exit(INTERRUPTED)
            case signal.SIGINT if deadline is None:
                deadline = time.monotonic() + _GRACE_SECONDS
            case 0:
                deadline, is_told = None, False


def _is_importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False
