"""Exact conversion of values to plain ones: decimals, times and bytes become text, whatever their range."""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import date
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any

from odfpy.errors import SchemaError

if TYPE_CHECKING:
    import pyarrow as pa

_DIGITS = {"s": 0, "ms": 3, "us": 6, "ns": 9}
_SECONDS_PER_DAY = 86_400
_EPOCH = date(1970, 1, 1).toordinal()
_FIRST_SECOND = (date.min.toordinal() - _EPOCH) * _SECONDS_PER_DAY
_LAST_SECOND = (date.max.toordinal() + 1 - _EPOCH) * _SECONDS_PER_DAY - 1
_FEW = 256
"""Times that are written faster one by one than the library that writes many is loaded."""


def columns_of(table: pa.Table) -> list[list[Any]]:
    """Return the columns of a table as lists of plain values and decimals."""
    return [[value for chunk in column.chunks for value in _values(chunk)] for column in table.columns]


def plain_columns_of(table: pa.Table) -> list[list[Any]]:
    """Return the columns of a table as lists of values for JSON and YAML: `columns_of`, with `plain` where needed."""
    import pyarrow as pa

    def is_plain(kind: pa.DataType) -> bool:
        return pa.types.is_integer(kind) or _is_text(kind) or _writer(kind) is not None

    return [
        values if is_plain(kind) else [plain(value) for value in values]
        for values, kind in zip(columns_of(table), table.schema.types, strict=True)
    ]


def require_distinct(names: Sequence[str], otherwise: str) -> None:
    """Check that column names are unique, so that rows can be objects.

    Args:
        names: names of the columns.
        otherwise: an alternative to renaming, for the hint; it follows "or".

    Raises:
        SchemaError: two columns have the same name.
    """
    twice = next((name for name, count in Counter(names).items() if count > 1), None)
    if twice is not None:
        raise SchemaError(
            f"Two columns of the answer are called {twice!r}",
            hint=f"Give one another name (... AS other), or {otherwise}.",
        )


def num_values(array: pa.Array | pa.ChunkedArray) -> int:
    """Return the number of values in an array, including nested ones; nulls may take no bytes, in any number."""
    import pyarrow as pa

    if isinstance(array, pa.ChunkedArray):
        return sum(map(num_values, array.chunks))
    if pa.types.is_dictionary(array.type):
        return len(array)
    if pa.types.is_struct(array.type):
        return len(array) + sum(map(num_values, array.flatten()))
    if pa.types.is_map(array.type):
        start, end = array.offsets[0].as_py(), array.offsets[-1].as_py()
        return len(array) + sum(num_values(part.slice(start, end - start)) for part in (array.keys, array.items))
    if pa.types.is_nested(array.type) and hasattr(array, "flatten"):
        return len(array) + num_values(array.flatten())
    return len(array)


def _values(array: pa.Array) -> list[Any]:
    """Return the values of an array. Times go by counts: Python's types lack nanoseconds and some years."""
    import pyarrow as pa

    if pa.types.is_nested(array.type):
        return [_nested(scalar) for scalar in array]
    if pa.types.is_float16(array.type) or pa.types.is_float32(array.type):
        return _short_fractions(array)
    if pa.types.is_timestamp(array.type) and len(array) > _FEW:
        return _instants(array)
    write = _writer(array.type)
    if write is None:
        return array.to_pylist()  # type: ignore[no-any-return]
    counts = array.view(f"int{array.type.bit_width}").to_pylist()
    return [None if count is None else write(count) for count in counts]


def _short_fractions(array: pa.Array) -> list[float | None]:
    """Return floats below double precision in their shortest notation: 0.1, not 0.10000000149011612."""
    import numpy as np

    texts = np.asarray(array.fill_null(0)).astype(str).tolist()
    return [
        float(text) if is_valid else None for text, is_valid in zip(texts, array.is_valid().to_pylist(), strict=True)
    ]


