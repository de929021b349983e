"""Schemas in short."""

from __future__ import annotations

from odfpy.data.schemas.schema import DataField, DataSchema, DataType, Option


def required(**columns: DataType) -> DataSchema:
    """Return a schema of required columns."""
    return DataSchema(tuple(DataField(name, column) for name, column in columns.items()))


def optional(**columns: DataType) -> DataSchema:
    """Return a schema of optional columns."""
    return DataSchema(tuple(DataField(name, Option(column)) for name, column in columns.items()))
