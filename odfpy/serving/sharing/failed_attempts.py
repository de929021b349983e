"""Failed authentication attempts by address: after too many, further tokens are not checked for a while."""

from __future__ import annotations

import hashlib
import time
from collections import OrderedDict
from threading import Lock
from typing import Final

_MAX_COUNT: Final = 20
_SECONDS: Final = 60.0
_ADDRESSES: Final = 10_000


class FailedAttempts:
    """Counts wrong tokens, to slow down guessing.

    After 20 within a minute, an address has to wait until the minute is over. Tokens that were valid from there before
    keep working: one misconfigured client must not lock out a whole office.
    """

    def __init__(self) -> None:
        self._wrong: OrderedDict[str, tuple[float, int]] = OrderedDict()
        self._right: OrderedDict[tuple[str, bytes], None] = OrderedDict()
        self._lock = Lock()

    def wait(self, address: str, token: str) -> float:
        """Return the seconds that an address has to wait before this token is checked; 0 if none.

        Args:
            address: address of the client.
            token: the token.
        """
        with self._lock:
            began, count = self._wrong.get(address, (0.0, 0))
            left = began + _SECONDS - time.monotonic()
            if count < _MAX_COUNT or left <= 0 or (address, _digest(token)) in self._right:
                return 0.0
            return left

    def wrong(self, address: str) -> None:
        """Count a wrong token."""
        with self._lock:
            began, count = self._wrong.pop(address, (0.0, 0))
            if time.monotonic() - began >= _SECONDS:
                began, count = time.monotonic(), 0
            self._wrong[address] = (began, count + 1)
            while len(self._wrong) > _ADDRESSES:
                self._wrong.popitem(last=False)

    def right(self, address: str, token: str) -> None:
        """Remember a valid token.

        Args:
            address: address of the client.
            token: the token.
        """
        with self._lock:
            self._right[address, _digest(token)] = None
            self._right.move_to_end((address, _digest(token)))
            while len(self._right) > _ADDRESSES:
                self._right.popitem(last=False)


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "replace")).digest()
