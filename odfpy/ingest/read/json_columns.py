"""Columns of JSON values: the accepted values of each type.

| type | JSON that fits |
|---|---|
| Bool | `true`, `false` |
| integers | a number without a fractional part (`1`, `1.0`, `1e3`), or a string of digits |
| floats, Decimal | a number, or a string with one; floats also `NaN` and `Infinity`, as many tools write them |
| Timestamp | a string in the format; with the default format also an integer, counted in the unit of the type |
| Duration | an integer, counted in the unit of the type |
| Date, Time, Binary | a string as for CSV |
| String | a string |
| Struct, Map | an object |
| List | an array |
| null type | no value |

Any of them may be `null`, if the column is optional. Numbers are never converted to binary floats.
"""

from __future__ import annotations

import decimal
import json
from collections.abc import Sequence
from itertools import accumulate, chain
from typing import Any

import pyarrow as pa

from odfpy.data.timestamp import NANOS_PER_UNIT, Timestamp
from odfpy.errors import InvalidValue
from odfpy.ingest.read.json_records import Number, Repeated
from odfpy.ingest.read.text import TimeFormats
from odfpy.ingest.read.typed import Misfit, type_name

MAX_DIGITS = 40  # more than any integer type


def to_array(values: Sequence[Any], wanted: pa.DataType, path: str, formats: TimeFormats) -> pa.Array:
    """Return values as an array for `fit_array`: booleans unchanged, other leaves as text, with the same nesting.

    Args:
        values: parsed JSON, numbers as `Number`.
        wanted: the final type.
        path: name of the column.
        formats: formats of dates and timestamps.

    Raises:
        Misfit: a value is of the wrong kind.
    """
    if pa.types.is_struct(wanted):
        return _structs(values, wanted, path, formats)
    if pa.types.is_list(wanted) or pa.types.is_fixed_size_list(wanted):
        return _lists(values, wanted, path, formats)
    if pa.types.is_map(wanted):
        return _maps(values, wanted, path, formats)
    if pa.types.is_null(wanted):
        _check_kind(values, (), wanted, path)
        return pa.nulls(len(values))
    if pa.types.is_boolean(wanted):
        _check_kind(values, (bool,), wanted, path)
        return pa.array(values, pa.bool_())
    return _texts(values, wanted, path, formats)


def _texts(values: Sequence[Any], wanted: pa.DataType, path: str, formats: TimeFormats) -> pa.Array:
    numeric = any(is_kind(wanted) for is_kind in (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal))
    as_number = pa.types.is_timestamp(wanted) or pa.types.is_duration(wanted)
    _check_kind(values, (str, Number) if numeric or as_number else (str,), wanted, path)
    if pa.types.is_integer(wanted) or pa.types.is_duration(wanted):
        values = [_integer(value) if type(value) is Number else value for value in values]
    elif pa.types.is_timestamp(wanted) and formats.timestamp.is_rfc3339:
        nanos = NANOS_PER_UNIT[wanted.unit]
        values = [_moment(value, nanos) if type(value) is Number else value for value in values]
    try:
        return pa.array(values, pa.string())
    except UnicodeEncodeError:  # an unpaired surrogate
        row = next(row for row, value in enumerate(values) if value is not None and not is_encodable(value))
        raise Misfit(row, path, type_name(wanted), json.dumps(values[row])) from None


def _structs(values: Sequence[Any], wanted: pa.DataType, path: str, formats: TimeFormats) -> pa.Array:
    _check_kind(values, (dict,), wanted, path)
    members = []
    for field in wanted.fields:
        inner = [None if value is None else value.get(field.name) for value in values]
        members.append(to_array(inner, field.type, f"{path}.{field.name}", formats))
    mask = pa.array([value is None for value in values], pa.bool_())
    return pa.StructArray.from_arrays(members, names=[field.name for field in wanted.fields], mask=mask)


def _lists(values: Sequence[Any], wanted: pa.DataType, path: str, formats: TimeFormats) -> pa.Array:
    _check_kind(values, (list,), wanted, path)
    offsets = [0, *accumulate(len(value or ()) for value in values)]
    items = list(chain.from_iterable(value for value in values if value))
    inner = _in_row(offsets, items, wanted.value_type, f"{path}[]", formats)
    mask = pa.array([value is None for value in values], pa.bool_())
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), inner, mask=mask)


def _maps(values: Sequence[Any], wanted: pa.DataType, path: str, formats: TimeFormats) -> pa.Array:
    _check_kind(values, (dict,), wanted, path)
    offsets = [0, *accumulate(len(value or ()) for value in values)]
    entries = [entry for value in values if value for entry in value.items()]
    keys = _in_row(offsets, [key for key, _ in entries], wanted.key_type, f"{path}{{}}", formats)
    items = _in_row(offsets, [item for _, item in entries], wanted.item_type, f"{path}{{}}", formats)
    marked = [None if value is None else offset for value, offset in zip(values, offsets, strict=False)]
    return pa.MapArray.from_arrays(pa.array([*marked, offsets[-1]], pa.int32()), keys, items)


def _in_row(offsets: Sequence[int], items: Sequence[Any], wanted: pa.DataType, path: str, formats: TimeFormats) -> Any:
    try:
        return to_array(items, wanted, path, formats)
    except Misfit as misfit:
        row = next(row for row, end in enumerate(offsets[1:]) if end > misfit.row)
        raise misfit.moved(row) from None


def _check_kind(values: Sequence[Any], kinds: tuple[type, ...], wanted: pa.DataType, path: str) -> None:
    for row, value in enumerate(values):
        if value is not None and type(value) not in kinds:
            raise Misfit(row, path, type_name(wanted), to_json(value))


def _integer(number: Number) -> str:
    """Return a number without its fractional part, if that is zero."""
    if number.lstrip("-").isdigit():
        return number
    try:
        value = decimal.Decimal(number)
        if value.is_finite() and value.adjusted() < MAX_DIGITS and value == value.to_integral_value():
            return str(int(value))
    except decimal.InvalidOperation:  # more digits than Python computes with
        pass
    return number


def _moment(number: Number, nanos: int) -> str:
    """Return a number of units since 1970 as a timestamp in text."""
    whole = _integer(number)
    try:
        return str(Timestamp(int(whole) * nanos)) if len(whole) < MAX_DIGITS else number
    except (ValueError, InvalidValue):
        return number


def is_encodable(text: str) -> bool:
    """Return whether a text has no unpaired surrogate, which JSON can express and UTF-8 cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def to_json(value: Any) -> str:
    """Return a value in the notation of the file, except for white space."""
    if isinstance(value, Number):
        return str(value)
    if isinstance(value, Repeated):
        return "two values"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)}: {to_json(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(to_json, value)) + "]"
    return json.dumps(value, ensure_ascii=False)
