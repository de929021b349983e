"""Calls at the same time, none of which holds up whoever wants no more of them.

A call of gRPC cannot be interrupted, and one to a relay that hangs lasts as long as the query has time. Python waits
for the threads of its executors, also at its end, and for a call of its main thread before it tells of Ctrl-C. So calls
go to threads that are waited for only as long as somebody wants what they give.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

_GRACE: Final = 1.0
"""Seconds for threads to end that are not wanted any more: most do, as they are told."""

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


def at_once(
    calls: Sequence[Callable[[], T]], most: int, give_up: Callable[[BaseException], object] = lambda _: None
) -> list[T]:
    """Make calls at the same time, and give their results in their order.

    Args:
        calls: the calls.
        most: how many threads there may be.
        give_up: hears why the others are not wanted any more: one has failed, or somebody has pressed Ctrl-C.

    Raises:
        BaseException: that of the first one that failed, or KeyboardInterrupt. What was not begun is not; what was is
            waited for no longer than a second, and ends by itself.
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
            one = ended.get()
            results[one.number] = one.result()
    except BaseException as error:
        is_over.set()
        give_up(error)
        until = time.monotonic() + _GRACE
        for thread in threads:
            if thread.ident is not None:
                thread.join(max(0.0, until - time.monotonic()))
        raise
    return [results[number] for number in range(len(calls))]
