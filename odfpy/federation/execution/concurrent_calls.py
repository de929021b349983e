"""Concurrent calls, none of which blocks a caller that no longer needs the results.

A gRPC call cannot be interrupted, and a call to a relay that hangs lasts until the query's timeout. Python waits for
the threads of its executors, also at exit, and for a call in its main thread before it handles Ctrl-C. So calls run in
threads that are only joined as long as their results are needed.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

_GRACE: Final = 1.0
"""Seconds to wait for threads that are no longer needed: most stop as requested."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Ended:
    number: int
    found: Any = None
    error: BaseException | None = None

    def result(self) -> Any:
        if self.error is not None:
            raise self.error
        return self.found


def call_concurrently(
    calls: Sequence[Callable[[], T]], most: int, give_up: Callable[[BaseException], object] = lambda _: None
) -> list[T]:
    """Run calls concurrently, and return their results in order.

    Args:
        calls: the calls.
        most: maximum number of threads.
        give_up: called with the reason why the other calls are no longer needed: one has failed, or Ctrl-C was pressed.

    Raises:
        BaseException: the error of the first call that failed, or KeyboardInterrupt. Calls that have not started are
            skipped; running ones are waited for at most a second, and end by themselves.
    """
    waiting: queue.SimpleQueue[tuple[int, Callable[[], T]]] = queue.SimpleQueue()
    ended: queue.SimpleQueue[_Ended] = queue.SimpleQueue()
    is_over = threading.Event()
    for item in enumerate(calls):
        waiting.put(item)

    def work() -> None:
        while not is_over.is_set():
            try:
                number, call = waiting.get_nowait()
            except queue.Empty:
                return
            try:
                ended.put(_Ended(number, call()))
            except BaseException as error:  # noqa: BLE001  it is raised where it is waited for
                ended.put(_Ended(number, error=error))

    threads = [threading.Thread(target=work, daemon=True) for _ in range(min(most, len(calls)))]
    results: dict[int, T] = {}
    try:
        for thread in threads:
            thread.start()
        while len(results) < len(calls):
            finished = ended.get()
            results[finished.number] = finished.result()
    except BaseException as error:
        is_over.set()
        give_up(error)
        until = time.monotonic() + _GRACE
        for thread in threads:
            if thread.ident is not None:
                thread.join(max(0.0, until - time.monotonic()))
        raise
    return [results[number] for number in range(len(calls))]
