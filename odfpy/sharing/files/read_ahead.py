"""Work on several files at once, with results in the order of the files."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import TypeVar

from odfpy.data.processors import processors

T = TypeVar("T")
V = TypeVar("V")


class ReadAheadPool:
    """Threads that work on what is asked for next, one for each processor. For all threads."""

    def __init__(self) -> None:
        self._most = processors()
        self._pool = ThreadPoolExecutor(self._most, thread_name_prefix="odf-shared-file")

    def map(self, work: Callable[[T], V], items: Iterable[T], is_long: Callable[[T], bool]) -> Iterator[V]:
        """The results of some work, in order; the first error that is in the way ends them.

        Args:
            work: what is done with each item.
            items: the items; few more are taken than results are.
            is_long: tells whether work on an item is long enough to be given to another thread.
        """
        begun: deque[tuple[Callable[[], V], Future[V] | None]] = deque()
        try:
            for item in items:
                future = self._pool.submit(work, item) if is_long(item) else None
                begun.append((partial(work, item) if future is None else future.result, future))
                if len(begun) > self._most:
                    yield begun.popleft()[0]()
            while begun:
                yield begun.popleft()[0]()
        finally:
            for _, future in begun:
                if future is not None:
                    future.cancel()

    def stop(self) -> None:
        """End; what is worked on is done first."""
        self._pool.shutdown(cancel_futures=True)
