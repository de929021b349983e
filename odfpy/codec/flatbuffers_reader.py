"""Decoding of FlatBuffers from untrusted sources.

Every offset is checked against the buffer, and any error raises `MalformedBlock`. Offsets may point anywhere, so a
small buffer could describe an endless or exponentially large value: therefore nesting, the number of values and the
bytes of text are bounded. Alignment is not required, so the unaligned structs of version 2 blocks are read as well.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, TypeVar

from odfpy.codec.shape import (
    DatasetReference,
    Enumeration,
    Field,
    Integer,
    Leaf,
    OneOf,
    Record,
    Sequence,
    Shape,
    fields_of,
)
from odfpy.codec.wire import ENUM_BITS, is_inline, slots_of
from odfpy.data.attributes import ExtraAttributes
from odfpy.data.multihash import Multihash
from odfpy.data.timestamp import Timestamp
from odfpy.dataset.identity import DatasetId
from odfpy.dataset.names import parse_ref
from odfpy.errors import InvalidValue, MalformedBlock

T = TypeVar("T")

_MAX_DEPTH = 100
_MAX_VALUES = 1_000_000  # tables and items of vectors in one buffer; readers of other languages have the same limit
_MIN_TABLE = 8  # minimum bytes of a table and the offset to it
_MIN_ITEM = 4  # minimum bytes of an item of a vector
_SHARING = 2  # writers may refer to equal strings more than once
_NUMBERS = {(bits, signed): struct.Struct("<" + code) for bits, codes in {8: "Bb", 16: "Hh", 32: "Ii", 64: "Qq"}.items()
            for signed, code in zip((False, True), codes, strict=True)}  # fmt: skip


def read(type_: type[T], data: bytes) -> T:
    """Return the record whose table is the root of a FlatBuffer.

    Raises:
        MalformedBlock: the bytes are not such a FlatBuffer.
    """
    reader = _Reader(data)
    try:
        value: T = reader.table(type_, reader.follow(0), 0)
    except InvalidValue as error:
        raise MalformedBlock(f"Malformed {type_.__name__}: {error.message}") from error
    return value


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.tables_left = min(_MAX_VALUES, len(data) // _MIN_TABLE + 1)
        self.items_left = min(_MAX_VALUES, len(data) // _MIN_ITEM)
        self.bytes_left = _SHARING * len(data)

    # --- Primitives ---

    def number(self, at: int, bits: int, *, signed: bool) -> int:
        if at < 0 or at + bits // 8 > len(self.data):
            raise MalformedBlock(f"Malformed FlatBuffer: position {at} is outside of {len(self.data)} bytes")
        value: int = _NUMBERS[bits, signed].unpack_from(self.data, at)[0]
        return value

    def follow(self, at: int) -> int:
        """Return the position that the unsigned offset at a position refers to."""
        return at + self.number(at, 32, signed=False)

    def sized(self, at: int) -> bytes:
        size = self.number(at, 32, signed=False)
        if at + 4 + size > len(self.data):
            raise MalformedBlock(f"Malformed FlatBuffer: {size} bytes at {at} do not fit in {len(self.data)}")
        self.bytes_left -= size
        if self.bytes_left < 0:
            raise MalformedBlock("Malformed FlatBuffer: more text than fits in it")
        return bytes(self.data[at + 4 : at + 4 + size])

    def text(self, at: int) -> str:
        try:
            return self.sized(at).decode("utf-8")
        except UnicodeDecodeError as error:
            raise MalformedBlock(f"Malformed FlatBuffer: text at {at} is not UTF-8") from error

    # --- Tables ---

    def table(self, type_: type, at: int, depth: int) -> Any:
        self.tables_left -= 1
        if depth > _MAX_DEPTH or self.tables_left < 0:
            raise MalformedBlock("Malformed FlatBuffer: nested too deep, or more tables than fit")
        places = iter(self._places(at, slots_of(type_)))
        return type_(**{field.name: self._field(type_, field, places, depth) for field in fields_of(type_)})

    def _places(self, at: int, count: int) -> list[int]:
        """Return the positions of the first `count` slots of the table; 0 for absent slots."""
        vtable = at - self.number(at, 32, signed=True)
        size = self.number(vtable, 16, signed=False)
        table_size = self.number(vtable + 2, 16, signed=False)
        if vtable + size > len(self.data) or at + table_size > len(self.data):
            raise MalformedBlock(f"Malformed FlatBuffer: the table at {at} reaches beyond the end")
        present = min(count, max(size - 4, 0) // 2)
        offsets = struct.unpack_from(f"<{present}H", self.data, vtable + 4)
        if any(offset >= table_size for offset in offsets if offset):
            raise MalformedBlock(f"Malformed FlatBuffer: a field of the table at {at} lies outside of it")
        return [at + offset if offset else 0 for offset in offsets] + [0] * (count - present)

    def _field(self, type_: type, field: Field, places: Iterator[int], depth: int) -> Any:
        at = next(places)
        if isinstance(field.shape, OneOf):
            value = self._union(field.shape, at, next(places), depth)
        elif is_inline(field.shape):
            value = self._inline(field, at)
        else:
            value = self._out_of_line(field.shape, self.follow(at), depth) if at else None
        if value is None and not field.optional:
            raise MalformedBlock(f"Malformed FlatBuffer: `{field.name}` is missing in {type_.__name__}")
        return value

    def _union(self, shape: OneOf, type_at: int, value_at: int, depth: int) -> Any:
        number = self.number(type_at, 8, signed=False) if type_at else 0
        if (number == 0) != (value_at == 0):
            place = type_at or value_at
            raise MalformedBlock(f"Malformed FlatBuffer: a kind without a value, or the reverse, at {place}")
        if number == 0:
            return None
        if number > len(shape.members):
            names = shape.members[0].__name__
            raise MalformedBlock(f"Unknown kind {number} where {names} and others are known")
        return self.table(shape.members[number - 1], self.follow(value_at), depth + 1)

    def _inline(self, field: Field, at: int) -> Any:
        match field.shape:
            case Integer(range_):
                if at:
                    return self.number(at, range_.bits, signed=range_.signed)
                return None if field.optional else 0
            case Enumeration(type_):
                if not at:
                    return None if field.optional else next(iter(type_))
                return self._enum(type_, self.number(at, ENUM_BITS.get(type_.__name__, 32), signed=True))
            case Leaf(type_) if type_ is bool:
                if at:
                    return self.number(at, 8, signed=False) != 0
                return None if field.optional else False
            case _:
                return self._timestamp(at) if at else None

    def _enum(self, type_: Any, number: int) -> Any:
        members = list(type_)
        if not 0 <= number < len(members):
            raise MalformedBlock(f"Unknown value {number} of {type_.__name__}")
        return members[number]

    def _timestamp(self, at: int) -> Timestamp:
        year = self.number(at, 32, signed=True)
        ordinal = self.number(at + 4, 16, signed=False)
        seconds = self.number(at + 8, 32, signed=False)
        nanos = self.number(at + 12, 32, signed=False)
        return Timestamp.from_ordinal(year, ordinal, seconds, nanos)

    def _out_of_line(self, shape: Shape, at: int, depth: int) -> Any:
        match shape:
            case Leaf(type_) if type_ is ExtraAttributes:
                return self.table(ExtraAttributes, at, depth + 1)
            case Leaf(type_) if type_ is str:
                return self.text(at)
            case Leaf(type_) if type_ is bytes:
                return self.sized(at)
            case Leaf(type_) if type_ is Multihash:
                return Multihash.from_bytes(self.sized(at))
            case Leaf(type_) if type_ is DatasetId:
                return DatasetId.from_bytes(self.sized(at))
            case DatasetReference():
                return parse_ref(self.text(at))
            case Sequence(item):
                return self._vector(item, at, depth)
            case Record(type_):
                return self.table(type_, at, depth + 1)
            case _:
                raise AssertionError(shape)

    def _vector(self, item: Shape, at: int, depth: int) -> tuple[Any, ...]:
        count = self.number(at, 32, signed=False)
        if at + 4 + 4 * count > len(self.data):
            raise MalformedBlock(f"Malformed FlatBuffer: {count} items at {at} do not fit in {len(self.data)} bytes")
        self.items_left -= count
        if self.items_left < 0:
            raise MalformedBlock("Malformed FlatBuffer: more items than fit in it")
        places = (self.follow(at + 4 + 4 * index) for index in range(count))
        if isinstance(item, OneOf):
            return tuple(self._wrapped(item, place, depth + 1) for place in places)
        return tuple(self._out_of_line(item, place, depth) for place in places)

    def _wrapped(self, shape: OneOf, at: int, depth: int) -> Any:
        type_at, value_at = self._places(at, 2)
        value = self._union(shape, type_at, value_at, depth)
        if value is None:
            raise MalformedBlock(f"Malformed FlatBuffer: an empty item at {at}")
        return value
