"""Fitting of new rows to the schema of their dataset, which new columns may extend."""

from __future__ import annotations

import pyarrow as pa

from odfpy.data.schemas.arrow import to_arrow
from odfpy.data.schemas.fit import fit_table
from odfpy.data.schemas.schema import DataSchema
from odfpy.data.vocabulary import DatasetVocabulary
from odfpy.ingest.evolve import first_schema, next_schema
from odfpy.ingest.normalize import NormalizedRows


def fit_rows(
    rows: NormalizedRows, recorded: DataSchema | None, vocab: DatasetVocabulary
) -> tuple[DataSchema, NormalizedRows]:
    """Return the dataset's schema including the new rows, and the rows converted to its types.

    Args:
        rows: new rows.
        recorded: schema of the dataset, None before there is one.
        vocab: names of the system columns.

    Raises:
        SchemaError: the rows do not fit the schema; the message names the column.
    """
    columns = rows.columns
    if recorded is None:
        schema = first_schema(columns.schema, vocab)
    elif columns.num_rows == 0:
        schema, columns = recorded, pa.table({})  # whatever columns an empty input has, they contain nothing
    else:
        schema = next_schema(columns.schema, recorded, vocab)
    made = set(vocab.changelog_columns)
    wanted = pa.schema([field for field in to_arrow(schema) if field.name not in made])
    return schema, NormalizedRows(fit_table(columns, wanted), rows.event_time_given, rows.operations)
