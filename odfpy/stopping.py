"""Ctrl-C and SIGTERM for commands that run until they are told to stop.

A handler of Python runs in the main thread between two of its steps, in the midst of anything: it can want a lock that
this thread holds, and wait for itself. A signal even comes in the midst of its own handler: a process that is tied to
its parent gets one for each thread of the parent that is killed. So handlers do nothing here, and a thread, which reads
the numbers of signals from a pipe, does what is to be done.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

_STOPPING: Final = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def stopped_by_signals(stop: Callable[[int], object]) -> Iterator[None]:
    """Inside of the block, Ctrl-C and SIGTERM stop something, instead of the command. Call it from the main thread.

    Args:
        stop: called for each of them with its number, in another thread, one at a time.
    """
    reader, writer = os.pipe()
    os.set_blocking(writer, False)

    def tell() -> None:
        while number := os.read(reader, 1):
            stop(number[0])

    thread = threading.Thread(target=tell, name="signals", daemon=True)
    thread.start()
    wakeup = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)  # gets the number of each signal when it comes
    before = {number: signal.signal(number, lambda *_: None) for number in _STOPPING}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(wakeup)
        os.close(writer)
        thread.join()
        os.close(reader)


def wait_for_stop_signal(tell: Callable[[], object]) -> None:
    """Wait until somebody wants the command to end: Ctrl-C, or SIGTERM. Call it from the main thread.

    Args:
        tell: is called when it has come to that.
    """
    over = threading.Event()
    with stopped_by_signals(lambda _: over.set()):
        over.wait()
        tell()
