"""Encoding of types and values as input of the logical hash; all integers are little-endian.

Everything is vectorized: no Python code runs per value. `odfpy.data.slices.logical_hash` defines the hash.
"""

from __future__ import annotations

from functools import cache
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from odfpy.data.schemas.arrow import plain_array, plain_type
from odfpy.errors import SchemaError

Sizes: TypeAlias = npt.NDArray[np.int64]
Flags: TypeAlias = npt.NDArray[np.bool_]

_NULL = b"\x00"
_LENGTH = 8
# Numbers of the Rust crate `arrow-digest`, which defines the hash: any change would invalidate all recorded hashes.
_INT, _FLOAT, _BINARY, _UTF8, _BOOL, _DECIMAL, _DATE, _TIME, _TIMESTAMP, _LIST = 1, 2, 3, 4, 5, 6, 7, 8, 9, 11
_UNITS = {"s": 0, "ms": 1, "us": 2, "ns": 3}


def type_bytes(data_type: pa.DataType, column: str) -> bytes:
    """Return the initial bytes for a leaf column's hasher.

    Raises:
        SchemaError: the hash is not defined for the type; the message names the column.
    """
    found = _type_bytes(plain_type(data_type))
    if found is None:
        raise SchemaError(
            f"Column {column!r} has type {data_type}, for which no logical hash is defined",
            hint="Cast the column to a supported type, for example in the preprocessing query.",
        )
    return found


def _type_bytes(arrow: pa.DataType) -> bytes | None:
    match _kind(arrow):
        case None:
            return None
        case kind if kind == _INT:
            return _u16(kind) + bytes([pa.types.is_signed_integer(arrow)]) + _u64(arrow.bit_width)
        case kind if kind == _FLOAT:
            return _u16(kind) + _u64(arrow.bit_width)
        case kind if kind == _DECIMAL:
            return _u16(kind) + _u64(arrow.bit_width) + _u64(arrow.precision) + _u64(arrow.scale)
        case kind if kind == _DATE:
            return _u16(kind) + _u64(arrow.bit_width) + _u16(int(pa.types.is_date64(arrow)))
        case kind if kind == _TIME:
            return _u16(kind) + _u64(arrow.bit_width) + _u16(_UNITS[arrow.unit])
        case kind if kind == _TIMESTAMP:
            zone = arrow.tz
            text = _NULL if zone is None else _u64(len(zone.encode())) + zone.encode()
            return _u16(kind) + _u16(_UNITS[arrow.unit]) + text
        case kind if kind == _LIST:
            items = _type_bytes(plain_type(arrow.value_type))
            return None if items is None else _u16(kind) + items
        case kind:
            return _u16(kind)


def value_bytes(array: pa.Array) -> pa.Buffer:
    """Return the bytes of all values of a leaf array, concatenated.

    Shape: the sum of `value_sizes`. Nulls are those of the array itself; its layout, its offset and the content of
    null slots do not matter.
    """
    if len(array) == 0:  # its buffers may be missing
        return pa.py_buffer(b"")
    array = _decoded(array)
    if _is_list(array.type):
        return _data(_list_elements(array))
    if _is_bytes(array.type):
        return _data(_prefixed(array.cast(pa.large_binary()), None))
    if pa.types.is_boolean(array.type):
        return pa.py_buffer(_boolean_bytes(array))
    width = _width(array.type)
    stored = array.buffers()[1].slice(array.offset * width, len(array) * width)
    return stored if array.null_count == 0 else _without_null_slots(array, stored, width)


def is_zero_copy(array: pa.Array) -> bool:
    """Return whether `value_bytes` copies nothing: numbers without nulls are stored as they are hashed."""
    return array.null_count == 0 and _is_fixed_width(array.type) and not pa.types.is_boolean(array.type)


def value_sizes(array: pa.Array) -> Sizes:
    """Return the number of bytes of every value in `value_bytes`."""
    if len(array) == 0:
        return np.zeros(0, np.int64)
    array = _decoded(array)
    if _is_list(array.type):
        return np.diff(_offsets(_list_elements(array)))
    if _is_bytes(array.type):
        sizes = _LENGTH + np.diff(_offsets(array.cast(pa.large_binary())))
    else:
        sizes = np.full(len(array), _width(array.type), np.int64)
    return sizes if array.null_count == 0 else np.where(_valid(array), sizes, len(_NULL))


