"""Connections counted by remote address, so that one address cannot use up all connections."""

from __future__ import annotations

import threading
from collections import Counter


class Addresses:
    """Counts of the connections of each address; thread-safe."""

    def __init__(self, most: int) -> None:
        """
        Args:
            most: maximum number of connections of one address.
        """
        self._most = most
        self._lock = threading.Lock()
        self._here: Counter[str] = Counter()

    def enter(self, address: str) -> bool:
        """Count a new connection until `leave`. Returns whether it is within the limit; otherwise it must be closed."""
        with self._lock:
            self._here[address] += 1
            return self._here[address] <= self._most

    def leave(self, address: str) -> None:
        """Count a closed connection."""
        with self._lock:
            self._here[address] -= 1
            if not self._here[address]:
                del self._here[address]

    def __len__(self) -> int:
        return self._here.total()


def address_of(peer: object) -> str:
    """Return the address in a peer name of a socket."""
    return str(peer[0]) if isinstance(peer, tuple) and peer else ""
