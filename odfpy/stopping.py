"""Ctrl-C and SIGTERM for commands that run until they are stopped, such as servers.

Python runs a signal handler in the main thread, between any two instructions. A handler that needs a lock which this
thread holds would wait for itself. Handlers can also interrupt each other: a process that dies with its parent gets one
signal for each thread of a killed parent. So the handlers do nothing here. A thread reads the signal numbers from a
pipe and acts on them.
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
    """Call a function on Ctrl-C and SIGTERM during the block, instead of ending the process; for the main thread only.

    Args:
        stop: called with the signal number, in another thread, for one signal at a time.
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
    """Wait for Ctrl-C or SIGTERM; for the main thread only.

    Args:
        tell: called when the signal has arrived.
    """
    over = threading.Event()
    with stopped_by_signals(lambda _: over.set()):
        over.wait()
        tell()
