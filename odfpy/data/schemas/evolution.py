"""Rules by which the schema of a dataset may change (ODF specification, "Schema evolution").

Existing slices must stay readable with the newest schema, and what consumers rely on must stay true:
- attributes may change, fields may be reordered, optional fields may be added, at every level;
- removing, renaming or retyping a field is rejected; so is making an optional field required (old rows may contain
  nulls) or a required one optional (consumers rely on the absence of nulls).
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from odfpy.data.attributes import ExtraAttributes
from odfpy.data.schemas import schema as odf
from odfpy.data.schemas.schema import DataField, DataSchema, DataType, TimeUnit
from odfpy.data.schemas.type_text import type_text
from odfpy.errors import SchemaError

_HINT = "Only optional fields may be added; put data with another schema into a new dataset."
_QUERY_HINT = "Keep the name and type of the column in the query, or create a new dataset with the query."


def check_evolution(old: DataSchema, new: DataSchema) -> None:
    """Check that `new` may follow `old` in a chain.

    Raises:
        SchemaError: a rule is violated; the message names the field.
    """
    _check_fields(old.fields, new.fields, "")


def is_equivalent(old: DataSchema, new: DataSchema) -> bool:
    """Return whether two schemas have the same meaning, so that setting `new` after `old` is a no-op.

    Explicit defaults (`Timestamp` is in milliseconds and UTC) make no difference; attributes and order do.
    """
    return normalized(old) == normalized(new)


def extend_with(old: DataSchema, slice_schema: DataSchema) -> DataSchema:
    """Return the schema of a dataset after a slice that may add optional fields and omit optional ones.

    Fields keep their order, new ones come last; attributes are those of `old`, since slices have none.

    Raises:
        SchemaError: a required field is missing or new, or a type differs; the message names the field.
    """
    return DataSchema(_extend_fields(old.fields, slice_schema.fields, ""), old.extra)


def extend_with_result(old: DataSchema, result: DataSchema) -> DataSchema:
    """Return the schema of a derivative dataset after the result of its query; errors as for `extend_with`."""
    try:
        return extend_with(old, result)
    except SchemaError as error:
        raise SchemaError(error.message.replace("the new data", "the result"), hint=_QUERY_HINT) from error


def new_fields_optional(old: DataSchema, new: DataSchema) -> DataSchema:
    """Return `new` with fields that `old` lacks made optional, since existing rows do not have them."""
    known = {field.name for field in old.fields}
    return DataSchema(tuple(field if field.name in known else _optional(field) for field in new.fields), new.extra)


def with_attributes(schema: DataSchema, recorded: DataSchema | None, declared: DataSchema | None) -> DataSchema:
    """Return a schema in which new columns have their declared attributes.

    Args:
        schema: the schema.
        recorded: the previous schema; its columns keep their attributes.
        declared: columns with their attributes, such as those of a source; None for none.
    """
    if declared is None:
        return schema
    known = set() if recorded is None else {field.name for field in recorded.fields}
    extras = {field.name: field.extra for field in declared.fields if field.name not in known}
    fields = (DataField(f.name, f.type, f.extra or extras.get(f.name)) for f in schema.fields)
    return DataSchema(tuple(fields), schema.extra)


def _optional(field: DataField) -> DataField:
    return field if field.is_optional else DataField(field.name, odf.Option(field.type), field.extra)


def normalized(schema: DataSchema) -> DataSchema:
    """Return the schema with all defaults explicit, and attributes in a canonical form."""
    return DataSchema(tuple(_normal_field(field) for field in schema.fields), _normal_extra(schema.extra))


def _normal_field(field: DataField) -> DataField:
    return DataField(field.name, normal_type(field.type), _normal_extra(field.extra))


def _normal_extra(extra: ExtraAttributes | None) -> ExtraAttributes | None:
    """Return attributes in a canonical notation; an empty object equals no attributes."""
    attributes = extra.to_dict() if extra else {}
    return ExtraAttributes(json.dumps(attributes, sort_keys=True)) if attributes else None


def normal_type(data_type: DataType) -> DataType:
    """Return the type with all defaults explicit."""
    match data_type:
        case odf.Option(inner):
            return odf.Option(normal_type(inner))
        case odf.List(item_type, fixed_length):
            return odf.List(normal_type(item_type), fixed_length)
        case odf.Map(key_type, value_type, keys_sorted):
            return odf.Map(normal_type(key_type), normal_type(value_type), bool(keys_sorted))
        case odf.Struct(fields):
            return odf.Struct(tuple(_normal_field(field) for field in fields))
        case odf.Timestamp(unit, timezone):
            return odf.Timestamp(unit or TimeUnit.MILLISECOND, timezone or "UTC")
        case odf.Time(unit):
            return odf.Time(unit or TimeUnit.MILLISECOND)
        case odf.Duration(unit):
            return odf.Duration(unit or TimeUnit.MILLISECOND)
        case _:
            return data_type


def without_options(data_type: DataType) -> DataType:
    """Return the type without `Option` at any level."""
    match data_type:
        case odf.Option(inner):
            return without_options(inner)
        case odf.List(item_type, fixed_length):
            return odf.List(without_options(item_type), fixed_length)
        case odf.Map(key_type, value_type, keys_sorted):
            return odf.Map(without_options(key_type), without_options(value_type), keys_sorted)
        case odf.Struct(fields):
            return odf.Struct(tuple(DataField(f.name, without_options(f.type), f.extra) for f in fields))
        case _:
            return data_type


# --- The rules -------------------------------------------------------------------------------------------------------


def _check_fields(old: Iterable[DataField], new: Iterable[DataField], path: str) -> None:
    before, after = _by_name(old, path), _by_name(new, path)
    for name in before:
        if name not in after:
            raise SchemaError(f"Field {_join(path, name)!r} may not be removed or renamed", hint=_HINT)
    for name, field in after.items():
        if name not in before and not field.is_optional:
            raise SchemaError(f"New field {_join(path, name)!r} is not optional", hint=_HINT)
    for name, field in before.items():
        _check_type(field.type, after[name].type, _join(path, name))


def _check_type(old: DataType, new: DataType, path: str) -> None:
    match old, new:
        case odf.Option(inner_old), odf.Option(inner_new):
            _check_type(inner_old, inner_new, path)
        case odf.Option(), _:
            raise SchemaError(f"Optional field {path!r} may not become required", hint=_HINT)
        case _, odf.Option():
            raise SchemaError(f"Required field {path!r} may not become optional", hint=_HINT)
        case odf.Struct(fields_old), odf.Struct(fields_new):
            _check_fields(fields_old, fields_new, path)
        case odf.List(item_old, length_old), odf.List(item_new, length_new) if length_old == length_new:
            _check_type(item_old, item_new, _join(path, "item"))
        case odf.Map(key_old, value_old, _), odf.Map(key_new, value_new, _):
            _check_type(key_old, key_new, _join(path, "key"))
            _check_type(value_old, value_new, _join(path, "value"))
        case _ if normal_type(old) != normal_type(new):
            raise SchemaError(
                f"Type of field {path!r} may not change from {type_text(old)} to {type_text(new)}", hint=_HINT
            )


def _extend_fields(old: Iterable[DataField], new: Iterable[DataField], path: str) -> tuple[DataField, ...]:
    before, after = _by_name(old, path), _by_name(new, path)
    fields = []
    for name, field in before.items():
        if name in after:
            data_type = _extend_type(field.type, after[name].type, _join(path, name))
            fields.append(DataField(name, data_type, field.extra))
        elif field.is_optional:
            fields.append(field)
        else:
            raise SchemaError(
                f"Required field {_join(path, name)!r} is missing in the new data",
                hint="Supply it in the preprocessing query, or put data with another schema into a new dataset.",
            )
    for name, field in after.items():
        if name in before:
            continue
        if not field.is_optional:
            raise SchemaError(f"New field {_join(path, name)!r} is not optional", hint=_HINT)
        fields.append(field)
    return tuple(fields)


def _extend_type(old: DataType, new: DataType, path: str) -> DataType:
    """Return `old` extended by members that `new` adds to structs. Required values are accepted for optional ones."""
    match old, new:
        case odf.Option(inner), _:
            return odf.Option(_extend_type(inner, new.inner if isinstance(new, odf.Option) else new, path))
        case _, odf.Option():
            raise SchemaError(
                f"Field {path!r} is required but nullable in the new data",
                hint="Filter such rows out in the preprocessing query.",
            )
        case odf.Struct(fields_old), odf.Struct(fields_new):
            return odf.Struct(_extend_fields(fields_old, fields_new, path))
        case odf.List(item_old, length), odf.List(item_new, length_new) if length == length_new:
            return odf.List(_extend_type(item_old, item_new, _join(path, "item")), length)
        case odf.Map(key_old, value_old, keys_sorted), odf.Map(key_new, value_new, _):
            key = _extend_type(key_old, key_new, _join(path, "key"))
            return odf.Map(key, _extend_type(value_old, value_new, _join(path, "value")), keys_sorted)
        case _ if normal_type(old) == normal_type(new):
            return old
        case _:
            raise SchemaError(
                f"Field {path!r} is {type_text(new)} in the new data where {type_text(old)} is recorded",
                hint="Cast it in the preprocessing query, or give the source a schema.",
            )


def _by_name(fields: Iterable[DataField], path: str) -> dict[str, DataField]:
    by_name: dict[str, DataField] = {}
    for field in fields:
        if field.name in by_name:
            raise SchemaError(f"Field {_join(path, field.name)!r} occurs twice")
        by_name[field.name] = field
    return by_name


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
