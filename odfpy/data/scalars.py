"""Marks on annotations: what a value may be beyond its Python type. How it is written follows from them."""

from __future__ import annotations

from typing import Annotated

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
class SoleMember:
    """The type is a union that has one member so far: it is written with its kind."""


I32 = Annotated[int, IntRange(32, signed=True)]
I64 = Annotated[int, IntRange(64, signed=True)]
U32 = Annotated[int, IntRange(32, signed=False)]
U64 = Annotated[int, IntRange(64, signed=False)]
