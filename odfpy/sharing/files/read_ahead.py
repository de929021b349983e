"""Concurrent work on several files, with results in the order of the files."""

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
    """A thread pool that works ahead of its consumer, one thread for each processor. Thread-safe."""

    def __init__(self) -> None:
        self._most = processors()
        self._pool = ThreadPoolExecutor(self._most, thread_name_prefix="odf-shared-file")

    def map(self, work: Callable[[T], V], items: Iterable[T], is_long: Callable[[T], bool]) -> Iterator[V]:
        """Yield the results of a function, in order; stop at the first error.

        Args:
            work: function for each item.
            items: the items; only a few more are taken than results are consumed.
            is_long: returns whether work on an item takes long enough for another thread.
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
        """Stop; running work is finished first."""
        self._pool.shutdown(cancel_futures=True)
