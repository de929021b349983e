"""Types of expressions, and their names in the JSON of fragments.

Types that only differ in their memory layout (views, dictionaries, 64-bit offsets) are one type. Types that fragments
cannot compute with (lists, structs, binary values) are opaque: they can be returned, but not compared.
"""

from __future__ import annotations

import base64
import re
from functools import cache
from typing import Final

import pyarrow as pa
from pyarrow import types as is_

from odfpy.data.schemas.arrow import from_arrow, plain_type, to_arrow
from odfpy.errors import OdfError
from odfpy.federation.sql.errors import InvalidFragment

UNKNOWN: Final = pa.null()
"""The type of columns of other relays, and of NULL alone."""

BOOL: Final = pa.bool_()
INT: Final = pa.int64()
DOUBLE: Final = pa.float64()
TEXT: Final = pa.string()
DATE: Final = pa.date32()

MAX_DIGITS: Final = 38
DIGITS: Final = {8: 3, 16: 5, 32: 10, 64: 20}
"""Decimal digits that hold every integer with a number of bits."""

_MAX_LENGTH: Final = 16 << 10
_SIMPLE: Final = {
    str(one): one
    for one in (
        UNKNOWN, BOOL, pa.int8(), pa.int16(), pa.int32(), INT, pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64(),
        pa.float32(), DOUBLE, TEXT, DATE, pa.binary(), *(pa.timestamp(unit) for unit in ("s", "ms", "us", "ns")),
    )
}  # fmt: skip
_DECIMAL: Final = re.compile(r"decimal128\((\d{1,2}), (\d{1,2})\)", re.ASCII)
_ZONED: Final = re.compile(r"timestamp\[(s|ms|us|ns), tz=([A-Za-z0-9_+:/-]{1,64})\]", re.ASCII)


@cache
def plain(dtype: pa.DataType) -> pa.DataType:
    """Return the type as used in expressions: without layout; timestamps with a zone become microseconds in UTC.

    Args:
        dtype: any Arrow type.
    """
    try:
        dtype = plain_type(dtype)
    except (OdfError, TypeError, ValueError):
        return dtype
    if is_.is_timestamp(dtype) and dtype.tz is not None:
        return pa.timestamp("us", "UTC")
    if is_.is_decimal(dtype) and dtype.bit_width < 128:
        return pa.decimal128(dtype.precision, dtype.scale)
    return DATE if is_.is_date(dtype) else dtype


def kind_of(dtype: pa.DataType) -> str:
    """Return the kind of a type, one word, which determines the available operators.

    Args:
        dtype: a plain type.
    """
    if dtype == UNKNOWN:
        return "unknown"
    for kind, holds in _KINDS:
        if holds(dtype):
            return kind
    return "opaque"


_KINDS: Final = (
    ("bool", is_.is_boolean),
    ("int", is_.is_integer),
    ("decimal", is_.is_decimal128),
    ("float", lambda dtype: is_.is_float32(dtype) or is_.is_float64(dtype)),
    ("text", is_.is_string),
    ("date", is_.is_date32),
    ("time", is_.is_timestamp),
)


def type_to_json(dtype: pa.DataType) -> str:
    """Encode a type for a fragment: its Arrow name, and its serialized schema where the name is not sufficient.

    Args:
        dtype: any Arrow type.
    """
    name = str(dtype)
    if name in _SIMPLE or _DECIMAL.fullmatch(name) or _ZONED.fullmatch(name):
        return name
    schema = to_arrow(from_arrow(pa.schema([pa.field("v", dtype)])))
    return "arrow:" + base64.b64encode(schema.serialize().to_pybytes()).decode()


def type_from_json(text: object) -> pa.DataType:
    """Decode the type in a fragment.

    Raises:
        InvalidFragment: it is not a type.
    """
    if not isinstance(text, str) or len(text) > _MAX_LENGTH:
        raise InvalidFragment("Malformed fragment: unknown type")
    if text in _SIMPLE:
        return _SIMPLE[text]
    try:
        if match := _DECIMAL.fullmatch(text):
            return pa.decimal128(int(match[1]), int(match[2]))
        if match := _ZONED.fullmatch(text):
            return pa.timestamp(match[1], match[2])
        if text.startswith("arrow:"):
            schema = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text[6:], validate=True)))
            return to_arrow(from_arrow(schema)).field(0).type
    except (OdfError, ValueError, TypeError, IndexError, KeyError, OSError, RecursionError) as error:
        raise InvalidFragment("Malformed fragment: unknown type") from error
    raise InvalidFragment("Malformed fragment: unknown type")
