"""Marks on annotations: what a value may be beyond its Python type. How it is written follows from them.

And a check of what somebody hands in as a count, in spite of annotations.
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
    """The type is a union that has one member so far: it is written with its kind."""


I32 = Annotated[int, IntRange(32, signed=True)]
I64 = Annotated[int, IntRange(64, signed=True)]
U32 = Annotated[int, IntRange(32, signed=False)]
U64 = Annotated[int, IntRange(64, signed=False)]


def count_given(value: int, name: str, *, least: int = 0) -> int:
    """Return a count that a caller has given.

    Args:
        value: the count, also of numpy.
        name: of the parameter, for the message.
        least: the least count that makes sense.

    Raises:
        UsageError: it is not a whole number, or less than that.
    """
    try:
        number = index(value)
    except TypeError:
        number = least - 1
    if number < least:
        hint = f"Give a number, such as {name}={least + 10}."
        raise UsageError(f"{name} must be a whole number, at least {least}, not {value!r}", hint=hint)
    return number
