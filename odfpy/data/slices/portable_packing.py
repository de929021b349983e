"""Bytes of values by numpy and Arrow, in several passes; `odfpy.data.slices.packing` has a faster way, if it was built.

The functions take the buffers of arrays in plain layouts, as `odfpy.data.slices.value_bytes` prepares them.
"""

from __future__ import annotations

from functools import cache
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Sizes: TypeAlias = npt.NDArray[np.int64]
Bounds: TypeAlias = npt.NDArray[np.int32] | npt.NDArray[np.int64]
Flags: TypeAlias = npt.NDArray[np.bool_]

NULL: Final = b"\x00"
"""The bytes of a null."""

PREFIX: Final = 8
"""Bytes of the number before a text or list."""


def booleans(array: pa.BooleanArray) -> pa.Buffer:
    """Return one byte per value: 0 for null, 1 for false, 2 for true."""
    stored = _bitmap(pa.Array.from_buffers(array.type, len(array), [None, array.buffers()[1]], offset=array.offset))
    valid = _validity(array)
    bits = (np.unpackbits(each, count=len(array), bitorder="little") for each in (valid, valid & stored))
    return pa.py_buffer(np.add(*bits))


def fixed_width(array: pa.Array, stored: pa.Buffer, width: int) -> pa.Buffer:
    """Return fixed-width values, with one byte 0 in place of each null; see `odfpy.data.slices.packing.fixed_width`."""
    # Null slots are set to 0, and filtered out except for their first byte. The filter's bits are looked up for eight
    # rows at once, and the filter copies the bytes between nulls in blocks.
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


def prefixed(data: pa.Buffer, bounds: Bounds, rows: Bounds, nulls_of: pa.Array) -> pa.Buffer:
    """Return parts of some data after their numbers of rows; see `odfpy.data.slices.packing.prefixed`."""
    values = _elements(bounds.astype(np.int64, copy=False), data, nulls_of)
    ends = rows.astype(np.int64, copy=False)
    return _data(_prefixed(values, ends[1:] - ends[:-1]))


def _prefixed(values: pa.LargeBinaryArray, counts: Sizes) -> pa.LargeBinaryArray:
    """Return every value preceded by its count as u64; nulls as their single byte."""
    lengths = np.diff(_offsets(values))
    if values.null_count == 0 and len(values) and (lengths == lengths[0]).all():
        return _prefixed_of_one_length(values, counts, int(lengths[0]))
    # One kernel inserts space; the counts are then written one byte position at a time, for all rows at once.
    room = pc.binary_replace_slice(values, 0, 0, bytes(PREFIX))
    starts = _offsets(room)[:-1]
    if values.null_count:
        valid = valid_flags(values)
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
    return pc.coalesce(elements, NULL) if values.null_count else elements


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


def _offsets(array: pa.LargeBinaryArray) -> Sizes:
    return np.frombuffer(array.buffers()[1], np.int64, len(array) + 1, array.offset * 8)


def valid_flags(array: pa.Array) -> Flags:
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
