"""Conversion of plain values to Arrow, the inverse of `odfpy.data.rows.plain_values`."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import date
from decimal import Decimal
from functools import partial
from itertools import accumulate, chain
from typing import Any, Final

import pyarrow as pa

from odfpy.data.timestamp import Timestamp

_NANOS: Final = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
_FROM_1970: Final = re.compile(r"(-?\d+) (?:s|ms|us|ns|days) from 1970")
"""Notation of times outside of the calendar: their counts."""


def array_of(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Return plain values as an array; structs are objects, or lists of their members.

    Raises:
        InvalidValue, ValueError, TypeError, ArithmeticError, pa.ArrowException: a value is not of the type.
    """
    if pa.types.is_struct(kind):
        return _structures(values, kind)
    if pa.types.is_map(kind):
        return _maps(values, kind)
    if pa.types.is_fixed_size_list(kind):
        absent = [None] * kind.list_size
        items = array_of(list(chain.from_iterable(absent if value is None else value for value in values)), _item(kind))
        return pa.FixedSizeListArray.from_arrays(items, type=kind, mask=_absent(values))
    if pa.types.is_list(kind):
        items = array_of(list(chain.from_iterable(value or () for value in values)), _item(kind))
        return pa.ListArray.from_arrays(_offsets(values), items, type=kind)
    read = _reader(kind)
    return pa.array([None if value is None else read(value) for value in values], kind)


def _structures(values: Sequence[Any], kind: pa.StructType) -> pa.Array:
    parts = [_part(values, at, field.name) for at, field in enumerate(kind)]
    arrays = [array_of(part, field.type) for part, field in zip(parts, kind, strict=True)]
    return pa.StructArray.from_arrays(arrays, fields=list(kind), mask=_absent(values))


def _part(values: Sequence[Any], at: int, name: str) -> list[Any]:
    return [None if value is None else value[name] if isinstance(value, dict) else value[at] for value in values]


def _maps(values: Sequence[Any], kind: pa.MapType) -> pa.Array:
    entries = [_entries(value) for value in values]
    keys = array_of([key for each in entries for key, _ in each], kind.key_type)
    items = array_of([item for each in entries for _, item in each], kind.item_type)
    found = pa.MapArray.from_arrays(_offsets(values), keys, items)
    return found.cast(kind)


def _entries(value: Any) -> list[tuple[Any, Any]]:
    if isinstance(value, dict):
        return list(value.items())
    return [(entry["key"], entry["value"]) for entry in value or ()]


def _offsets(values: Sequence[Any]) -> pa.Array:
    """Return the offsets of the items of each list, null for absent lists."""
    ends = [0, *accumulate(len(value or ()) for value in values)]
    starts = [None if value is None else start for value, start in zip(values, ends, strict=False)]
    return pa.array([*starts, ends[-1]], pa.int32())


def _absent(values: Sequence[Any]) -> pa.Array:
    return pa.array([value is None for value in values], pa.bool_())


def _item(kind: pa.DataType) -> pa.DataType:
    return kind.value_type


def _reader(kind: pa.DataType) -> Callable[[Any], Any]:
    """Return the function that converts a non-null value."""
    if pa.types.is_timestamp(kind):
        return partial(_instant, nanos=_NANOS[kind.unit])
    if pa.types.is_date32(kind):
        return _day
    if pa.types.is_time(kind):
        return partial(_clock, nanos=_NANOS[kind.unit])
    if pa.types.is_duration(kind):
        return partial(_duration, nanos=_NANOS[kind.unit])
    if pa.types.is_decimal(kind):
        return lambda value: Decimal(str(value))
    if pa.types.is_floating(kind):
        return float  # also converts 'nan' and 'inf', which JSON does not have
    if pa.types.is_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return bytes.fromhex
    return lambda value: value


def _counted(text: str) -> int | None:
    found = _FROM_1970.fullmatch(text)
    return None if found is None else int(found.group(1))


def _instant(text: str, nanos: int) -> int:
    count = _counted(text)
    return Timestamp.parse(text).nanos // nanos if count is None else count


def _day(text: str) -> int | date:
    count = _counted(text)
    return date.fromisoformat(text) if count is None else count


def _clock(text: str, nanos: int) -> int:
    return Timestamp.parse(f"1970-01-01T{text}Z").nanos // nanos


def _duration(text: str, nanos: int) -> int:
    return int(Decimal(text.removesuffix("s")) * 10**9) // nanos
