"""Handling of Ctrl-C, in all states of a command.

Python handles signals between two bytecode instructions. Native code (a database, a library that is being loaded) has
to return before that, or check for signals itself.
"""

# Import nothing slow here: it is the first module that a command runs.

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


def install_handlers() -> None:
    """Make Ctrl-C raise KeyboardInterrupt in the main thread. A second Ctrl-C terminates an unresponsive process."""
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:  # ignored in background jobs
        return
    import threading

    reader, writer = os.pipe()
    os.set_blocking(writer, False)

    def interrupt(_: int, frame: FrameType | None) -> None:
        if _is_importing(frame):  # native libraries abort the process if their initialization fails
            signal.setitimer(signal.ITIMER_REAL, 0.02)  # and try again
        else:
            os.write(writer, _HEARD)
            raise KeyboardInterrupt

    signal.signal(signal.SIGALRM, interrupt)
    signal.signal(signal.SIGINT, interrupt)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)  # receives the number of each signal when it arrives
    threading.Thread(target=_watch, args=(reader,), daemon=True).start()


def restore_default() -> None:
    """Make Ctrl-C terminate the process at once from now on, if it was handled: there is nothing left to clean up."""
    if getattr(signal.getsignal(signal.SIGINT), "__module__", None) == __name__:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def report_interruption() -> int:
    """Report the interruption if there is no session yet; return the exit code."""
    restore_default()
    with suppress(OSError, AttributeError):  # standard error is closed or cannot be written
        sys.stderr.write(f"error: {MESSAGE}\n")
    return INTERRUPTED


def _watch(reader: int) -> NoReturn:
    """Terminate the process on a second Ctrl-C, after reporting that the first was not handled.

    This is as safe as any other sudden exit: commits stay, and the next command cleans up.
    """
    deadline: float | None = None
    is_told = False
    while True:
        patience = None if deadline is None else max(0.0, deadline - time.monotonic())
        if not select.select([reader], [], [], patience)[0]:
            deadline, is_told = None, True
            os.write(2, _UNHEARD)
            continue
        match os.read(reader, 1)[0]:  # the number of a signal, or 0 if one was handled
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
