"""A pool of Flight clients by location; the least used ones are closed first."""

from __future__ import annotations

import os
import threading
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow.flight as fl

from odfpy.flight.tls import Tls

_ENCRYPTED: Final = "grpc+tls"
Headers = tuple[tuple[bytes, bytes], ...]
"""Headers of a call, as pyarrow expects them."""


@dataclass(eq=False)
class PooledClient:
    """A connection to a location.

    Attributes:
        location: location of the server, as a URI.
        client: pyarrow's client.
        tokens: headers that the server has issued in exchange for credentials; they are dropped with the connection.
        uses: how often it was borrowed.
        borrowers: number of current borrowers.
    """

    location: str
    client: Any
    tokens: dict[Hashable, Headers] = field(default_factory=dict)
    uses: int = 0
    borrowers: int = 0


class ClientPool:
    """The Flight clients of a process; thread-safe.

    A pool only exceeds its size while more clients are in use.
    """

    def __init__(self, size: int = 32, options: Sequence[tuple[str, int]] = ()) -> None:
        """Create an empty pool.

        Args:
            size: maximum number of idle clients.
            options: gRPC options for all clients.
        """
        self._size = size
        self._options = list(options)
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._clients: dict[tuple[str, Tls], PooledClient] = {}  # most recently borrowed last

    @contextmanager
    def client(self, location: str, tls: Tls) -> Iterator[PooledClient]:
        """Lend the client of a location, which stays open during the block.

        Args:
            location: location of the server, as a URI.
            tls: options of the connection; clients are only shared for equal options.
        """
        found = self._borrow(location, tls if location.startswith(_ENCRYPTED) else Tls())
        try:
            yield found
        finally:
            self._give_back(found)

    def close(self) -> None:
        """Close idle clients; borrowed ones are closed when they are returned."""
        with self._lock:
            ended = list(self._clients.values())
            self._clients.clear()
        _close(client for client in ended if not client.borrowers)

    def locations(self) -> list[str]:
        """Return the locations of the pool's clients; the most recently borrowed one is last."""
        with self._lock:
            return [location for location, _ in self._clients]

    def _borrow(self, location: str, tls: Tls) -> PooledClient:
        with self._lock:
            if self._process != os.getpid():  # connections must not be shared with forked processes
                self._clients, self._process = {}, os.getpid()
            found = self._clients.pop((location, tls), None) or PooledClient(location, self._connected(location, tls))
            self._clients[location, tls] = found
            found.uses += 1
            found.borrowers += 1
            ended = self._evict()
        _close(ended)
        return found

    def _give_back(self, client: PooledClient) -> None:
        with self._lock:
            client.borrowers -= 1
            ended = self._evict()
            if not client.borrowers and client not in self._clients.values() and client not in ended:
                ended.append(client)
        _close(ended)

    def _connected(self, location: str, tls: Tls) -> Any:
        return fl.FlightClient(location, **tls.arguments(), generic_options=self._options)

    def _evict(self) -> list[PooledClient]:
        """Remove clients beyond the limit: the least often used, and among these the least recently used."""
        ended = []
        while len(self._clients) > self._size:
            idle = [(key, one) for key, one in self._clients.items() if not one.borrowers]
            if not idle:
                break
            key, client = min(idle, key=lambda entry: entry[1].uses)
            del self._clients[key]
            ended.append(client)
        return ended


SHARED: Final = ClientPool()
"""The pool of servers without their own."""


def _close(clients: Any) -> None:
    for client in clients:
        client.client.close()
