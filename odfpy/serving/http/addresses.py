"""Connections by the address that they come from, so that one address cannot have all that there may be."""

from __future__ import annotations

import threading
from collections import Counter


class Addresses:
    """Counts of the connections of each address; threads may share it."""

    def __init__(self, most: int) -> None:
        """
        Args:
            most: connections that one may have.
        """
        self._most = most
        self._lock = threading.Lock()
        self._here: Counter[str] = Counter()

    def enter(self, address: str) -> bool:
        """A connection has come; it counts until `leave`. Gives whether there is room for it: else it must leave."""
        with self._lock:
            self._here[address] += 1
            return self._here[address] <= self._most

    def leave(self, address: str) -> None:
        """A connection has ended."""
        with self._lock:
            self._here[address] -= 1
            if not self._here[address]:
                del self._here[address]

    def __len__(self) -> int:
        return self._here.total()


def address_of(peer: object) -> str:
    """The address in the name of a peer, as sockets give it."""
    return str(peer[0]) if isinstance(peer, tuple) and peer else ""
