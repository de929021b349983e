"""Queries wait for room as long as their clients do and their time lasts, and are told in words of HTTP if that ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from starlette.requests import Request

from odfpy.engine.cancellation import CancellationToken
from odfpy.serving.callers.access import Caller
from odfpy.serving.http.errors import Refused
from odfpy.serving.http.query_limiter import QueryGate
from odfpy.serving.settings import ServeSettings


class Client:
    """Somebody who asks, and goes away when he likes."""

    def __init__(self) -> None:
        self.goes_away = asyncio.Event()
        self.request = Request({"type": "http", "headers": [], "client": ("127.0.0.1", 1)}, self._receive)

    async def _receive(self) -> Any:
        await self.goes_away.wait()
        return {"type": "http.disconnect"}

    def asks(self, gate: QueryGate, work: Callable[[CancellationToken], str]) -> asyncio.Task[str]:
        return asyncio.create_task(gate.run(self.request, Caller(), work))


@asynccontextmanager
async def full(gate: QueryGate) -> AsyncIterator[None]:
    """As long as the one query that the gate has room for is at work."""
    async with gate._room:
        yield


def test_a_query_waits_no_longer_than_it_may_take() -> None:
    async def story() -> None:
        gate = QueryGate(ServeSettings(running_queries=1, query_timeout=0.1))
        async with full(gate):
            with pytest.raises(Refused) as refused:
                await Client().asks(gate, lambda _: "never")
        assert refused.value.status == 503
        assert refused.value.message.startswith("The server is busy: the query has waited for 0.1 s")

    asyncio.run(story())


def test_who_goes_away_does_not_wait_and_leaves_his_place_to_others() -> None:
    async def story() -> None:
        gate, client = QueryGate(ServeSettings(running_queries=1, max_queries=1)), Client()
        async with full(gate):
            task = client.asks(gate, lambda _: "never")
            client.goes_away.set()
            with pytest.raises(Refused):
                await task
        assert await Client().asks(gate, lambda _: "there is room again") == "there is room again"

    asyncio.run(story())
