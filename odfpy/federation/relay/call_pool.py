"""Calls to other relays that run at the same time, in no more threads than they need.

A peer that knows a question answers at once, and one thread does for many of them; a peer that thinks keeps its thread.
So a thread that takes a call has the next thread started first, which comes to run when the first one waits.
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
"""Seconds between two looks at whether somebody still waits."""


class Call(Generic[_T]):
    """A call, and what comes of it.

    Attributes:
        result: what it gave; None if it has not come back, or has failed.
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
        """Make the call, unless nobody waits for it any more."""
        try:
            if not self._group.is_over:
                self.result = self._function(*self._arguments)
        except BaseException as error:  # noqa: BLE001  whoever waits for it looks at it
            self.error = error
        self.drop()

    def drop(self) -> None:
        """Have nobody wait for it any more."""
        self._group.count(-1)


class CallGroup:
    """Calls that somebody waits for together; begun by one thread.

    Attributes:
        is_over: whether nobody waits for them any more; those that have not begun are not made.
    """

    def __init__(self, pool: CallPool) -> None:
        self.is_over = False
        self._pool = pool
        self._lock = threading.Lock()
        self._left = 1  # whoever waits has not begun to
        self._all_back = threading.Event()

    def start(self, function: Callable[..., _T], *arguments: Any) -> Call[_T]:
        """Begin a call.

        Args:
            function: what is called.
            arguments: for it.
        """
        call = Call(self, function, arguments)
        self.count(+1)
        self._pool.add(call)
        return call

    def count(self, change: int) -> None:
        """Count those that have not come back."""
        with self._lock:
            self._left += change
            if not self._left:
                self._all_back.set()

    def wait(self, seconds: float, control: CancellationToken) -> None:
        """Wait until all have come back, no longer than there is time, and only as long as they are wanted; once.

        Args:
            seconds: to wait.
            control: says whether they are wanted.

        Raises:
            QueryCancelled, QueryTimedOut: they are not.
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
    """Runs calls; for all threads."""

    def __init__(self, at_once: int, name: str) -> None:
        """
        Args:
            at_once: threads at most.
            name: of the threads.
        """
        self._threads = ThreadPoolExecutor(at_once, name)
        self._lock = threading.Lock()
        self._waiting: deque[Call[Any]] = deque()
        self._is_starting = False
        """Whether a thread was asked for that does not run yet."""
        self._is_closed = False

    def close(self) -> None:
        """Begin no more of them, and wait for none."""
        with self._lock:
            self._is_closed = True
            left = [*self._waiting]
            self._waiting.clear()
        self._threads.shutdown(wait=False, cancel_futures=True)
        for call in left:
            call.drop()

    def group(self) -> CallGroup:
        """Calls that somebody waits for together."""
        return CallGroup(self)

    def add(self, call: Call[Any]) -> None:
        """Begin a call; when this is closed, it is dropped."""
        with self._lock:
            is_closed = self._is_closed
            if not is_closed:
                self._waiting.append(call)
        if is_closed:
            call.drop()
        self._start_thread()

    def _start_thread(self) -> None:
        """Start one more thread, if there is something to do for it, and none is on its way."""
        with self._lock:
            if not self._waiting or self._is_starting:
                return
            self._is_starting = True
        with suppress(RuntimeError):  # this is closed
            self._threads.submit(self._work)

    def _work(self) -> None:
        """Run calls, as long as there are any."""
        with self._lock:
            self._is_starting = False
        while True:
            with self._lock:
                if not self._waiting:
                    return
                call = self._waiting.popleft()
            self._start_thread()
            call.run()
