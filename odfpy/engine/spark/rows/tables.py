"""Inputs as tables of a query: all columns of the dataset, but only the new rows."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from odfpy.data.offset_interval import OffsetInterval
from odfpy.data.schemas.arrow import plain_schema
from odfpy.data.slices.parquet_io import open_parquet
from odfpy.data.slices.slice import iter_slice, slice_schema, slice_stats
from odfpy.data.vocabulary import DatasetVocabulary
from odfpy.engine.contract import Arrival, InputSchema, SqlTable, TransformRequestInput
from odfpy.engine.spark.plan.builder import Builder
from odfpy.engine.spark.plan.catalyst import Catalyst, Node, columns
from odfpy.engine.spark.plan.step import CARRIED_INPUT, CARRIED_OFFSET, CARRIED_OPERATION
from odfpy.engine.spark.plan.types import cast_to_spark, readable_type, spark_schema, to_spark
from odfpy.engine.spark.rows.relation import parquet_rows
from odfpy.engine.sql.projection import SPARK, projection_sql
from odfpy.errors import EngineError, IntegrityError


@dataclass(frozen=True, slots=True)
class Table:
    """The table that a query sees under one name.

    Attributes:
        name: the name, which may have dots.
        vocab: names of the system columns.
        schema_file: Parquet file with the schema in force.
        data_paths: slices, in order of offset.
        interval: offsets of the rows to read, or None for all.
        arrivals: the watermarks at the arrival of the slices, possibly with others.
        primary_key: columns that identify a row in the current state of the table, if known.
    """

    name: str
    vocab: DatasetVocabulary
    schema_file: str
    data_paths: tuple[str, ...] = ()
    interval: OffsetInterval | None = None
    arrivals: tuple[Arrival, ...] = ()
    primary_key: tuple[str, ...] | None = None

    @classmethod
    def of(cls, source: InputSchema | TransformRequestInput | SqlTable) -> Table:
        """Make a table of a request; tables of an analysis and inputs without new rows are empty."""
        match source:
            case InputSchema():
                return cls(source.query_alias, source.vocab, source.schema_file, primary_key=source.primary_key)
            case SqlTable():
                interval = None if source.last_offset is None else OffsetInterval(0, source.last_offset)
                return cls(source.name, source.vocab, source.schema_file, source.data_paths, interval)
        paths = source.data_paths if source.offset_interval is not None else ()
        return cls(
            source.query_alias,
            source.vocab,
            source.schema_file,
            paths,
            source.offset_interval,
            source.arrivals,
            source.primary_key,
        )

    @property
    def num_rows(self) -> int:
        """The number of rows to read, as far as the request tells: those of the interval."""
        return 0 if self.interval is None else self.interval.num_rows

    def schema(self) -> pa.Schema:
        """Return the columns, in plain layout; errors as for `odfpy.data.slices.slice.slice_schema`."""
        return slice_schema(self.schema_file, vocab=self.vocab)


def scan(catalyst: Catalyst, table: Table, scratch: Path) -> Node:
    """Return the rows of a table, as a plan with the columns that its schema has.

    Args:
        catalyst: the session.
        table: the table to read.
        scratch: a folder for copies of slices that Spark cannot read as they are.

    Raises:
        UnsupportedQuery: a column has a type that Spark does not have.
        EngineError: a slice is damaged or does not fit the schema.
    """
    schema = table.schema()
    wanted = spark_schema(schema, table.name)
    if not table.data_paths:
        return catalyst.empty(wanted)
    paths = [_readable(path, schema, table, scratch) for path in table.data_paths]
    rows = parquet_rows(catalyst, wanted, paths)
    if table.interval is None or _has_no_others(table, table.interval):
        return rows
    build, offset = Builder(catalyst), columns(rows)[schema.names.index(table.vocab.offset_column)]
    number, first, last = (
        build.cast(value, "bigint")
        for value in (offset, *map(build.number, (table.interval.start, table.interval.end)))
    )
    is_in = catalyst.expression(
        "And",
        catalyst.expression("GreaterThanOrEqual", number, first),
        catalyst.expression("LessThanOrEqual", number, last),
    )
    return catalyst.filter(is_in, rows)


def _has_no_others(table: Table, interval: OffsetInterval) -> bool:
    """Return whether the first and the last slice show that all rows are in an interval: offsets need not be read."""
    first = slice_stats(table.data_paths[0], vocab=table.vocab).offset_start
    last = slice_stats(table.data_paths[-1], vocab=table.vocab).offset_end
    return first is not None and last is not None and interval.start <= first and last <= interval.end


def name_input(catalyst: Catalyst, table: Table, position: int, scratch: Path) -> None:
    """Register an input under its name; its carried columns are hidden from queries.

    Columns that are required in the dataset are known to have no nulls.

    Args:
        catalyst: access to Catalyst.
        table: the table.
        position: number of the input.
        scratch: folder for temporary files.

    Raises:
        UnsupportedQuery, EngineError: as for `scan`.
    """
    rows = scan(catalyst, table, scratch)
    fields = list(zip(table.schema(), columns(rows), strict=True))
    by_name = {field.name: column for field, column in fields}
    exposed = [
        column if field.nullable else catalyst.alias(catalyst.never_null(column), field.name)
        for field, column in fields
    ]
    carried = [
        catalyst.alias(catalyst.integer(position), CARRIED_INPUT),
        catalyst.alias(_system_column(by_name, table, table.vocab.offset_column), CARRIED_OFFSET),
        catalyst.alias(_system_column(by_name, table, table.vocab.operation_type_column), CARRIED_OPERATION),
    ]
    inner = catalyst.project(exposed + carried, rows)
    catalyst.name_view(table.name, catalyst.project(columns(inner)[: len(exposed)], inner))


def visible_columns(schema: pa.Schema, vocab: DatasetVocabulary) -> list[int]:
    """Positions of the columns that are data: all but offset, operation type and system time."""
    hidden = vocab.changelog_columns
    return [at for at, name in enumerate(schema.names) if name not in hidden]


def name_projected(catalyst: Catalyst, source: SqlTable, log: str, scratch: Path) -> None:
    """Register a table of an ad hoc query.

    Args:
        catalyst: the session.
        source: the table.
        log: name for the log under its projection.
        scratch: as for `scan`.

    Raises:
        UnsupportedQuery, EngineError: as for `scan`.
        InvalidQuery: as for `projection_sql`.
    """
    table = Table.of(source)
    plan = scan(catalyst, table, scratch)
    if source.projection is not None:
        catalyst.name_view(log, plan)
        text = projection_sql(source.projection, log, table.schema(), table.vocab, SPARK)
        plan = catalyst.analyze(catalyst.parse(text))
    catalyst.name_view(table.name, plan)


def _system_column(by_name: dict[str, Node], table: Table, name: str) -> Node:
    if name not in by_name:
        raise EngineError(
            f"Input `{table.name}` has no column `{name}`", hint="Its schema file is not that of a dataset."
        )
    return by_name[name]


# --- Slices that Spark cannot read -----------------------------------------------------------------------------------

_COPIES: Final = count()
"""Numbers that distinguish copies of one slice, for different rows, in one folder."""


def _readable(path: str, schema: pa.Schema, table: Table, scratch: Path) -> str:
    """Return the slice, or a copy of its rows in types that Spark reads as those of the schema."""
    stored_schema = _columns_of(path)
    missing = [field.name for field in schema if field.name not in stored_schema.names and not field.nullable]
    if missing:
        raise EngineError(f"Data file {path} lacks column {missing[0]!r}, which is required in `{table.name}`")
    if _reads_all_as(stored_schema, schema):
        return path
    shared = [field for field in schema if field.name in stored_schema.names]
    copy = scratch / f"{next(_COPIES)}-{Path(path).name}.parquet"
    _copy(path, pa.schema([field.with_type(readable_type(field.type)) for field in shared]), table, copy)
    return str(copy)


def lies_readable(path: str, schema: pa.Schema) -> bool:
    """Return whether Spark reads a slice as one with the columns of a schema, without a copy."""
    return _reads_all_as(_columns_of(path), schema)


def _columns_of(path: str) -> pa.Schema:
    with open_parquet(path) as file:
        return plain_schema(file.schema_arrow)


def _reads_all_as(stored_schema: pa.Schema, wanted: pa.Schema) -> bool:
    shared = [field for field in wanted if field.name in stored_schema.names]
    return all(_reads_as(stored_schema.field(field.name).type, field.type) for field in shared)


def _reads_as(stored_type: pa.DataType, wanted_type: pa.DataType) -> bool:
    return bool(stored_type == readable_type(stored_type) and to_spark(stored_type) == to_spark(wanted_type))


def _copy(path: str, schema: pa.Schema, table: Table, copy: Path) -> None:
    with pq.ParquetWriter(copy, schema, compression="zstd") as writer:
        for batch in iter_slice(path, columns=schema.names, vocab=table.vocab):
            writer.write_batch(_fit(_in_interval(batch, table), schema, path))


def _in_interval(batch: pa.RecordBatch, table: Table) -> pa.RecordBatch:
    if table.interval is None:
        return batch
    offset = batch.column(table.vocab.offset_column)
    return batch.filter(
        pc.and_(pc.greater_equal(offset, table.interval.start), pc.less_equal(offset, table.interval.end))
    )


def _fit(batch: pa.RecordBatch, schema: pa.Schema, path: str) -> pa.RecordBatch:
    try:
        arrays = [cast_to_spark(column, field.type) for column, field in zip(batch.columns, schema, strict=True)]
    except pa.ArrowException as error:
        raise IntegrityError(f"Data file {path} does not fit the schema of its dataset: {error}") from error
    return pa.record_batch(arrays, schema=schema)
