"""Conversion of two states to equal types, as SQL: structs may have gained members in between."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from odfpy.query.dialects import DIALECTS

if TYPE_CHECKING:
    import pyarrow as pa

_DIALECT: Final = DIALECTS["datafusion"]


def with_all_members(tables: Sequence[str], schemas: Sequence[pa.Schema]) -> list[str]:
    """Return both states with all members of their structs; missing members are null.

    Args:
        tables: the old and the new state, as SQL for a FROM clause.
        schemas: schemas of the tables.
    """
    return [_with_members_of(tables[1 - at], schemas[1 - at], tables[at], schemas[at], is_old=at == 0) for at in (0, 1)]


def _with_members_of(other: str, other_schema: pa.Schema, table: str, schema: pa.Schema, *, is_old: bool) -> str:
    replaced = []
    for field in schema:
        at = other_schema.get_field_index(field.name)
        if at >= 0:
            name = _DIALECT.quoted(field.name)
            # An untyped null does not work: it needs the type of the other state.
            missing = f"(SELECT {name} FROM {other} WHERE FALSE)"  # noqa: S608
            value = _value(name, field.type, missing, other_schema.field(at).type, is_old=is_old)
            replaced += [f"{value} AS {name}"] if value != name else []
    return f"(SELECT * REPLACE ({', '.join(replaced)}) FROM {table})" if replaced else table  # noqa: S608


def _value(value: str, kind: pa.DataType, missing: str, other: pa.DataType, *, is_old: bool) -> str:
    """Return the SQL of a value with the members of both types, members of the new state first."""
    import pyarrow as pa

    if kind == other or not (pa.types.is_struct(kind) and pa.types.is_struct(other)):
        return value
    own_types, other_types = ({field.name: field.type for field in struct.fields} for struct in (kind, other))
    parts = []
    for name in {**other_types, **own_types} if is_old else {**own_types, **other_types}:
        text = "'" + name.replace("'", "''") + "'"
        inner, null = f"{value}[{text}]", f"{missing}[{text}]"
        if name in own_types and name in other_types:
            inner = _value(inner, own_types[name], null, other_types[name], is_old=is_old)
        parts.append(f"{text}, {inner if name in own_types else null}")
    return f"CASE WHEN {value} IS NULL THEN NULL ELSE named_struct({', '.join(parts)}) END"
