"""Hashes of keys, by which an arrangement finds rows, and the sort of rows by these hashes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from odfpy.engine.spark.plan.catalyst import Catalyst, Node
from odfpy.engine.spark.plan.templates import Templates
from odfpy.engine.spark.plan.types import arrow_schema
from odfpy.engine.spark.rows.batches import write_batches
from odfpy.engine.spark.rows.stored import Stored
from odfpy.engine.spark.rows.write import batches_of
from odfpy.state.arrangement import sorted_by
from odfpy.state.fingerprints import Entries, Fingerprints

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType

HASH: Final = "__odf_hash"
_TEMPLATES: Final = Templates()

_SIGN: Final = np.uint64(1 << 63)
ROWS_AT_ONCE: Final = 1_000_000
"""The number of rows that are sorted in memory at once."""


def with_hash(catalyst: Catalyst, rows: Node, names: Sequence[str], hash_name: str = HASH) -> Node:
    """Add a hash of some columns to rows.

    Args:
        catalyst: the session.
        rows: the rows.
        names: the columns.
        hash_name: name of the added column.
    """
    hashed = partial(_hashed, names=names, hash_name=hash_name)
    return _TEMPLATES.over(catalyst, rows, ("hash", tuple(names), hash_name), hashed)


def _hashed(rows: DataFrame, names: Sequence[str], hash_name: str) -> DataFrame:
    from pyspark.sql import functions

    return rows.withColumn(hash_name, functions.xxhash64(*names))


def is_hashable(data_type: DataType) -> bool:
    """Return whether equal values of a type have the same hash; not so for floats (two zeros) and collated texts."""
    from pyspark.sql import types

    exact = (types.IntegralType, types.DecimalType, types.DateType, types.BooleanType, types.BinaryType)
    times = (types.TimestampType, types.TimestampNTZType)
    return isinstance(data_type, (*exact, *times)) or data_type == types.StringType()


def fingerprints(hashes: pa.Array | pa.ChunkedArray) -> Fingerprints:
    """Return the hashes as unsigned integers, in the same order."""
    unsigned: Fingerprints = np.asarray(hashes.to_numpy(), np.int64).view(np.uint64) ^ _SIGN
    return unsigned


def entries_of(rows: pa.Table) -> Entries:
    """Return rows with hashes as sorted entries of an arrangement."""
    return sorted_by(fingerprints(rows.column(HASH)), without_hash(rows))


def sorted_entries(rows: DataFrame, count: int) -> tuple[pa.Schema, Iterator[Entries]]:
    """Return rows with hashes as sorted entries of an arrangement, batch after batch, and the schema of their rows.

    Args:
        rows: the rows.
        count: their approximate number.
    """
    # Partition by ranges of the hash, so that only one range is in memory while the next one is computed.
    ranges = max(1, -(-count // ROWS_AT_ONCE))
    spread = rows.coalesce(1) if ranges == 1 else rows.repartitionByRange(ranges, HASH)
    batches = batches_of(spread.sortWithinPartitions(HASH))
    parts = (
        Entries(fingerprints(batch.column(HASH)), without_hash(pa.Table.from_batches([batch]))) for batch in batches
    )
    return without_hash(arrow_schema(rows.schema).empty_table()).schema, parts


def without_hash(rows: pa.Table) -> pa.Table:
    """Return the rows without hashes, and with all columns nullable: only some pulls know that one has no nulls."""
    rows = rows.drop_columns([HASH])
    return rows.cast(pa.schema([field.with_nullable(True) for field in rows.schema]))


def file_without_hash(stored: Stored, path: Path) -> Path:
    """Return a Parquet file with the rows, without their hashes.

    Args:
        stored: the rows, with hashes or without.
        path: a file for those without, which is written if there are hashes.
    """
    if HASH not in stored.names:
        return stored.file
    rows = pq.ParquetFile(stored.file)
    schema = pa.schema([field for field in rows.schema_arrow if field.name != HASH])
    write_batches(schema, str(path), rows.iter_batches(columns=schema.names), even_if_empty=True)
    return path
