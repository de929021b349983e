"""The primary key of what a dataset stands for, as an attribute of its schema: recorded for whoever reads the dataset.

No two rows of the current state have the same values in these columns. A key without columns says that there is one
row at most. Queries tell it: by their groups, for example.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from odfpy.data.attributes import ExtraAttributes
from odfpy.data.schemas.schema import DataSchema

ATTRIBUTE: Final = "odfpy/primaryKey"


def primary_key_of(schema: DataSchema) -> tuple[str, ...] | None:
    """Return the key that a schema records, None when it records none."""
    found = schema.extra.to_dict().get(ATTRIBUTE) if schema.extra else None
    if not isinstance(found, list) or not all(isinstance(name, str) for name in found):
        return None
    return tuple(found)


def with_primary_key(schema: DataSchema, key: tuple[str, ...] | None) -> DataSchema:
    """Return the schema with another key, or with none; other attributes stay."""
    if primary_key_of(schema) == key:
        return schema
    attributes = schema.extra.to_dict() if schema.extra else {}
    attributes.pop(ATTRIBUTE, None)
    if key is not None:
        attributes[ATTRIBUTE] = list(key)
    return replace(schema, extra=ExtraAttributes.of(attributes) if attributes else None)
