"""Queries over files of other programs: rows as they are made."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.fs
from pyarrow import csv, json

from odfpy.data.schemas.arrow import has_within, plain_schema
from odfpy.data.slices.parquet_io import INT96_UNIT
from odfpy.engine.datafusion.datasets import in_one_order, name_dataset
from odfpy.engine.datafusion.failures import datafusion_errors
from odfpy.engine.datafusion.plan import check_is_query
from odfpy.engine.datafusion.session import (
    name_rows,
    new_session,
    quoted,
    rows_in_order,
    run_query,
)
from odfpy.engine.ipc import within
from odfpy.engine.sql.files import FilesRequest, FileTable
from odfpy.engine.sql.source_text import SourceText
from odfpy.errors import InvalidQuery

if TYPE_CHECKING:
    from datafusion import DataFrame, SessionContext

_BLOCK: Final = 16 << 20
"""Bytes of a block of text: a row may have as many."""


class FileRows:
    """The result of a query over files, computed as it is read; planned when this is made.

    Attributes:
        schema: schema of the rows, in plain layout.
    """

    def __init__(self, request: FilesRequest) -> None:
        self._request = request
        self._source = SourceText(request.query)
        self._context = new_session(deterministic=False)
        with datafusion_errors(self._source):
            for table in request.tables:
                _name_table(self._context, table)
            self._frame = run_query(self._context, request.query)
            check_is_query(self._frame.logical_plan(), self._source)
            self.schema: pa.Schema = plain_schema(self._frame.schema())

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows."""
        with datafusion_errors(self._source):
            yield from within(rows_in_order(self._frame), 0, None, self._request.max_bytes)


def _name_table(context: SessionContext, table: FileTable) -> None:
    given = table.arrow_schema()
    if not table.paths:
        name_rows(context, table.name, given or pa.schema([]), [])
        return
    try:
        factory = ds.FileSystemDatasetFactory(
            pyarrow.fs.LocalFileSystem(), list(table.paths), _format(table, given), ds.FileSystemFactoryOptions()
        )
        is_cast = table.format == "ndjson" and given is not None
        inferred = given is None or is_cast
        schema: pa.Schema = factory.inspect(promote_options="permissive").remove_metadata() if inferred else given
        if table.format == "parquet" and any(_has_views(field.type) for field in schema):
            _name_parquet(context, table, schema)
            return
        dataset = factory.finish(schema)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise InvalidQuery(f"The files of {table.name!r} cannot be read: {error}") from error
    if not is_cast:
        name_dataset(context, table.name, dataset, schema)
        return
    as_written = f"__odf_files_{table.name}"
    name_dataset(context, as_written, dataset, schema)
    context.register_view(quoted(table.name), _cast(context, as_written, schema, given))


def _name_parquet(context: SessionContext, table: FileTable, schema: pa.Schema) -> None:
    """Register Parquet files that DataFusion reads itself: pyarrow has no filters for the layouts of arrow-rs."""
    parts = []
    for number, path in enumerate(table.paths):
        name = f"__odf_files_{table.name}_{number}"
        # As a URL, in which no character is a wildcard; the name of a copy does not end with `.parquet`.
        context.register_parquet(quoted(name), Path(path).as_uri(), file_extension="", schema=schema)
        parts.append(in_one_order(context, name, schema))
    union = parts[0]
    for part in parts[1:]:
        union = union.union(part)
    context.register_view(quoted(table.name), union)


def _has_views(kind: pa.DataType) -> bool:
    return has_within(kind, lambda part: pa.types.is_string_view(part) or pa.types.is_binary_view(part))


def _cast(context: SessionContext, name: str, schema: pa.Schema, wanted: pa.Schema) -> DataFrame:
    """Return a table with other types of columns; those that it lacks are NULL."""
    from datafusion import col, lit

    columns = [
        (col(quoted(field.name)) if field.name in schema.names else lit(None)).cast(field.type).alias(field.name)
        for field in wanted
    ]
    return context.table(quoted(name)).select(*columns)


def _format(table: FileTable, given: pa.Schema | None) -> ds.FileFormat:
    if table.format == "csv":
        names = None if table.header or given is None else given.names
        read = csv.ReadOptions(block_size=_BLOCK, column_names=names)
        types = {} if given is None else {field.name: field.type for field in given}
        convert = csv.ConvertOptions(column_types=types, strings_can_be_null=True, quoted_strings_can_be_null=False)
        parse = csv.ParseOptions(delimiter=table.delimiter, newlines_in_values=True)
        return ds.CsvFileFormat(parse, convert_options=convert, read_options=read)
    if table.format == "ndjson":
        # JSON has no dates and decimals: these are cast later.
        written = [field for field in given or () if _is_in_json(field.type)]
        parse_json = json.ParseOptions(explicit_schema=pa.schema(written) if written else None)
        return ds.JsonFileFormat(parse_options=parse_json, read_options=json.ReadOptions(block_size=_BLOCK))
    return ds.ParquetFileFormat(coerce_int96_timestamp_unit=INT96_UNIT)


def _is_in_json(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or types.is_string(kind))
