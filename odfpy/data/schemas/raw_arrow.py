"""Schemas in the format of older writers: `rawArrowSchema` of SetDataSchema (ODF specification, "SetDataSchema").

The bytes are a FlatBuffer with Arrow's table `Schema` as its root. Arrow itself only reads such tables inside a
`Message`, so the bytes are wrapped in one.
"""

from __future__ import annotations

import struct
from functools import lru_cache

from odfpy.data.schemas import schema as odf
from odfpy.data.schemas.evolution import check_evolution
from odfpy.data.schemas.schema import DataField, DataSchema, DataType
from odfpy.errors import SchemaError

_CONTINUATION = b"\xff\xff\xff\xff"
_VERSION_5, _HEADER_IS_SCHEMA = 4, 1
_PREFIX = 32  # bytes; a multiple of eight, so that the schema stays aligned
_VTABLE, _TABLE = 4, 16


@lru_cache(maxsize=64)
def read_raw_arrow(data: bytes) -> DataSchema:
    """Return the schema that the bytes encode.

    Raises:
        SchemaError: the bytes are not an Arrow schema, or ODF cannot express it.
    """
    import pyarrow as pa

    from odfpy.data.schemas.arrow import from_arrow

    try:
        return from_arrow(pa.ipc.read_schema(pa.py_buffer(_message(data))))
    except (pa.ArrowException, struct.error, OSError, ValueError) as error:
        raise SchemaError(f"The recorded raw Arrow schema cannot be read: {error}") from error


def check_upgrade(old: DataSchema, new: DataSchema) -> None:
    """Check that `new` may replace `old`, if one of them is a raw Arrow schema.

    The rules are those of evolution. However, writers of raw schemas did not maintain nullability, so fields may become
    optional or required this one time.

    Raises:
        SchemaError: a rule is violated; the message names the field.
    """
    check_evolution(old, DataSchema(_as_optional_fields(old.fields, new.fields)))


def _as_optional_fields(old: tuple[DataField, ...], new: tuple[DataField, ...]) -> tuple[DataField, ...]:
    types = {field.name: field.type for field in old}
    return tuple(
        DataField(field.name, _as_optional(types[field.name], field.type)) if field.name in types else field
        for field in new
    )


def _as_optional(old: DataType, new: DataType) -> DataType:
    """Return `new`, made optional wherever `old` is."""
    match old, new:
        case odf.Option(inner), _:
            return odf.Option(_as_optional(inner, new.inner if isinstance(new, odf.Option) else new))
        case _, odf.Option(inner):
            return _as_optional(old, inner)
        case odf.Struct(fields_old), odf.Struct(fields_new):
            return odf.Struct(_as_optional_fields(fields_old, fields_new))
        case odf.List(item_old, _), odf.List(item_new, length):
            return odf.List(_as_optional(item_old, item_new), length)
        case _:
            return new


def _message(data: bytes) -> bytes:
    """Return an encapsulated IPC message with the schema; its table stays unchanged, behind a prefix of fixed size.

    The prefix: offset of the root table; its vtable (sizes, then slots `version`, `header_type`, `header`); the table
    itself (vtable, offset of the header, version, kind of header).
    """
    (schema_at,) = struct.unpack_from("<I", data)
    prefix = bytearray(_PREFIX)
    struct.pack_into("<I", prefix, 0, _TABLE)
    struct.pack_into("<5H", prefix, _VTABLE, 10, 12, 8, 10, 4)
    header_at = _TABLE + 4
    to_header = _PREFIX + schema_at - header_at
    struct.pack_into("<iIhB", prefix, _TABLE, _TABLE - _VTABLE, to_header, _VERSION_5, _HEADER_IS_SCHEMA)
    body = bytes(prefix) + data + bytes(-len(data) % 8)
    return _CONTINUATION + struct.pack("<i", len(body)) + body
