"""Concurrent calls to other relays, in no more threads than they need.

A peer that knows a question already responds at once, so that one thread can make many such calls; a peer that has to
plan blocks its thread. So a thread that takes a call first starts the next thread, which runs when the first one waits.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, Final, Generic, TypeVar

from odfpy.engine.cancellation import CancellationToken

_T = TypeVar("_T")

_LOOK: Final = 0.25
"""Seconds between two checks whether the result is still needed."""


class Call(Generic[_T]):
    """A call and its outcome.

    Attributes:
        result: its result; None if it has not finished, or has failed.
        error: what it raised.
    """

    __slots__ = ("_arguments", "_function", "_group", "error", "result")

    def __init__(self, group: CallGroup, function: Callable[..., _T], arguments: tuple[Any, ...]) -> None:
        self.result: _T | None = None
        self.error: BaseException | None = None
        self._group = group
        self._function = function
        self._arguments = arguments

    def run(self) -> None:
        """Make the call, unless its result is no longer needed."""
        try:
            if not self._group.is_over:
                self.result = self._function(*self._arguments)
        except BaseException as error:  # noqa: BLE001  whoever waits for it looks at it
            self.error = error
        self.drop()

    def drop(self) -> None:
        """Abandon the call: its result is no longer needed."""
        self._group.count(-1)


class CallGroup:
    """Calls that are waited for together; all started by one thread.

    Attributes:
        is_over: whether the wait is over; calls that have not started by then are skipped.
    """

    def __init__(self, pool: CallPool) -> None:
        self.is_over = False
        self._pool = pool
        self._lock = threading.Lock()
        self._left = 1  # counts the waiting thread, until it starts to wait
        self._all_back = threading.Event()

    def start(self, function: Callable[..., _T], *arguments: Any) -> Call[_T]:
        """Start a call.

        Args:
            function: the function to call.
            arguments: its arguments.
        """
        call = Call(self, function, arguments)
        self.count(+1)
        self._pool.add(call)
        return call

    def count(self, change: int) -> None:
        """Change the count of unfinished calls."""
        with self._lock:
            self._left += change
            if not self._left:
                self._all_back.set()

    def wait(self, seconds: float, control: CancellationToken) -> None:
        """Wait until all calls have finished, the time is up, or the query is cancelled; may be called once.

        Args:
            seconds: maximum time to wait.
            control: reports whether the query has been cancelled.

        Raises:
            QueryCancelled, QueryTimedOut: the query was stopped.
        """
        ends = time.monotonic() + seconds
        self.count(-1)
        control.on_stop(self._all_back.set)
        try:
            while not self._all_back.is_set() and (remaining := ends - time.monotonic()) > 0:
                control.check()
                self._all_back.wait(min(_LOOK, remaining))
            control.check()
        finally:
            self.is_over = True
            control.forget(self._all_back.set)


class CallPool:
    """A thread pool for calls to peers, which grows only while threads block; thread-safe."""

    def __init__(self, at_once: int, name: str) -> None:
        """
        Args:
            at_once: maximum number of threads.
            name: prefix of the threads' names.
        """
        self._threads = ThreadPoolExecutor(at_once, name)
        self._lock = threading.Lock()
        self._waiting: deque[Call[Any]] = deque()
        self._is_starting = False
        """Whether a thread was requested that does not run yet."""
        self._is_closed = False

    def close(self) -> None:
        """Start no further calls, and wait for none."""
        with self._lock:
            self._is_closed = True
            left = [*self._waiting]
            self._waiting.clear()
        self._threads.shutdown(wait=False, cancel_futures=True)
        for call in left:
            call.drop()

    def group(self) -> CallGroup:
        """Create a group of calls that are waited for together."""
        return CallGroup(self)

    def add(self, call: Call[Any]) -> None:
        """Queue a call; after `close`, it is abandoned."""
        with self._lock:
            is_closed = self._is_closed
            if not is_closed:
                self._waiting.append(call)
        if is_closed:
            call.drop()
        self._start_thread()

    def _start_thread(self) -> None:
        """Start one more thread, if calls are queued and no thread is starting already."""
        with self._lock:
            if not self._waiting or self._is_starting:
                return
            self._is_starting = True
        with suppress(RuntimeError):  # the pool is closed
            self._threads.submit(self._work)

    def _work(self) -> None:
        """Run queued calls until there are none."""
        with self._lock:
            self._is_starting = False
        while True:
            with self._lock:
                if not self._waiting:
                    return
                call = self._waiting.popleft()
            self._start_thread()
            call.run()
