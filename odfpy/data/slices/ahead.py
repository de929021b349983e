"""Preparation of the next item by an idle thread, while the current one is processed."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from concurrent.futures import Executor, wait
from functools import partial
from typing import TypeVar, cast

Item = TypeVar("Item")


def ahead(items: Iterator[Item], threads: Executor | None) -> Generator[Item, None, None]:
    """Yield items; an idle thread prepares the next one while the caller processes the current one.

    If no thread has started an item, the caller prepares it itself. So the caller never waits for a free thread, and
    may itself run on one of the threads. Items are yielded in order, and at most one is prepared in advance. An error
    during preparation is raised in place of its item.

    Args:
        items: iterator that prepares the items. Two threads never call it at the same time.
        threads: the threads; None if the caller prepares all items.
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
