"""Schema evolution: how the schema of a dataset grows with new rows (ODF specification, "Schema Evolution").

The first rows set the schema. Later ones follow it: an optional column may be missing, a new one extends the schema,
and whether a required column has nulls is decided by its values, not by its declaration.

A column of only nulls has no type yet. If it is new, it is omitted until a value arrives; so is a member of a struct.
"""

from __future__ import annotations

from collections.abc import Container, Iterable

import pyarrow as pa

from odfpy.data.schemas.arrow import from_arrow, has_within, to_arrow
from odfpy.data.schemas.evolution import extend_with
from odfpy.data.schemas.schema import DataField, DataSchema, DataType, List, Map, Null, Option, Struct, Timestamp
from odfpy.data.schemas.system_columns import data_fields, system_fields
from odfpy.data.vocabulary import DatasetVocabulary
from odfpy.errors import SchemaError


def untyped_columns(rows: pa.Schema) -> tuple[str, ...]:
    """Return the columns whose type is unknown, since they only contain nulls or empty lists."""
    return tuple(field.name for field in rows if _is_untyped(field.type))


def first_schema(rows: pa.Schema, vocabulary: DatasetVocabulary) -> DataSchema:
    """Return the schema that the first rows of a dataset define, without columns whose type is unknown.

    Args:
        rows: event time, which is required, and data columns in the order of the input.
        vocabulary: names of the system columns, which come first.

    Raises:
        SchemaError: a column has a type that datasets cannot have, or lists with items of unknown type.
    """
    untyped = [field.name for field in rows if _has_empty_lists(field.type)]
    if untyped:
        raise SchemaError(
            f"Column {', '.join(map(repr, untyped))} has only nulls and empty lists, so its type is unknown",
            hint="Declare its type in the source's schema, or cast it in the preprocessing query.",
        )
    new = from_arrow(_typed_only(rows))
    event_time = next(field.type for field in new.fields if field.name == vocabulary.event_time_column)
    return DataSchema((*system_fields(vocabulary, event_time), *data_fields(new, vocabulary)))


def next_schema(rows: pa.Schema, recorded: DataSchema, vocabulary: DatasetVocabulary) -> DataSchema:
    """Return the schema after such rows are added: `recorded`, possibly with new optional columns at its end.

    New columns without a type are omitted until a value arrives.

    Args:
        rows: the schema of the new rows.
        recorded: the schema in force.
        vocabulary: names of the system columns.

    Raises:
        SchemaError: the type of a column has changed, or a required one is missing; the message names it.
    """
    types = {field.name: field.type for field in recorded.fields}
    known = from_arrow(_typed_only(rows, types)).fields
    given = tuple(_as_recorded(field, types.get(field.name)) for field in known)
    made = tuple(f for f in recorded.fields if f.name in vocabulary.columns and f.name not in rows.names)
    return extend_with(recorded, DataSchema((*made, *given)))


def _typed_only(fields: Iterable[pa.Field], recorded: Container[str] = ()) -> pa.Schema:
    """Return the columns that are recorded, or have a type; of structs only the members that have one."""
    found = [field if field.name in recorded else _typed(field) for field in fields]
    return pa.schema([field for field in found if field is not None])


def _typed(field: pa.Field) -> pa.Field | None:
    if not _is_untyped(field.type):
        return field
    members = _typed_only(field.type.fields) if pa.types.is_struct(field.type) else []
    return field.with_type(pa.struct(list(members))) if members else None


def _is_untyped(arrow: pa.DataType) -> bool:
    return has_within(arrow, pa.types.is_null)


def _has_empty_lists(arrow: pa.DataType) -> bool:
    """Return whether there are lists, at any level, with items of unknown type."""
    if pa.types.is_struct(arrow):
        return any(_has_empty_lists(member.type) for member in arrow.fields)
    return bool(pa.types.is_nested(arrow)) and _is_untyped(arrow)


def _as_recorded(field: DataField, recorded: DataType | None) -> DataField:
    """Return the field, as optional as recorded; a new one is optional, since older rows lack it."""
    if recorded is not None:
        return DataField(field.name, _aligned(field.type, recorded), field.extra)
    return field if field.is_optional else DataField(field.name, Option(field.type), field.extra)


def _aligned(new: DataType, recorded: DataType) -> DataType:
    """Return `new` with the nullability of `recorded`. A column of nothing but nulls can have any type."""
    inner = new.inner if isinstance(new, Option) else new
    if isinstance(inner, Null):
        return recorded
    if isinstance(recorded, Option):
        return Option(_aligned(inner, recorded.inner))
    match inner, recorded:
        case Timestamp(), Timestamp():
            return recorded  # values are cast, and refused if that is lossy
        case Struct(fields), Struct(old_fields):
            types = {field.name: field.type for field in old_fields}
            known = from_arrow(_typed_only(to_arrow(DataSchema(fields)), types)).fields
            return Struct(tuple(_as_recorded(field, types.get(field.name)) for field in known))
        case List(item, length), List(old_item, _):
            return List(_aligned(item, old_item), length)
        case Map(key, value, is_sorted), Map(old_key, old_value, _):
            return Map(_aligned(key, old_key), _aligned(value, old_value), is_sorted)
        case _:
            return inner