def _boolean_bytes(array: pa.BooleanArray) -> npt.NDArray[np.uint8]:
    """Return one byte per value: 0 for null, 1 for false, 2 for true."""
    stored = _bitmap(pa.Array.from_buffers(array.type, len(array), [None, array.buffers()[1]], offset=array.offset))
    valid = _validity(array)
    bits = (np.unpackbits(each, count=len(array), bitorder="little") for each in (valid, valid & stored))
    return np.add(*bits)


def _without_null_slots(array: pa.Array, stored: pa.Buffer, width: int) -> pa.Buffer:
    """Return fixed-width values, with a single byte 0 for each null.

    Null slots are set to 0, and filtered out except for their first byte. The filter's bits are looked up for eight
    rows at once, and the filter copies the bytes between nulls in blocks.
    """
    bits = _validity(array)
    words = np.frombuffer(stored, f"u{min(width, 8)}").reshape(len(array), -1)
    slots = pa.py_buffer(words * np.unpackbits(bits, count=len(array), bitorder="little")[:, np.newaxis])
    if width == 1:
        return slots
    kept = pa.py_buffer(np.take(_kept_bytes(width), bits))
    mask = pa.Array.from_buffers(pa.bool_(), slots.size, [None, kept])
    filtered = pa.Array.from_buffers(pa.uint8(), slots.size, [None, slots]).filter(mask)
    return filtered.buffers()[1].slice(0, len(filtered))


@cache
def _kept_bytes(width: int) -> npt.NDArray[np.void]:
    """Return, for each byte of a validity bitmap (eight rows), the bitmap of the bytes to retain among 8 * width bytes.

    Shape: 256 items of `width` bytes.
    """
    valid = np.unpackbits(np.arange(256, dtype=np.uint8)[:, np.newaxis], axis=1, bitorder="little")
    kept = np.repeat(valid, width, axis=1)
    kept[:, ::width] = 1
    return np.packbits(kept, axis=1, bitorder="little").view(f"V{width}").reshape(-1)


# --- Elements: arrays of large_binary with the bytes of one value in each item ---------------------------------------


def _list_elements(array: pa.Array) -> pa.LargeBinaryArray:
    """Return every list as its number of items followed by their bytes; nulls as their single byte."""
    offsets = _offsets(array)
    items = array.values.slice(offsets[0], offsets[-1] - offsets[0])
    bounds = _bounds(items, offsets - offsets[0])
    return _prefixed(_elements(bounds, value_bytes(items), array), np.diff(offsets))


def _bounds(array: pa.Array, rows: Sizes) -> Sizes:
    """Return the offsets of the given rows in `value_bytes` of an array."""
    if array.null_count == 0 and _is_fixed_width(array.type):
        return rows * _width(array.type)
    bounds = np.zeros(len(array) + 1, np.int64)
    np.cumsum(value_sizes(array), out=bounds[1:])
    return bounds[rows]


def _prefixed(values: pa.LargeBinaryArray, counts: Sizes | None) -> pa.LargeBinaryArray:
    """Return every value preceded by its count (by default its length in bytes) as u64; nulls as their single byte."""
    lengths = np.diff(_offsets(values))
    counts = lengths if counts is None else counts
    if values.null_count == 0 and len(values) and (lengths == lengths[0]).all():
        return _prefixed_of_one_length(values, counts, int(lengths[0]))
    # One kernel inserts space; the counts are then written one byte position at a time, for all rows at once.
    room = pc.binary_replace_slice(values, 0, 0, bytes(_LENGTH))
    starts = _offsets(room)[:-1]
    if values.null_count:
        valid = _valid(values)
        starts, counts = starts[valid], counts[valid]
    data = np.frombuffer(room.buffers()[2], np.uint8)
    if not data.flags.writeable:
        data = data.copy()
    while len(counts):
        data[starts] = counts  # numpy stores the lowest byte
        more = counts > 0xFF
        if not more.any():
            break
        starts, counts = starts[more] + 1, counts[more] >> 8
    elements = _elements(_offsets(room), pa.py_buffer(data), values)
    return pc.coalesce(elements, _NULL) if values.null_count else elements


def _prefixed_of_one_length(values: pa.LargeBinaryArray, counts: Sizes, length: int) -> pa.LargeBinaryArray:
    """Return the same for values of equal length, such as codes: two copies at a fixed distance."""
    rows = np.empty(len(values), [("count", "<u8"), ("value", f"V{length}")] if length else [("count", "<u8")])
    rows["count"] = counts
    if length:
        rows["value"] = np.frombuffer(_data(values), f"V{length}")
    bounds = np.arange(0, rows.nbytes + 1, rows.itemsize, dtype=np.int64)
    return _elements(bounds, pa.py_buffer(rows), None)


