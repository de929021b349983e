"""The four system columns at the beginning of every slice (ODF specification, "Common Data Schema")."""

from __future__ import annotations

from odfpy.data.schemas.schema import DataField, DataSchema, DataType, Int32, Int64, Timestamp, TimeUnit
from odfpy.data.vocabulary import DatasetVocabulary

TIME_TYPE = Timestamp(TimeUnit.MILLISECOND, "UTC")
"""Type of all top-level timestamps in a slice."""


def system_fields(vocab: DatasetVocabulary, event_time_type: DataType = TIME_TYPE) -> tuple[DataField, ...]:
    """Return the fields of offset, operation type, system time and event time, all required, in this order.

    Args:
        vocab: names of the columns.
        event_time_type: a timestamp or a date.
    """
    types = (Int64(), Int32(), TIME_TYPE, event_time_type)
    return tuple(DataField(name, data_type) for name, data_type in zip(vocab.columns, types, strict=True))


def data_fields(schema: DataSchema, vocab: DatasetVocabulary) -> tuple[DataField, ...]:
    """Return the fields of a dataset's schema that are not system columns."""
    return tuple(field for field in schema.fields if field.name not in vocab.columns)


def system_columns_first(schema: DataSchema, vocab: DatasetVocabulary) -> DataSchema:
    """Return the schema in the order of slices; a recorded schema may have another order."""
    by_name = {field.name: field for field in schema.fields}
    system = (by_name[name] for name in vocab.columns if name in by_name)
    return DataSchema((*system, *data_fields(schema, vocab)), schema.extra)