def _instants(array: pa.Array) -> list[str | None]:
    """Return times as `_instant` does, many at once: most answers have a few in each row."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    unit, zone = array.type.unit, "Z" if array.type.tz else ""
    counts, is_valid = np.asarray(array.view(pa.int64()).fill_null(0)), array.is_valid().to_pylist()
    seconds, fractions = np.divmod(counts, 10 ** _DIGITS[unit])
    if seconds.min() < _FIRST_SECOND or seconds.max() > _LAST_SECOND:
        texts = [_instant(count, unit, zone) for count in counts.tolist()]
    else:
        written = pc.replace_substring(pa.array(seconds).cast(pa.timestamp("s")).cast(pa.string()), " ", "T")
        pairs = zip(written.to_pylist(), fractions.tolist(), strict=True)
        texts = [
            f"{text}{_fraction(fraction, unit)}{zone}" if fraction else f"{text}{zone}" for text, fraction in pairs
        ]
    return [text if valid else None for text, valid in zip(texts, is_valid, strict=True)]


def _writer(kind: pa.DataType) -> Callable[[int], str] | None:
    """Return the function that formats counts of a temporal type; None for other types."""
    import pyarrow as pa

    if pa.types.is_timestamp(kind):
        return partial(_instant, unit=kind.unit, zone="Z" if kind.tz else "")
    if pa.types.is_date32(kind):
        return _day
    if pa.types.is_date64(kind):
        return lambda count: _day(count // (1000 * _SECONDS_PER_DAY))
    if pa.types.is_time(kind):
        return partial(_clock, unit=kind.unit)
    if pa.types.is_duration(kind):
        return lambda count: f"{Decimal(count).scaleb(-_DIGITS[kind.unit]):f}s"
    return None


def _nested(scalar: Any) -> Any:
    import pyarrow as pa

    if not scalar.is_valid:
        return None
    if isinstance(scalar, pa.StructScalar):
        return {name: _nested(part) for name, part in scalar.items()}
    if isinstance(scalar, pa.MapScalar):
        entries = [(entry["key"], entry["value"]) for entry in _values(scalar.values)]
        if _is_text(scalar.type.key_type):
            return dict(entries)
        return [{"key": key, "value": value} for key, value in entries]
    if pa.types.is_nested(scalar.type):
        return _values(scalar.values)
    return _values(pa.array([scalar], scalar.type))[0]


def _is_text(kind: pa.DataType) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _instant(count: int, unit: str, zone: str) -> str:
    """Return a time in RFC 3339."""
    seconds, fraction = divmod(count, 10 ** _DIGITS[unit])
    days, rest = divmod(seconds, _SECONDS_PER_DAY)
    try:
        day = date.fromordinal(days + _EPOCH)
    except (ValueError, OverflowError):
        return f"{count} {unit} from 1970"
    return f"{day.isoformat()}T{_clock(rest * 10 ** _DIGITS[unit] + fraction, unit)}{zone}"


def _day(days: int) -> str:
    try:
        return date.fromordinal(days + _EPOCH).isoformat()
    except (ValueError, OverflowError):
        return f"{days} days from 1970"


def _clock(count: int, unit: str) -> str:
    """Return a time of day; the fraction has three, six or nine digits, as few as possible."""
    seconds, fraction = divmod(count, 10 ** _DIGITS[unit])
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}{_fraction(fraction, unit)}"


def _fraction(count: int, unit: str) -> str:
    """Return the fraction of a second with its point: three, six or nine digits, no more than it needs."""
    digits = f".{count:0{_DIGITS[unit]}d}" if count else ""
    while digits.endswith("000"):
        digits = digits[:-3]
    return digits


def plain(value: Any) -> Any:
    """Return a value as JSON and YAML can represent it."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if value - value == 0 else str(value).lower()  # JSON has neither NaN nor infinity
        case Decimal():
            return f"{value:f}"  # with all its digits: 0.0000000000, not 0E-10
        case bytes():
            return base64.b16encode(value).decode().lower()
        case dict():
            return {str(key): plain(part) for key, part in value.items()}
        case list() | tuple():
            return [plain(part) for part in value]
        case _:
            return str(value)


def is_number(values: Iterable[Any]) -> bool:
    """Return whether all non-null values are numbers, and there is at least one."""
    present = [value for value in values if value is not None]
    return bool(present) and all(isinstance(v, (int, float, Decimal)) and not isinstance(v, bool) for v in present)
