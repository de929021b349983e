"""The primary key of a dataset's current state, recorded as an attribute of its schema for consumers.

No two rows of the current state have the same values in these columns. A key without columns means that there is at
most one row. Queries determine the key, for example by their groups.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from odfpy.data.attributes import ExtraAttributes
from odfpy.data.schemas.schema import DataSchema

ATTRIBUTE: Final = "odfpy/primaryKey"


def primary_key_of(schema: DataSchema) -> tuple[str, ...] | None:
    """Return the key that a schema records, None if it records none."""
    found = schema.extra.to_dict().get(ATTRIBUTE) if schema.extra else None
    if not isinstance(found, list) or not all(isinstance(name, str) for name in found):
        return None
    return tuple(found)


def with_primary_key(schema: DataSchema, key: tuple[str, ...] | None) -> DataSchema:
    """Return the schema with another key, or without a key if it is None; other attributes stay."""
    if primary_key_of(schema) == key:
        return schema
    attributes = schema.extra.to_dict() if schema.extra else {}
    attributes.pop(ATTRIBUTE, None)
    if key is not None:
        attributes[ATTRIBUTE] = list(key)
    return replace(schema, extra=ExtraAttributes.of(attributes) if attributes else None)
