"""Encoding of values as FlatBuffers, in a fixed order that makes the bytes reproducible.

The fields of a record are visited in declared order. All values outside of the table are written first, depth first;
then the table is started, and its slots are added in declared order. A plain scalar equal to 0 is omitted; an optional
one is written whenever it is present. See `docs/adr/0002-metadata-codec.md`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import flatbuffers

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
from odfpy.errors import OdfError

_Builder = Any


_EXACT = bytes.fromhex("0c000000000006000a0004000600000001000000000006000c000400060000000100000000000000")


def write(value: Any) -> bytes:
    """Return the FlatBuffer whose root table is the given record.

    Raises:
        OdfError: the installed library writes other bytes than those on which hashes are based.
    """
    _require_exact_bytes()
    builder = flatbuffers.Builder(1024)
    builder.Finish(_write_table(builder, value))
    return bytes(builder.Output())


@cache
def _require_exact_bytes() -> None:
    # Releases of flatbuffers before 25.12.19 let two tables of different sizes share a vtable. Their blocks are
    # readable, but have other hashes, which would only be noticed when they meet blocks of another implementation.
    builder = flatbuffers.Builder(64)
    for prepend in (builder.PrependUint64Slot, builder.PrependUint32Slot):
        builder.StartObject(1)
        prepend(0, 1, 0)
        table = builder.EndObject()
    builder.Finish(table)
    if bytes(builder.Output()) != _EXACT:
        from importlib.metadata import version

        raise OdfError(
            f"flatbuffers {version('flatbuffers')} writes blocks with other hashes than other implementations",
            hint="Install a release that does not: pip install 'flatbuffers>=25.12.19'",
        )


def _write_table(builder: _Builder, value: Any) -> int:
    record: type = type(value)
    fields = fields_of(record)
    parts = [getattr(value, field.name) for field in fields]
    offsets = [
        None if part is None or is_inline(field.shape) else _write_out_of_line(builder, field.shape, part)
        for field, part in zip(fields, parts, strict=True)
    ]
    builder.StartObject(slots_of(record))
    slot = 0
    for field, part, offset in zip(fields, parts, offsets, strict=True):
        if isinstance(field.shape, OneOf):
            if offset is not None:
                builder.PrependUint8Slot(slot, field.shape.members.index(type(part)) + 1, 0)
                builder.PrependUOffsetTRelativeSlot(slot + 1, offset, 0)
            slot += 2
            continue
        if offset is not None:
            builder.PrependUOffsetTRelativeSlot(slot, offset, 0)
        elif part is not None:
            _write_inline(builder, slot, field, part)
        slot += 1
    table: int = builder.EndObject()
    return table


def _write_out_of_line(builder: _Builder, shape: Shape, value: Any) -> int:
    match shape:
        case Leaf(type_):
            return _LEAF_WRITERS[type_](builder, value)
        case DatasetReference():
            return _write_text(builder, str(value))
        case Sequence(item):
            return _write_vector(builder, item, value)
        case Record() | OneOf():
            return _write_table(builder, value)
        case _:
            raise AssertionError(shape)


def _write_vector(builder: _Builder, item: Shape, values: tuple[Any, ...]) -> int:
    if isinstance(item, OneOf):
        offsets = [_write_wrapper(builder, item, value) for value in values]
    else:
        offsets = [_write_out_of_line(builder, item, value) for value in values]
    builder.StartVector(4, len(offsets), 4)
    # A FlatBuffer grows from its end to its beginning, so the last item is written first.
    for offset in reversed(offsets):
        builder.PrependUOffsetTRelative(offset)
    vector: int = builder.EndVector()
    return vector


def _write_wrapper(builder: _Builder, shape: OneOf, value: Any) -> int:
    """Write a union as a table with one field `value`, since it cannot be an item of a vector."""
    offset = _write_table(builder, value)
    builder.StartObject(2)
    builder.PrependUint8Slot(0, shape.members.index(type(value)) + 1, 0)
    builder.PrependUOffsetTRelativeSlot(1, offset, 0)
    wrapper: int = builder.EndObject()
    return wrapper


def _write_inline(builder: _Builder, slot: int, field: Field, value: Any) -> None:
    default = None if field.optional else 0
    match field.shape:
        case Integer(range_):
            name = f"Prepend{'Int' if range_.signed else 'Uint'}{range_.bits}Slot"
            getattr(builder, name)(slot, value, default)
        case Enumeration(type_):
            number = list(type_).index(value)
            getattr(builder, f"PrependInt{ENUM_BITS.get(type_.__name__, 32)}Slot")(slot, number, default)
        case Leaf(type_) if type_ is bool:
            builder.PrependBoolSlot(slot, value, default)
        case _:
            # Not written in advance like other values: a struct has no offset, its bytes are part of the table.
            builder.PrependStructSlot(slot, _write_timestamp(builder, value), 0)


def _write_timestamp(builder: _Builder, value: Timestamp) -> int:
    """Write 16 bytes: year int32, day of year uint16, two bytes of padding, seconds uint32, nanoseconds uint32."""
    year, ordinal, seconds, nanos = value.to_ordinal()
    builder.Prep(4, 16)
    builder.PrependUint32(nanos)
    builder.PrependUint32(seconds)
    builder.Pad(2)
    builder.PrependUint16(ordinal)
    builder.PrependInt32(year)
    offset: int = builder.Offset()
    return offset


def _write_text(builder: _Builder, text: str) -> int:
    # Not `CreateSharedString`: equal texts are written each time, since the hash is based on these bytes.
    offset: int = builder.CreateString(text)
    return offset


def _write_bytes(builder: _Builder, data: bytes) -> int:
    offset: int = builder.CreateByteVector(data)
    return offset


_LEAF_WRITERS: dict[type, Callable[[_Builder, Any], int]] = {
    str: _write_text,
    bytes: _write_bytes,
    Multihash: lambda builder, value: _write_bytes(builder, value.to_bytes()),
    DatasetId: lambda builder, value: _write_bytes(builder, value.to_bytes()),
    ExtraAttributes: _write_table,
}
