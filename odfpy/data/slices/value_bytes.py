"""Encoding of types and values as input of the logical hash; all integers are little-endian.

Everything is vectorized: no Python code runs per value. `odfpy.data.slices.logical_hash` defines the hash.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from odfpy.data.schemas.arrow import plain_array, plain_type
from odfpy.data.slices.packing import booleans, fixed_width, prefixed
from odfpy.data.slices.portable_packing import NULL, PREFIX, Bounds, Sizes, valid_flags
from odfpy.errors import SchemaError

_NOTHING = pa.py_buffer(b"")
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
            text = NULL if zone is None else _u64(len(zone.encode())) + zone.encode()
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
        rows = _offsets(array)
        items = _items(array, rows)
        return prefixed(value_bytes(items), _bounds(items, rows - rows[0]), rows, array)
    if _is_bytes(array.type):
        array = _with_offsets(array)
        bounds = _offsets(array)
        return prefixed(array.buffers()[2] or _NOTHING, bounds, bounds, array)
    if pa.types.is_boolean(array.type):
        return booleans(array)
    width = _width(array.type)
    stored = array.buffers()[1].slice(array.offset * width, len(array) * width)
    return stored if array.null_count == 0 else fixed_width(array, stored, width)


def is_zero_copy(array: pa.Array) -> bool:
    """Return whether `value_bytes` copies nothing: numbers without nulls are stored as they are hashed."""
    return array.null_count == 0 and _is_fixed_width(array.type) and not pa.types.is_boolean(array.type)


def value_sizes(array: pa.Array) -> Sizes:
    """Return the number of bytes of every value in `value_bytes`."""
    if len(array) == 0:
        return np.zeros(0, np.int64)
    array = _decoded(array)
    if _is_list(array.type):
        rows = _offsets(array)
        sizes = PREFIX + np.diff(_bounds(_items(array, rows), rows - rows[0]))
    elif _is_bytes(array.type):
        sizes = PREFIX + np.diff(_offsets(_with_offsets(array)).astype(np.int64, copy=False))
    else:
        sizes = np.full(len(array), _width(array.type), np.int64)
    return sizes if array.null_count == 0 else np.where(valid_flags(array), sizes, len(NULL))


# --- Lists and texts -------------------------------------------------------------------------------------------------


def _items(array: pa.Array, rows: Bounds) -> pa.Array:
    """Return the items of all lists of an array, given its offsets."""
    return array.values.slice(rows[0], rows[-1] - rows[0])


def _bounds(array: pa.Array, rows: Sizes) -> Sizes:
    """Return the offsets of the given rows in `value_bytes` of an array."""
    if array.null_count == 0 and _is_fixed_width(array.type):
        return rows * _width(array.type)
    bounds = np.zeros(len(array) + 1, np.int64)
    np.cumsum(value_sizes(array), out=bounds[1:])
    return bounds[rows]


def _with_offsets(array: pa.Array) -> pa.Array:
    """Return texts or bytes in a layout with offsets."""
    is_plain = isinstance(array, pa.StringArray | pa.BinaryArray | pa.LargeStringArray | pa.LargeBinaryArray)
    return array if is_plain else array.cast(pa.large_binary())


def _offsets(array: pa.Array) -> Bounds:
    """Return the offsets of an array of texts, bytes or lists, in any layout except views."""
    if pa.types.is_fixed_size_list(array.type):
        size, first = int(array.type.list_size), int(array.offset)
        return np.arange(first, first + len(array) + 1, dtype=np.int64) * size
    if _is_list(array.type):
        return np.asarray(array.offsets).astype(np.int64, copy=False)
    is_large = isinstance(array, pa.LargeStringArray | pa.LargeBinaryArray)
    stored = np.dtype(np.int64 if is_large else np.int32)
    return np.frombuffer(array.buffers()[1], stored, len(array) + 1, array.offset * stored.itemsize)


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
