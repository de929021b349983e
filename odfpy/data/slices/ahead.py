"""Preparation of the next item by an idle thread, while the current one is worked on."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from concurrent.futures import Executor, wait
from functools import partial
from typing import TypeVar, cast

Item = TypeVar("Item")


def ahead(items: Iterator[Item], threads: Executor | None) -> Generator[Item, None, None]:
    """Yield items; an idle thread prepares the next one while the caller works on the current one.

    Nothing waits for a thread: an item that none has begun is prepared by the caller. So a caller may itself run on
    one of the threads. Items come in their order, and one at most is ready before it is asked for; an error that
    preparing raises comes in its place.

    Args:
        items: what to prepare. Two threads never ask it at the same time.
        threads: those that help; None if the caller prepares all.
    """
    if threads is None:
        yield from items
        return
    end = object()
    prepare = partial(next, items, end)
    item = prepare()
    while item is not end:
        following = threads.submit(prepare)
        try:
            yield cast("Item", item)
        finally:
            begun = not following.cancel()
            if begun:
                wait([following])
        item = following.result() if begun else prepare()
