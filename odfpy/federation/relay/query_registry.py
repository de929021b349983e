"""The queries that a relay is planning, so that they can be cancelled, including those whose questions arrive later.

A query is identified by the holder of its tickets and by its id. A cancelled query stays cancelled as long as its
tickets could be redeemed.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from odfpy.engine.cancellation import CancellationToken
from odfpy.errors import QueryCancelled

_REMEMBERED: Final = 10_000
"""Maximum number of queries whose cancellation is tracked; the oldest are dropped first."""


@dataclass(frozen=True, slots=True)
class QueryKey:
    """The identity of a query at a relay.

    Attributes:
        holder: fingerprint of the holder of its tickets.
        query: id of the query.
    """

    holder: str
    query: str

    def __str__(self) -> str:
        return f"{self.holder} {self.query}"


@dataclass(slots=True)
class _Known:
    token: str | None
    is_cancelled: bool = False
    controls: set[CancellationToken] = field(default_factory=set)


class QueryRegistry:
    """The queries of a relay, for their cancellation; thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: OrderedDict[QueryKey, _Known] = OrderedDict()

    @contextmanager
    def planning(self, key: QueryKey, token: str, control: CancellationToken) -> Iterator[None]:
        """Plan a part of a query, while the `with` block runs.

        Args:
            key: key of the query.
            token: token by which other relays know the requester; cancellations are sent with it.
            control: cancelled together with the query.

        Raises:
            QueryCancelled: the query was cancelled before.
        """
        with self._lock:
            known = self._of(key)
            if known.is_cancelled:
                raise QueryCancelled("The query was cancelled")
            known.token = token
            known.controls.add(control)
        try:
            yield
        finally:
            with self._lock:
                known.controls.discard(control)

    def cancel(self, key: QueryKey) -> str | None:
        """Cancel a query, and its questions that are still to arrive.

        Args:
            key: key of the query.

        Returns:
            The token by which other relays know the requester, if any of them may have been queried.
        """
        with self._lock:
            known = self._of(key)
            known.is_cancelled = True
            controls = [*known.controls]
        for control in controls:
            control.cancel()
        return known.token

    def _of(self, key: QueryKey) -> _Known:
        known = self._known.setdefault(key, _Known(None))
        while len(self._known) > _REMEMBERED:
            self._known.popitem(last=False)
        return known
