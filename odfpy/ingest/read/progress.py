"""Counts of rows read so far, for whoever listens, without every reader having to pass them on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_listener: ContextVar[Callable[[int], None] | None] = ContextVar("_listener", default=None)


@contextmanager
def telling_rows(listener: Callable[[int], None]) -> Iterator[None]:
    """Let a listener know, while something is read in this thread, how many rows of a file there are by now."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def tell_rows(count: int) -> None:
    """Say how many rows of the file have been read."""
    listener = _listener.get()
    if listener is not None:
        listener(count)
