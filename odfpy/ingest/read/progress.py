"""Counts of rows read so far, reported to a listener without passing it through every reader."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_listener: ContextVar[Callable[[int], None] | None] = ContextVar("_listener", default=None)


@contextmanager
def rows_reported_to(listener: Callable[[int], None]) -> Iterator[None]:
    """Report the number of rows of a file read so far in this thread to a listener."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def report_rows(count: int) -> None:
    """Report the number of rows read from the file."""
    listener = _listener.get()
    if listener is not None:
        listener(count)
