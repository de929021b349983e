"""Conventions of the FlatBuffers writer and reader that shapes do not determine."""

from __future__ import annotations

from functools import cache

from odfpy.codec.shape import Enumeration, Integer, Leaf, OneOf, Shape, fields_of
from odfpy.data.timestamp import Timestamp

ENUM_BITS = {"TimeUnit": 16}
"""Bits of enums that are not 32 bits wide, by name."""


def is_inline(shape: Shape) -> bool:
    """Return whether the value is stored in the table itself: scalars, enums and the `Timestamp` struct."""
    match shape:
        case Integer() | Enumeration():
            return True
        case Leaf(type_):
            return type_ is bool or type_ is Timestamp
        case _:
            return False


@cache
def slots_of(record: type) -> int:
    """Return the number of slots of the table: a union takes two (type, then value)."""
    return sum(2 if isinstance(field.shape, OneOf) else 1 for field in fields_of(record))
