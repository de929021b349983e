"""A cache that evicts the least recently used values."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class LruCache(Generic[K, V]):
    """A dictionary that evicts the least recently used value. It is thread-safe."""

    def __init__(self, most: int) -> None:
        """
        Args:
            most: maximum number of values.
        """
        self._most = most
        self._kept: OrderedDict[K, V] = OrderedDict()
        self._lock = Lock()

    def __contains__(self, key: K) -> bool:
        return key in self._kept

    def get(self, key: K, make: Callable[[], V]) -> V:
        """Return the value of a key, created on demand. If two threads create it at the same time, the first value is
        stored.

        Args:
            key: the key.
            make: creates the value.
        """
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        made = make()
        with self._lock:
            found = self._kept.setdefault(key, made)
            self._used(key)
        return found

    def put(self, key: K, value: V) -> None:
        """Store a value, replacing that of the key.

        Args:
            key: the key.
            value: the value.
        """
        with self._lock:
            self._kept[key] = value
            self._used(key)

    def _used(self, key: K) -> None:
        self._kept.move_to_end(key)
        while len(self._kept) > self._most:
            self._kept.popitem(last=False)
