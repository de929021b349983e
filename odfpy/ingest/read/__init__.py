"""Reading: from bytes to typed rows (ODF specification, "ReadStep").

A schema is enforced strictly: a value that does not fit is an error that names file, line, column, value and expected
type; nothing is rounded, truncated or silently replaced by null, and there are as many rows as records.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

from odfpy.chain.read_steps import (
    ReadCsv,
    ReadEsriShapefile,
    ReadGeoJson,
    ReadJson,
    ReadNdGeoJson,
    ReadNdJson,
    ReadParquet,
    ReadStep,
)
from odfpy.data.schemas.arrow import from_arrow
from odfpy.data.schemas.schema import DataSchema
from odfpy.errors import InternalError, SchemaError
from odfpy.ingest.read.part import WHOLE, FilePart
from odfpy.ingest.read.progress import report_rows
from odfpy.values import dataclass

__all__ = ["FilePart", "inferred_schema", "parts_of", "read", "read_part", "schema_of"]


def read(step: ReadStep, path: Path, *, name: str | None = None) -> pa.Table:
    """Return the rows of a file, in its order.

    Args:
        step: the read step, with format and schema.
        path: a regular file, which does not change while it is read.
        name: name of the file in errors; by default its path.

    Returns:
        A table with the Arrow schema of the step, including nullability. Without a schema in the step, the file's own
        or inferred schema is used. An empty file gives no rows, and without a schema no columns.

    Raises:
        BadValue: a value does not fit.
        IngestError: the file cannot be read.
        SchemaError: the schema cannot be used, or has nothing in common with the file.
        InvalidValue: an option of the step cannot be used.
    """
    rows = read_part(step, path, WHOLE, name=name)
    report_rows(rows.num_rows)
    return rows


def schema_of(step: ReadStep) -> DataSchema | None:
    """Return the schema that a read step enforces, given as `schema` or as `ddlSchema`.

    Raises:
        SchemaError: both are given, or the definitions do not parse.
    """
    if step.ddl_schema is None:
        return step.schema
    if step.schema is not None:
        raise SchemaError(
            f"Read step {step.KIND} has both `schema` and `ddlSchema`", hint="Keep `schema`; `ddlSchema` is deprecated."
        )
    from odfpy.data.schemas.ddl import parse_ddl

    return parse_ddl(step.ddl_schema)


# --- In parts --------------------------------------------------------------------------------------------------------


def parts_of(step: ReadStep, path: Path, *, name: str | None = None, size: int) -> list[FilePart]:
    """Return the parts of a file that can be read independently; together they are the file.

    Text in an encoding other than UTF-8 is a single part, and so is a file whose schema is inferred from all of it.

    Args:
        step: the read step, with format and schema.
        path: see `read`.
        name: see `read`.
        size: approximate bytes of a part.

    Raises: as `read`.
    """
    return _format_of(step).parts(step, schema_of(step), path, name or str(path), size)


def read_part(step: ReadStep, path: Path, part: FilePart, *, name: str | None = None) -> pa.Table:
    """Return the rows of a part of a file, see `read`.

    Args:
        step: the read step.
        path: the file.
        part: the part to read.
        name: name of the file in messages; by default its own.

    Raises:
        Incomplete: the part ends within a record; it has to be read together with the rest of the file.
    """
    rows: pa.Table = _format_of(step).read(step, schema_of(step), path, name or str(path), part)
    return rows


def inferred_schema(step: ReadStep, path: Path, *, name: str | None = None) -> DataSchema | None:
    """Return the schema inferred from a whole file, for reading it in parts; None if the schema is given, part of the
    format, or cannot be inferred. Only some megabytes of the file are held in memory at a time.

    Args:
        step: the read step.
        path: the file.
        name: name of the file in messages; by default its own.

    Raises: as `read`.
    """
    infer = _format_of(step).infer
    found = None if schema_of(step) is not None or infer is None else infer(step, path, name or str(path))
    return from_arrow(found) if found else None


# --- Formats ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Format:
    """The functions that read a format of files.

    Attributes:
        read: reads the rows of a part of a file.
        parts: cuts a file into parts.
        infer: infers the schema from a whole file; None if nothing has to be inferred.
    """

    read: Callable[[Any, DataSchema | None, Path, str, FilePart], pa.Table]
    parts: Callable[[Any, DataSchema | None, Path, str, int], list[FilePart]]
    infer: Callable[[Any, Path, str], pa.Schema | None] | None = None


def _format_of(step: ReadStep) -> _Format:
    """Return the functions for a read step. Formats are imported on demand: each has its own libraries."""
    match step:
        case ReadCsv():
            from odfpy.ingest.read.csv import csv_parts, csv_schema, read_csv

            return _Format(read_csv, csv_parts, csv_schema)
        case ReadJson():
            from odfpy.ingest.read.json import json_parts, json_schema, read_json

            return _Format(read_json, json_parts, json_schema)
        case ReadNdJson():
            from odfpy.ingest.read.json import json_schema, ndjson_parts, read_ndjson

            return _Format(read_ndjson, ndjson_parts, json_schema)
        case ReadEsriShapefile():
            from odfpy.ingest.read.geo.esri_shapefile import esri_parts, read_esri_shapefile

            return _Format(read_esri_shapefile, esri_parts)
        case ReadGeoJson():
            from odfpy.ingest.read.geo.geojson import geojson_parts, geojson_schema, read_geojson

            return _Format(read_geojson, geojson_parts, geojson_schema)
        case ReadNdGeoJson():
            from odfpy.ingest.read.geo.geojson import geojson_parts, geojson_schema, read_ndgeojson

            return _Format(read_ndgeojson, geojson_parts, geojson_schema)
        case ReadParquet():
            from odfpy.ingest.read.parquet import parquet_parts, read_parquet

            return _Format(read_parquet, parquet_parts)
    raise InternalError(f"No reader for {type(step).__name__}")
