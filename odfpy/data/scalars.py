"""Annotations that restrict values beyond their Python type, and determine their encoding.

Also a check of counts that callers pass, in spite of annotations.
"""

from __future__ import annotations

from operator import index
from typing import Annotated

from odfpy.errors import UsageError
from odfpy.values import dataclass


@dataclass(frozen=True, slots=True)
class IntRange:
    """Bounds of an integer, both inclusive."""

    bits: int
    signed: bool

    @property
    def least(self) -> int:
        return -(1 << (self.bits - 1)) if self.signed else 0

    @property
    def greatest(self) -> int:
        return (1 << (self.bits - 1)) - 1 if self.signed else (1 << self.bits) - 1


@dataclass(frozen=True, slots=True)
class SingleMemberUnion:
    """Marks a union that has only one member so far; it is encoded with its kind."""


I32 = Annotated[int, IntRange(32, signed=True)]
I64 = Annotated[int, IntRange(64, signed=True)]
U32 = Annotated[int, IntRange(32, signed=False)]
U64 = Annotated[int, IntRange(64, signed=False)]


def count_given(value: int, name: str, *, least: int = 0) -> int:
    """Validate a count that a caller has passed, and return it.

    Args:
        value: the count; numpy integers are accepted.
        name: name of the parameter, for the message.
        least: minimum count.

    Raises:
        UsageError: the value is not an integer, or is too small.
    """
    try:
        number = index(value)
    except TypeError:
        number = least - 1
    if number < least:
        hint = f"Give a number, such as {name}={least + 10}."
        raise UsageError(f"{name} must be a whole number, at least {least}, not {value!r}", hint=hint)
    return number
