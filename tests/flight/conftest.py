"""Servers for tests of the client of Flight."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest
from support.servers.plain_flight import Flight, PlainServer, plain_flight

from odfpy.flight import ClientPool


@pytest.fixture
def server() -> Iterator[PlainServer]:
    """A plain server with `numbers`: two parts of ten rows."""
    with plain_flight() as server:
        server.flights["numbers"] = Flight([numbers(0, 10), numbers(10, 20)])
        yield server


@pytest.fixture
def pool() -> Iterator[ClientPool]:
    pool = ClientPool()
    yield pool
    pool.close()


def numbers(start: int, end: int) -> pa.Table:
    values = list(range(start, end))
    return pa.table({"id": values, "name": [f"n{value}" for value in values]})
