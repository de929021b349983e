"""Conversion between the schema of a dataset and Arrow's (ODF specification, "Schema" and its mapping to Arrow).

`Option` is Arrow's nullability, at every level. Arrow has several layouts of the same logical type (views, 64-bit
offsets, dictionaries, run ends). The schema of a dataset does not record them, so all are read as the *plain* layout.
Timestamps and times without a unit are in milliseconds, timestamps without a time zone in UTC.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from odfpy.data.schemas import schema as odf
from odfpy.data.schemas.schema import DataField, DataSchema, DataType, TimeUnit
from odfpy.data.schemas.type_text import type_text
from odfpy.errors import SchemaError

ITEM = "item"
"""Name of the items of a list. It has no meaning, but is visible in Parquet."""

DEFAULT_UNIT = TimeUnit.MILLISECOND
DEFAULT_TIMEZONE = "UTC"
MAX_DECIMAL128 = 38

_UNIT_TO_ARROW = {
    TimeUnit.SECOND: "s",
    TimeUnit.MILLISECOND: "ms",
    TimeUnit.MICROSECOND: "us",
    TimeUnit.NANOSECOND: "ns",
}
_UNIT_FROM_ARROW = {text: unit for unit, text in _UNIT_TO_ARROW.items()}

_SIMPLE: dict[DataType, pa.DataType] = {
    odf.Bool(): pa.bool_(),
    odf.Date(): pa.date32(),
    odf.Float16(): pa.float16(),
    odf.Float32(): pa.float32(),
    odf.Float64(): pa.float64(),
    odf.Int8(): pa.int8(),
    odf.Int16(): pa.int16(),
    odf.Int32(): pa.int32(),
    odf.Int64(): pa.int64(),
    odf.UInt8(): pa.uint8(),
    odf.UInt16(): pa.uint16(),
    odf.UInt32(): pa.uint32(),
    odf.UInt64(): pa.uint64(),
    odf.Null(): pa.null(),
    odf.String(): pa.string(),
}
_SIMPLE_FROM_ARROW: dict[pa.DataType, DataType] = {arrow: value for value, arrow in _SIMPLE.items()}


def to_arrow(schema: DataSchema) -> pa.Schema:
    """Return the Arrow schema of a dataset's schema, without extra attributes.

    Raises:
        SchemaError: Arrow cannot represent a type; the message names the field.
    """
    return pa.schema([_field_to_arrow(field, field.name) for field in schema.fields])


def to_arrow_type(data_type: DataType) -> pa.DataType:
    """Return the Arrow type of a type; `Option` is ignored, since nullability belongs to the field.

    Raises:
        SchemaError: Arrow cannot represent the type.
    """
    return _to_arrow(data_type, "")[0]


def from_arrow(schema: pa.Schema) -> DataSchema:
    """Return the dataset schema of an Arrow schema in any layout, without field metadata.

    Raises:
        SchemaError: ODF does not have a type; the message names the field.
    """
    return DataSchema(tuple(_field_from_arrow(field, field.name) for field in schema))


def from_arrow_type(arrow_type: pa.DataType) -> DataType:
    """Return the dataset type of an Arrow type, without `Option`.

    Raises:
        SchemaError: ODF does not have the type.
    """
    return _from_arrow(plain_type(arrow_type), "")


# --- To Arrow --------------------------------------------------------------------------------------------------------


def _field_to_arrow(field: DataField, path: str) -> pa.Field:
    arrow_type, nullable = _to_arrow(field.type, path)
    return pa.field(field.name, arrow_type, nullable=nullable)


def _to_arrow(data_type: DataType, path: str) -> tuple[pa.DataType, bool]:
    """Return Arrow type and nullability."""
    if isinstance(data_type, odf.Option):
        if isinstance(data_type.inner, odf.Option):
            raise SchemaError(f"Option of Option{_at(path)}", hint="Write Option once.")
        return _to_arrow(data_type.inner, path)[0], True
    try:
        return _required_to_arrow(data_type, path), isinstance(data_type, odf.Null)
    except (pa.ArrowException, ValueError, OverflowError, TypeError) as error:
        raise SchemaError(f"Arrow cannot hold {type_text(data_type)}{_at(path)}: {error}") from error


def _required_to_arrow(data_type: DataType, path: str) -> pa.DataType:
    simple = _SIMPLE.get(data_type)
    if simple is not None:
        return simple
    match data_type:
        case odf.Binary(fixed_length):
            return pa.binary() if fixed_length is None else pa.binary(fixed_length)
        case odf.Decimal(precision, scale):
            if not -128 <= scale <= 127:  # pyarrow accepts scales that the format cannot represent
                raise SchemaError(f"Arrow cannot hold {type_text(data_type)}{_at(path)}: the scale has 8 bits")
            make = pa.decimal128 if precision <= MAX_DECIMAL128 else pa.decimal256
            return make(precision, scale)
        case odf.Duration(unit):
            return pa.duration(_UNIT_TO_ARROW[unit or DEFAULT_UNIT])
        case odf.Time(unit):
            coarse = unit in (None, TimeUnit.SECOND, TimeUnit.MILLISECOND)
            return (pa.time32 if coarse else pa.time64)(_UNIT_TO_ARROW[unit or DEFAULT_UNIT])
        case odf.Timestamp(unit, timezone):
            return pa.timestamp(_UNIT_TO_ARROW[unit or DEFAULT_UNIT], timezone or DEFAULT_TIMEZONE)
        case odf.List(item_type, fixed_length):
            item = _field_to_arrow(DataField(ITEM, item_type), _join(path, ITEM))
            return pa.list_(item) if fixed_length is None else pa.list_(item, fixed_length)
        case odf.Map(key_type, value_type, keys_sorted):
            key = _field_to_arrow(DataField("key", key_type), _join(path, "key"))
            value = _field_to_arrow(DataField("value", value_type), _join(path, "value"))
            return pa.map_(key, value, keys_sorted=bool(keys_sorted))
        case odf.Struct(fields):
            return pa.struct([_field_to_arrow(field, _join(path, field.name)) for field in fields])
        case _:
            raise SchemaError(f"Unknown type {data_type!r}{_at(path)}")


# --- From Arrow ------------------------------------------------------------------------------------------------------


def _field_from_arrow(field: pa.Field, path: str) -> DataField:
    return DataField(field.name, _optional_from_arrow(field, path))


def _optional_from_arrow(field: pa.Field, path: str) -> DataType:
    data_type = _from_arrow(plain_type(field.type), path)
    return odf.Option(data_type) if field.nullable and not isinstance(data_type, odf.Null) else data_type


def _from_arrow(arrow: pa.DataType, path: str) -> DataType:
    simple = _SIMPLE_FROM_ARROW.get(arrow)
    if simple is not None:
        return simple
    if pa.types.is_binary(arrow):
        return odf.Binary()
    if pa.types.is_fixed_size_binary(arrow):
        return odf.Binary(arrow.byte_width)
    if pa.types.is_date64(arrow):
        return odf.Date()
    if pa.types.is_decimal(arrow):
        return odf.Decimal(arrow.precision, arrow.scale)
    if pa.types.is_duration(arrow):
        return odf.Duration(_UNIT_FROM_ARROW[arrow.unit])
    if pa.types.is_time(arrow):
        return odf.Time(_UNIT_FROM_ARROW[arrow.unit])
    if pa.types.is_timestamp(arrow):
        return odf.Timestamp(_UNIT_FROM_ARROW[arrow.unit], arrow.tz)
    return _nested_from_arrow(arrow, path)


def _nested_from_arrow(arrow: pa.DataType, path: str) -> DataType:
    if pa.types.is_list(arrow):
        return odf.List(_optional_from_arrow(arrow.value_field, _join(path, ITEM)))
    if pa.types.is_fixed_size_list(arrow):
        return odf.List(_optional_from_arrow(arrow.value_field, _join(path, ITEM)), arrow.list_size)
    if pa.types.is_map(arrow):
        return odf.Map(
            _optional_from_arrow(arrow.key_field, _join(path, "key")),
            _optional_from_arrow(arrow.item_field, _join(path, "value")),
            arrow.keys_sorted,
        )
    if pa.types.is_struct(arrow):
        return odf.Struct(tuple(_field_from_arrow(field, _join(path, field.name)) for field in arrow.fields))
    raise SchemaError(
        f"Arrow type {arrow}{_at(path)} has no counterpart in ODF",
        hint="Cast the column to a supported type, for example in the preprocessing query.",
    )


# --- Plain layouts ---------------------------------------------------------------------------------------------------


def plain_type(arrow: pa.DataType) -> pa.DataType:
    """Return the same logical type in its plain layout, at every level.

    There are no views, 64-bit offsets, dictionaries, run ends or extension types, and list items are named `item`.
    Numbers, times and decimals are unchanged.
    """
    for is_layout, plain in _LAYOUTS:
        if is_layout(arrow):
            return plain(arrow)
    return arrow


def plain_field(field: pa.Field) -> pa.Field:
    """Return the field in its plain layout, without metadata."""
    return pa.field(field.name, plain_type(field.type), nullable=field.nullable)


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """Return the schema in its plain layout, without metadata."""
    return pa.schema([plain_field(field) for field in schema])


def plain_array(array: pa.Array) -> pa.Array:
    """Return the same values in the plain layout of their type. Slots under nulls may change.

    Nested arrays are decomposed here, since Arrow's own cast of list views gives wrong items (pyarrow 26).
    """
    plain = plain_type(array.type)
    if array.type.equals(plain):
        return array
    if isinstance(array, pa.ExtensionArray):
        return plain_array(array.storage)
    if pa.types.is_dictionary(array.type):
        return plain_array(array.dictionary_decode())
    if pa.types.is_run_end_encoded(array.type):
        import pyarrow.compute as pc  # 7 MB, for a rare layout

        return plain_array(pc.run_end_decode(array))
    mask = array.is_null() if array.null_count else None
    if pa.types.is_struct(plain):
        children = [plain_array(array.field(at)) for at in range(array.type.num_fields)]
        return pa.StructArray.from_arrays(children, fields=list(plain.fields), mask=mask)
    if pa.types.is_fixed_size_list(plain):
        size = plain.list_size
        items = plain_array(array.values.slice(array.offset * size, len(array) * size))
        return pa.FixedSizeListArray.from_arrays(items, type=plain, mask=mask)
    if pa.types.is_list(plain):
        offsets, items = _list_parts(array)
        return pa.ListArray.from_arrays(pa.array(offsets).cast(pa.int32()), items, plain, mask=mask)
    return array.cast(plain)


def _list_parts(array: pa.Array) -> tuple[npt.NDArray[np.int64], pa.Array]:
    """Return offsets from 0 and plain items of an array of lists in any layout except fixed-size lists."""
    starts = np.asarray(array.offsets).astype(np.int64)
    if pa.types.is_list(array.type) or pa.types.is_large_list(array.type):
        return starts - starts[0], plain_array(array.values.slice(starts[0], starts[-1] - starts[0]))
    sizes = np.where(np.asarray(array.is_valid()), np.asarray(array.sizes), 0)
    offsets = np.zeros(len(array) + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    picked = np.repeat(starts - offsets[:-1], sizes) + np.arange(offsets[-1])
    return offsets, plain_array(array.values).take(pa.array(picked))


def _plain_item(arrow: pa.DataType) -> pa.Field:
    return plain_field(arrow.value_field).with_name(ITEM)


_LAYOUTS: tuple[tuple[Callable[[pa.DataType], bool], Callable[[pa.DataType], pa.DataType]], ...] = (
    (lambda arrow: isinstance(arrow, pa.BaseExtensionType), lambda arrow: plain_type(arrow.storage_type)),
    (pa.types.is_dictionary, lambda arrow: plain_type(arrow.value_type)),
    (pa.types.is_run_end_encoded, lambda arrow: plain_type(arrow.value_type)),
    (lambda arrow: pa.types.is_large_string(arrow) or pa.types.is_string_view(arrow), lambda _: pa.string()),
    (lambda arrow: pa.types.is_large_binary(arrow) or pa.types.is_binary_view(arrow), lambda _: pa.binary()),
    (pa.types.is_fixed_size_list, lambda arrow: pa.list_(_plain_item(arrow), arrow.list_size)),
    (
        lambda arrow: (
            pa.types.is_list(arrow)
            or pa.types.is_large_list(arrow)
            or pa.types.is_list_view(arrow)
            or pa.types.is_large_list_view(arrow)
        ),
        lambda arrow: pa.list_(_plain_item(arrow)),
    ),
    (
        pa.types.is_map,
        lambda arrow: pa.map_(
            plain_field(arrow.key_field).with_name("key"),
            plain_field(arrow.item_field).with_name("value"),
            keys_sorted=arrow.keys_sorted,
        ),
    ),
    (pa.types.is_struct, lambda arrow: pa.struct([plain_field(field) for field in arrow.fields])),
)


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _at(path: str) -> str:
    return f" in field {path!r}" if path else ""


def has_one_form(kind: pa.DataType) -> bool:
    """Return whether equal values of a type are identical; floats have two zeros and many NaNs, maps have orders."""
    return not pa.types.is_floating(kind) and not pa.types.is_nested(kind)


def has_within(kind: pa.DataType, is_wanted: Callable[[pa.DataType], bool]) -> bool:
    """Return whether a predicate holds for a type or for a type nested in it, at any level.

    Args:
        kind: the type.
        is_wanted: the predicate.
    """
    return bool(is_wanted(kind)) or any(has_within(kind.field(at).type, is_wanted) for at in range(kind.num_fields))