def _elements(bounds: Sizes, data: pa.Buffer, nulls_of: pa.Array | None) -> pa.LargeBinaryArray:
    validity = pa.py_buffer(_validity(nulls_of)) if nulls_of is not None and nulls_of.null_count else None
    return pa.Array.from_buffers(pa.large_binary(), len(bounds) - 1, [validity, pa.py_buffer(bounds), data])


def _data(elements: pa.LargeBinaryArray) -> pa.Buffer:
    bounds = _offsets(elements)
    return elements.buffers()[2].slice(bounds[0], bounds[-1] - bounds[0])


def _offsets(array: pa.Array) -> Sizes:
    """Return the offsets of a large_binary array, or of a list array in any layout except views."""
    if pa.types.is_fixed_size_list(array.type):
        size, first = int(array.type.list_size), int(array.offset)
        return np.arange(first, first + len(array) + 1, dtype=np.int64) * size
    if isinstance(array, pa.LargeBinaryArray):
        return np.frombuffer(array.buffers()[1], np.int64, len(array) + 1, array.offset * 8)
    return np.asarray(array.offsets).astype(np.int64, copy=False)


def _valid(array: pa.Array) -> Flags:
    """Return flags of the values that are not null."""
    return np.unpackbits(_validity(array), count=len(array), bitorder="little").view(np.bool_)


def _validity(array: pa.Array) -> npt.NDArray[np.uint8]:
    """Return the validity bitmap, starting at the first value."""
    return _bitmap(array.is_valid())


def _bitmap(flags: pa.BooleanArray) -> npt.NDArray[np.uint8]:
    """Return the bits of an array without nulls, starting at its first value."""
    if flags.offset % 8:
        return np.packbits(np.asarray(flags), bitorder="little")
    return np.frombuffer(flags.buffers()[1], np.uint8, (len(flags) + 7) // 8, flags.offset // 8)


# --- Types -----------------------------------------------------------------------------------------------------------


def _decoded(array: pa.Array) -> pa.Array:
    """Return the array without dictionary, run ends or extension; list views become lists with offsets."""
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if pa.types.is_dictionary(array.type):
        return _decoded(array.dictionary_decode())
    if pa.types.is_run_end_encoded(array.type):
        return _decoded(pc.run_end_decode(array))
    if pa.types.is_list_view(array.type) or pa.types.is_large_list_view(array.type):
        return plain_array(array)
    return array


def _is_fixed_width(arrow: pa.DataType) -> bool:
    """Return whether all non-null values have the same number of bytes, whatever the layout of the array."""
    return bool(pa.types.is_primitive(arrow) or pa.types.is_decimal(arrow))


def _width(arrow: pa.DataType) -> int:
    """Return the bytes per value of a fixed-width type; a boolean has one."""
    bits: int = arrow.bit_width
    return max(bits // 8, 1)


def _is_list(arrow: pa.DataType) -> bool:
    return bool(pa.types.is_list(arrow) or pa.types.is_large_list(arrow) or pa.types.is_fixed_size_list(arrow))


def _is_bytes(arrow: pa.DataType) -> bool:
    return _kind(plain_type(arrow)) in (_BINARY, _UTF8)


_KINDS = (
    (pa.types.is_integer, _INT),
    (pa.types.is_floating, _FLOAT),
    (pa.types.is_binary, _BINARY),
    (pa.types.is_fixed_size_binary, _BINARY),
    (pa.types.is_string, _UTF8),
    (pa.types.is_boolean, _BOOL),
    (pa.types.is_decimal, _DECIMAL),
    (pa.types.is_date, _DATE),
    (pa.types.is_time, _TIME),
    (pa.types.is_timestamp, _TIMESTAMP),
    (pa.types.is_list, _LIST),
    (pa.types.is_fixed_size_list, _LIST),
)


def _kind(plain: pa.DataType) -> int | None:
    """Return the number of the type in the hash, None if it has none."""
    return next((kind for is_kind, kind in _KINDS if is_kind(plain)), None)


def _u16(value: int) -> bytes:
    return value.to_bytes(2, "little")


def _u64(value: int) -> bytes:
    return (value & 0xFFFF_FFFF_FFFF_FFFF).to_bytes(8, "little")
