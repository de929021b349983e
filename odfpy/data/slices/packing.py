"""Bytes of values for logical hashes: numbers without null slots, texts after their lengths.

The compiled module `_packing` does this in one pass. It is optional: where it could not be built at installation, numpy
and Arrow do the same in several passes (ADR 0052).
"""

from __future__ import annotations

from types import ModuleType
from typing import Final

import pyarrow as pa

from odfpy.data.slices import portable_packing as portable
from odfpy.data.slices.portable_packing import Bounds

_VERSION: Final = 1
"""The compiled module's, so that one that was built from an older file is not used."""


def _load() -> ModuleType | None:
    try:
        from odfpy.data.slices import _packing
    except ImportError:
        return None
    return _packing if _packing.VERSION == _VERSION else None


compiled: ModuleType | None = _load()
"""The compiled module; None if it is not installed."""


def fixed_width(array: pa.Array, stored: pa.Buffer, width: int) -> pa.Buffer:
    """Return fixed-width values, with one byte 0 in place of each null.

    Args:
        array: the values, of which some are null.
        stored: their slots.
        width: bytes per slot.
    """
    if compiled is None:
        return portable.fixed_width(array, stored, width)
    return pa.py_buffer(compiled.fixed_width(stored, array.buffers()[0], array.offset, len(array), width))


def booleans(array: pa.BooleanArray) -> pa.Buffer:
    """Return 0 for null, 1 for false and 2 for true."""
    if compiled is None:
        return portable.booleans(array)
    validity, stored = array.buffers()
    return pa.py_buffer(compiled.booleans(stored, validity, array.offset, len(array)))


def prefixed(data: pa.Buffer, bounds: Bounds, rows: Bounds, nulls_of: pa.Array) -> pa.Buffer:
    """Return parts of some data, each after its number of rows as u64; one byte 0 for each null.

    Args:
        data: bytes of all values, concatenated.
        bounds: offset of each value in them, and the end of the last one.
        rows: row offset of each value, and the end of the last one; for texts, rows are bytes.
        nulls_of: an array of the same length whose nulls count.
    """
    if compiled is None:
        return portable.prefixed(data, bounds, rows, nulls_of)
    validity = nulls_of.buffers()[0] if nulls_of.null_count else None
    return pa.py_buffer(compiled.prefixed(data, bounds, rows, validity, nulls_of.offset))
