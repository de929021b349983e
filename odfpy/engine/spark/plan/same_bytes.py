"""Grouping and sorting of rows that are identical to the bit: texts by their bytes, whatever their collation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from odfpy.engine.spark.plan.storable_types import has_map

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType


def summed_by_row(rows: DataFrame, names: Sequence[str], totals: Mapping[str, Column]) -> DataFrame:
    """Return distinct rows, each with aggregates over its duplicates, sums for example.

    Spark treats texts as equal that are equal by their collation, such as `a` and `A`, and keeps one of them; here they
    stay distinct.

    Args:
        rows: the rows.
        names: the columns of a row.
        totals: the aggregates, by their names.
    """
    from pyspark.sql import functions

    types = {field.name: field.dataType for field in rows.schema.fields}
    plain = {column: _by_bytes(types[column]) for column in names}
    collated = [column for column in names if plain[column] != types[column]]
    groups = [
        functions.col(group_name).cast(plain[group_name]).alias(group_name) if group_name in collated else group_name
        for group_name in names
    ]
    summed = rows.groupBy(*groups).agg(*(total.alias(name) for name, total in totals.items()))
    if not collated:
        return summed
    restored = [
        functions.col(group_name).cast(types[group_name]).alias(group_name) if group_name in collated else group_name
        for group_name in names
    ]
    return summed.select(*restored, *totals)


def _by_bytes(data_type: DataType) -> DataType:
    """Return a type in which texts are compared by their bytes."""
    from pyspark.sql.types import ArrayType, MapType, StringType, StructField, StructType

    if type(data_type) is StringType:
        return StringType()
    if isinstance(data_type, ArrayType):
        return ArrayType(_by_bytes(data_type.elementType), data_type.containsNull)
    if isinstance(data_type, MapType):
        return MapType(_by_bytes(data_type.keyType), _by_bytes(data_type.valueType), data_type.valueContainsNull)
    if isinstance(data_type, StructType):
        fields = data_type.fields
        return StructType(
            [StructField(field.name, _by_bytes(field.dataType), field.nullable, field.metadata) for field in fields]
        )
    return data_type


def sortable(rows: DataFrame, name: str) -> Column:
    """Return the sort key of a column, also for nested values: texts by their bytes, maps by their entries."""
    from pyspark.sql import functions

    data_type, column = rows.schema[name].dataType, functions.col(f"`{name.replace('`', '``')}`")
    plain = _by_bytes(data_type)
    return _sortable(column if plain == data_type else column.cast(plain), plain)


def _sortable(column: Column, data_type: DataType) -> Column:
    from pyspark.sql import functions
    from pyspark.sql.types import ArrayType, MapType, StructType

    if not has_map(data_type):
        return column
    if isinstance(data_type, StructType):
        fields = [_sortable(column[field.name], field.dataType).alias(field.name) for field in data_type.fields]
        return functions.when(column.isNotNull(), functions.struct(*fields))
    if isinstance(data_type, ArrayType):
        inner = data_type.elementType
        return functions.transform(column, lambda item: _sortable(item, inner))
    entries = functions.map_entries(column)
    if isinstance(data_type, MapType) and has_map(data_type.valueType):
        values = data_type.valueType
        entries = functions.transform(
            entries,
            lambda entry: functions.struct(entry["key"].alias("key"), _sortable(entry["value"], values).alias("value")),
        )
    return functions.array_sort(entries)
