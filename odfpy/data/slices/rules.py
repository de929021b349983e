"""Rules for the content of a slice (ODF specification, "Data Slice")."""

from __future__ import annotations

import pyarrow as pa

from odfpy.data.schemas.arrow import from_arrow_type, plain_array
from odfpy.data.schemas.evolution import normal_type, without_options
from odfpy.data.vocabulary import DatasetVocabulary
from odfpy.errors import SchemaError


def check_slice_schema(schema: pa.Schema, vocab: DatasetVocabulary) -> None:
    """Check the system columns, and that Parquet can represent every type exactly.

    Raises:
        SchemaError: the schema is not valid for a slice; the message names the column.
    """
    names = schema.names
    if tuple(names[:4]) != vocab.columns:
        raise SchemaError(
            f"A slice begins with the columns {', '.join(vocab.columns)}, not with {', '.join(names[:4])}"
        )
    if len(set(names)) < len(names):
        raise SchemaError(f"Two columns of a slice have the same name: {', '.join(names)}")
    wanted = (_is_offset, _is_operation_type, pa.types.is_timestamp, _is_event_time)
    for field, is_right in zip(schema, wanted, strict=False):
        if not is_right(field.type):
            raise SchemaError(f"System column {field.name!r} of a slice cannot have type {field.type}")
    check_storable(schema)


def check_storable(schema: pa.Schema) -> None:
    """Check that Parquet can represent every type of a schema exactly; raises as above."""
    for field in schema:
        _check_storable(field, field.name, may_be_absent=False)


def conform(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return the batch with exactly the given schema; only layout, bit width of decimals and nullability may differ.

    Raises:
        SchemaError: columns or types differ, or a required value is null; the message names the column.
    """
    if batch.schema.names != schema.names:
        raise SchemaError(f"A batch has the columns {batch.schema.names} where the slice has {schema.names}")
    arrays = []
    for field, column in zip(schema, batch.columns, strict=True):
        values = plain_array(column)
        if not values.type.equals(field.type):
            values = _retyped(values, field)
        _check_required(field, values, 0, field.name)
        arrays.append(_without_hidden_nulls(values, field))
    return pa.record_batch(arrays, schema=schema)


def _is_offset(arrow: pa.DataType) -> bool:
    """Return whether a type is valid for offsets: int64, or uint64 as in older datasets."""
    return arrow in (pa.int64(), pa.uint64())


def _is_operation_type(arrow: pa.DataType) -> bool:
    """Return whether a type is valid for operations: int32, or uint8 as in older datasets."""
    return arrow in (pa.int32(), pa.uint8())


def _is_event_time(arrow: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(arrow) or pa.types.is_date(arrow))


def _check_storable(field: pa.Field, path: str, *, may_be_absent: bool) -> None:
    """Reject types that Parquet would not return unchanged; `may_be_absent` is true within optional structs."""
    arrow = field.type
    if pa.types.is_struct(arrow):
        if not arrow.num_fields:
            raise SchemaError(f"Parquet has no structs without fields, such as {path!r}")
        for child in arrow.fields:
            _check_storable(child, f"{path}.{child.name}", may_be_absent=may_be_absent or field.nullable)
    elif pa.types.is_list(arrow) or pa.types.is_fixed_size_list(arrow):
        if may_be_absent and not field.nullable and pa.types.is_fixed_size_list(arrow):
            raise SchemaError(
                f"Required list {path!r} of fixed length in an optional struct cannot be read back from Parquet",
                hint="Make the list optional or its length free.",
            )
        _check_storable(arrow.value_field, f"{path}.{arrow.value_field.name}", may_be_absent=False)
    elif (pa.types.is_timestamp(arrow) or pa.types.is_time(arrow)) and arrow.unit == "s":
        raise SchemaError(f"Parquet has no times in seconds, such as {path!r}", hint="Use milliseconds.")
    elif pa.types.is_decimal(arrow) and not 0 <= arrow.scale <= arrow.precision:
        raise SchemaError(
            f"Parquet cannot hold {arrow}, the type of {path!r}", hint="The scale must be between 0 and the precision."
        )


def _retyped(values: pa.Array, field: pa.Field) -> pa.Array:
    """Return the values in another Arrow type that corresponds to the same ODF type."""
    given, wanted = (without_options(normal_type(from_arrow_type(arrow))) for arrow in (values.type, field.type))
    if given != wanted:
        raise SchemaError(f"A batch has {values.type} in column {field.name!r} where the slice has {field.type}")
    try:
        return values.cast(field.type)
    except pa.ArrowException as error:
        raise SchemaError(f"Column {field.name!r} of a batch does not fit {field.type}: {error}") from error


def _check_required(field: pa.Field, array: pa.Array, nulls_above: int, path: str) -> None:
    """Reject nulls of a required field, except those due to nulls of its parent."""
    if not field.nullable and array.null_count > nulls_above:
        raise SchemaError(
            f"Column {path!r} is required but has nulls",
            hint="Filter such rows out, or supply a value with `coalesce` in the query.",
        )
    if pa.types.is_struct(field.type):
        for child, values in zip(field.type.fields, array.flatten(), strict=True):
            _check_required(child, values, array.null_count, f"{path}.{child.name}")
    elif pa.types.is_list(field.type) or pa.types.is_fixed_size_list(field.type):
        _check_required(field.type.value_field, array.flatten(), 0, f"{path}.{field.type.value_field.name}")


def _without_hidden_nulls(array: pa.Array, field: pa.Field) -> pa.Array:
    """Return the array without nulls in required leaves of null structs, which Parquet's writer would reject."""
    if pa.types.is_struct(field.type):
        fields = list(field.type.fields)
        children = [_without_hidden_nulls(array.field(at), child) for at, child in enumerate(fields)]
        return pa.StructArray.from_arrays(children, fields=fields, mask=array.is_null() if array.null_count else None)
    if field.nullable or array.null_count == 0 or pa.types.is_nested(field.type):
        return array
    return pa.Array.from_buffers(field.type, len(array), [None, *array.buffers()[1:]], offset=array.offset)
