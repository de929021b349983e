"""The latest values that were made, for as long as nothing that they are made of is another."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Value = TypeVar("Value")


class Latest(Generic[Value]):
    """Values by what they are made of; those that were asked for last stay."""

    def __init__(self, most: int) -> None:
        """Prepare for so many values at most."""
        self._most = most
        self._values: dict[Hashable, Value] = {}

    def __contains__(self, key: Hashable) -> bool:
        return key in self._values

    def of(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """The value of a key, which is made if it is not known."""
        value = self._values.pop(key) if key in self._values else make()
        self._values[key] = value
        while len(self._values) > self._most:
            del self._values[next(iter(self._values))]
        return value
