"""Conversion of Arrow types to Spark types, and back."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa

from odfpy.errors import UnsupportedQuery

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType

_MAX_PRECISION = 38
_Column = TypeVar("_Column", pa.Array, pa.ChunkedArray)


def readable_type(arrow: pa.DataType) -> pa.DataType:
    """Return the nearest type that Spark reads from Parquet: the type itself for most, the next wider one for others.

    Unsigned integers are read as wider signed ones by Spark itself.
    """
    if pa.types.is_float16(arrow):
        return pa.float32()
    if pa.types.is_time32(arrow):
        return pa.time64("us")
    if pa.types.is_timestamp(arrow) and arrow.unit != "ms":
        return pa.timestamp("us", arrow.tz)
    if pa.types.is_decimal256(arrow) and arrow.precision <= _MAX_PRECISION:
        return pa.decimal128(arrow.precision, arrow.scale)
    return _with_inner(arrow, readable_type)


def cast_to_spark(column: _Column, kind: pa.DataType) -> _Column:
    """Cast a column to a type that Spark has. Spark counts microseconds; finer times are truncated, at any depth.

    Raises:
        ArrowException: other values do not fit.
    """
    return column.cast(_in_microseconds(column.type), safe=False).cast(kind)


def _in_microseconds(arrow: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(arrow) and arrow.unit == "ns":
        return pa.timestamp("us", arrow.tz)
    return _with_inner(arrow, _in_microseconds)


def _with_inner(arrow: pa.DataType, change: Callable[[pa.DataType], pa.DataType]) -> pa.DataType:
    """Return a type with its inner types changed; the type itself if it has none."""
    if pa.types.is_struct(arrow):
        return pa.struct([field.with_type(change(field.type)) for field in arrow.fields])
    if pa.types.is_list(arrow):
        return pa.list_(arrow.value_field.with_type(change(arrow.value_type)))
    if pa.types.is_fixed_size_list(arrow):
        return pa.list_(arrow.value_field.with_type(change(arrow.value_type)), arrow.list_size)
    if pa.types.is_map(arrow):
        key, item = (field.with_type(change(field.type)) for field in (arrow.key_field, arrow.item_field))
        return pa.map_(key, item, keys_sorted=arrow.keys_sorted)
    return arrow


def spark_schema(schema: pa.Schema, table: str) -> StructType:
    """Return a table's columns as Spark reads them. All are nullable, as is everything that Spark reads from Parquet.

    Args:
        schema: in plain layout.
        table: name for messages.

    Raises:
        UnsupportedQuery: Spark does not have one of the types.
    """
    from pyspark.sql import types

    fields = []
    for field in schema:
        spark_type = to_spark(field.type)
        if spark_type is None:
            raise UnsupportedQuery(
                f"Column `{field.name}` of `{table}` has type {field.type}, which Spark cannot read",
                hint="`odf sql --engine datafusion` reads it. A derivative of Spark needs another before it, with"
                " `engine: datafusion`, that casts the column.",
            )
        fields.append(types.StructField(field.name, spark_type, nullable=True))
    return types.StructType(fields)


def to_spark(arrow: pa.DataType) -> DataType | None:
    """Return Spark's type for a column of an Arrow type, or None when it has none."""
    from pyspark.sql import types

    simple = {
        pa.bool_(): types.BooleanType(),
        pa.int8(): types.ByteType(),
        pa.int16(): types.ShortType(),
        pa.int32(): types.IntegerType(),
        pa.int64(): types.LongType(),
        pa.uint8(): types.ShortType(),
        pa.uint16(): types.IntegerType(),
        pa.uint32(): types.LongType(),
        pa.uint64(): types.DecimalType(20, 0),
        pa.float16(): types.FloatType(),
        pa.float32(): types.FloatType(),
        pa.float64(): types.DoubleType(),
        pa.string(): types.StringType(),
        pa.binary(): types.BinaryType(),
        pa.date32(): types.DateType(),
        pa.date64(): types.DateType(),
    }
    if arrow in simple:
        return simple[arrow]
    if pa.types.is_fixed_size_binary(arrow):
        return types.BinaryType()
    if pa.types.is_timestamp(arrow):
        return types.TimestampType() if arrow.tz else types.TimestampNTZType()
    if pa.types.is_time(arrow):
        return types.TimeType(9 if arrow.unit == "ns" else 6)
    if pa.types.is_decimal(arrow) and arrow.precision <= _MAX_PRECISION:
        return types.DecimalType(arrow.precision, arrow.scale)
    return _nested_to_spark(arrow)


def _nested_to_spark(arrow: pa.DataType) -> DataType | None:
    from pyspark.sql import types

    if pa.types.is_list(arrow) or pa.types.is_fixed_size_list(arrow):
        item = to_spark(arrow.value_type)
        return None if item is None else types.ArrayType(item)
    if pa.types.is_map(arrow):
        key, value = to_spark(arrow.key_type), to_spark(arrow.item_type)
        return None if key is None or value is None else types.MapType(key, value)
    if pa.types.is_struct(arrow):
        fields = []
        for field in arrow.fields:
            inner = to_spark(field.type)
            if inner is None:
                return None
            fields.append(types.StructField(field.name, inner))
        return types.StructType(fields)
    return None


def struct_of(fields: Iterable[tuple[str, DataType]]) -> StructType:
    """Return a schema of nullable columns."""
    from pyspark.sql.types import StructField, StructType

    return StructType([StructField(name, data_type) for name, data_type in fields])


def arrow_schema(schema: StructType) -> pa.Schema:
    """Return the Arrow schema in which Spark returns rows of a schema.

    Raises:
        UnsupportedQuery: Arrow does not have one of the types; the message names the column.
    """
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PySpark's remarks on the version of pandas, which is not used
        from pyspark.errors import PySparkException
        from pyspark.sql.pandas.types import to_arrow_type

    fields = []
    for field in schema.fields:
        try:
            arrow = None if _is_struct_of_bytes(field.dataType) else to_arrow_type(field.dataType, timezone="UTC")
        except (PySparkException, TypeError, ValueError):
            arrow = None
        if arrow is None:
            raise UnsupportedQuery(
                f"Column `{field.name}` of the result has type {field.dataType.simpleString().upper()}, unknown to ODF",
                hint="Cast the column to a type of a dataset's schema, for example with to_json.",
            )
        fields.append(pa.field(field.name, arrow, nullable=field.nullable))
    return pa.schema(fields)


def _is_struct_of_bytes(data_type: DataType) -> bool:
    """Return whether a type is, or contains, one that PySpark returns as a struct of bytes."""
    from pyspark.sql import types

    if isinstance(data_type, types.ArrayType):
        return _is_struct_of_bytes(data_type.elementType)
    if isinstance(data_type, types.MapType):
        return _is_struct_of_bytes(data_type.keyType) or _is_struct_of_bytes(data_type.valueType)
    if isinstance(data_type, types.StructType):
        return any(_is_struct_of_bytes(field.dataType) for field in data_type.fields)
    return isinstance(data_type, (types.VariantType, types.GeographyType, types.GeometryType))
