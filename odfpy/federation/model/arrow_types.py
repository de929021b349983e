"""Names of Arrow types in documents: those of arrow-rs, which DataWeb uses, too."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from odfpy.errors import InvalidValue, did_you_mean

if TYPE_CHECKING:
    import pyarrow as pa

_PLAIN: Final = {
    "Null": "null", "Boolean": "bool_",
    "Int8": "int8", "Int16": "int16", "Int32": "int32", "Int64": "int64",
    "UInt8": "uint8", "UInt16": "uint16", "UInt32": "uint32", "UInt64": "uint64",
    "Float16": "float16", "Float32": "float32", "Float64": "float64",
    "Utf8": "string", "LargeUtf8": "large_string", "Binary": "binary", "LargeBinary": "large_binary",
    "Date32": "date32", "Date64": "date64",
}  # fmt: skip
_UNITS: Final = {"Second": "s", "Millisecond": "ms", "Microsecond": "us", "Nanosecond": "ns"}
_UNIT_NAMES: Final = {short: name for name, short in _UNITS.items()}
_FORMS: Final = (
    *_PLAIN, "Decimal128(precision, scale)", "Decimal256(precision, scale)", "Timestamp(Nanosecond, None)",
    "Time32(Second)", "Time64(Nanosecond)", "Duration(Nanosecond)", "FixedSizeBinary(length)", "List(type)",
)  # fmt: skip
_MAX_DEPTH: Final = 20
_MAX_LENGTH: Final = 500
_CALL: Final = re.compile(r"(\w+)\s*\((.*)\)", re.DOTALL)  # with \s* at both ends of (.*), it would take cubic time
_ZONE: Final = re.compile(r"""(?:Some\()?\s*"([\w/+:-]{1,64})"\s*\)?""")


def parse_dtype(text: str) -> pa.DataType:
    """Parse the name of a type.

    Args:
        text: such as `Int64`, `Decimal128(15, 2)`, `Timestamp(Nanosecond, Some("UTC"))` or `List(Utf8)`.

    Raises:
        InvalidValue: unknown name; the message suggests a valid one.
    """
    if len(text) > _MAX_LENGTH:
        raise _unknown(f"{text[:40]}...")
    return _parsed(text.strip(), 0)


def dtype_name(kind: pa.DataType) -> str:
    """Return the name of a type; the inverse of `parse_dtype`.

    Raises:
        InvalidValue: the type has no name.
    """
    import pyarrow as pa

    for name, maker in _PLAIN.items():
        if kind.equals(getattr(pa, maker)()):
            return name
    types = pa.types
    if types.is_decimal128(kind) or types.is_decimal256(kind):
        return f"Decimal{kind.bit_width}({kind.precision}, {kind.scale})"
    if types.is_timestamp(kind):
        zone = "None" if kind.tz is None else f'Some("{kind.tz}")'
        return f"Timestamp({_UNIT_NAMES[kind.unit]}, {zone})"
    if types.is_time(kind):
        return f"Time{kind.bit_width}({_UNIT_NAMES[kind.unit]})"
    if types.is_duration(kind):
        return f"Duration({_UNIT_NAMES[kind.unit]})"
    if types.is_fixed_size_binary(kind):
        return f"FixedSizeBinary({kind.byte_width})"
    if types.is_list(kind):
        return f"List({dtype_name(kind.value_type)})"
    raise InvalidValue(f"There is no name for the type {kind}", hint=f"Types with names: {', '.join(_FORMS)}.")


def _parsed(text: str, depth: int) -> pa.DataType:
    import pyarrow as pa

    if text in _PLAIN:
        return getattr(pa, _PLAIN[text])()
    call = _CALL.fullmatch(text)
    if call is None or call[1] not in _MAKERS or depth > _MAX_DEPTH:
        raise _unknown(text)
    name, inner = call[1], call[2].strip()
    if name == "List":
        return pa.list_(_parsed(inner, depth + 1))
    try:
        return _MAKERS[name](*(part.strip() for part in inner.split(",", 1)))
    except (KeyError, TypeError, ValueError, OverflowError) as error:  # pyarrow's own errors are ValueErrors
        raise _unknown(text) from error


def _unknown(text: str) -> InvalidValue:
    known = f"Types are {', '.join(_FORMS)}."
    return InvalidValue(f"Not a type of Arrow: {text!r}", hint=did_you_mean(text, list(_PLAIN), otherwise=known))


def _decimal(bits: str) -> Callable[..., pa.DataType]:
    def make(precision: str, scale: str) -> pa.DataType:
        import pyarrow as pa

        return getattr(pa, f"decimal{bits}")(int(precision), int(scale))

    return make


def _timestamp(unit: str, zone: str = "None") -> pa.DataType:
    import pyarrow as pa

    if zone == "None":
        return pa.timestamp(_UNITS[unit])
    match = _ZONE.fullmatch(zone)
    if match is None:
        raise ValueError(zone)
    return pa.timestamp(_UNITS[unit], match[1])


def _of_unit(maker: str) -> Callable[[str], pa.DataType]:
    def make(unit: str) -> pa.DataType:
        import pyarrow as pa

        return getattr(pa, maker)(_UNITS[unit])

    return make


def _fixed(length: str) -> pa.DataType:
    import pyarrow as pa

    if not 0 < int(length) < 1 << 20:
        raise ValueError(length)
    return pa.binary(int(length))


_MAKERS: Final[dict[str, Callable[..., pa.DataType]]] = {
    "Decimal128": _decimal("128"),
    "Decimal256": _decimal("256"),
    "Timestamp": _timestamp,
    "Time32": _of_unit("time32"),
    "Time64": _of_unit("time64"),
    "Duration": _of_unit("duration"),
    "FixedSizeBinary": _fixed,
    "List": _fixed,  # parsed before
}
