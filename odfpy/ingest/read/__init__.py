"""Reading: from bytes to typed rows (ODF specification, "ReadStep").

A schema is enforced to the letter: a value that does not fit is an error that names file, line, column, value and
wanted type, nothing is rounded, cut off or silently nulled, and there are as many rows as there are records.
"""

from __future__ import annotations

from functools import singledispatch
from pathlib import Path

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
from odfpy.ingest.read.csv import csv_parts, csv_schema, read_csv
from odfpy.ingest.read.geo.esri_shapefile import esri_parts, read_esri_shapefile
from odfpy.ingest.read.geo.geojson import geojson_parts, geojson_schema, read_geojson, read_ndgeojson
from odfpy.ingest.read.json import json_parts, json_schema, ndjson_parts, read_json, read_ndjson
from odfpy.ingest.read.parquet import parquet_parts, read_parquet
from odfpy.ingest.read.part import WHOLE, FilePart
from odfpy.ingest.read.progress import tell_rows

__all__ = ["FilePart", "inferred_schema", "parts_of", "read", "read_part", "schema_of"]


def read(step: ReadStep, path: Path, *, name: str | None = None) -> pa.Table:
    """The rows of a file, in its order.

    Args:
        step: format and schema.
        path: a regular file, which does not change while it is read.
        name: what to call the file in errors; its path if not given.

    Returns:
        A table whose Arrow schema is that of the step, with nullability; without one it is what the file says, or
        what can be inferred. A file without anything in it gives no rows, and without a schema no columns.

    Raises:
        BadValue: a value does not fit.
        IngestError: the file cannot be read.
        SchemaError: the schema cannot be used, or has nothing in common with the file.
        InvalidValue: an option of the step cannot be used.
    """
    rows = read_part(step, path, WHOLE, name=name)
    tell_rows(rows.num_rows)
    return rows


def schema_of(step: ReadStep) -> DataSchema | None:
    """The schema that a read step enforces, given as `schema` or as `ddlSchema`.

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


@singledispatch
def _read(step: ReadStep, schema: DataSchema | None, path: Path, name: str, part: FilePart) -> pa.Table:  # noqa: ARG001
    raise InternalError(f"No reader for {type(step).__name__}")


_read.register(ReadCsv, read_csv)
_read.register(ReadJson, read_json)
_read.register(ReadNdJson, read_ndjson)
_read.register(ReadEsriShapefile, read_esri_shapefile)
_read.register(ReadGeoJson, read_geojson)
_read.register(ReadNdGeoJson, read_ndgeojson)
_read.register(ReadParquet, read_parquet)


# --- In parts --------------------------------------------------------------------------------------------------------


def parts_of(step: ReadStep, path: Path, *, name: str | None = None, size: int) -> list[FilePart]:
    """Parts of a file that can be read side by side; together they are the file.

    Text in another encoding than UTF-8 is one part, and so is a file whose schema is inferred from all of it.

    Args:
        step: format and schema.
        path: see `read`.
        name: see `read`.
        size: bytes of a part, about.

    Raises: as `read`.
    """
    return _parts(step, schema_of(step), path, name or str(path), size)


def read_part(step: ReadStep, path: Path, part: FilePart, *, name: str | None = None) -> pa.Table:
    """The rows of a part of a file, see `read`.

    Args:
        step: the read step.
        path: the file.
        part: the part to read.
        name: what messages call the file; its name by default.

    Raises:
        Incomplete: the part ends within a record; it has to be read together with all that follows.
    """
    return _read(step, schema_of(step), path, name or str(path), part)


@singledispatch
def _parts(step: ReadStep, schema: DataSchema | None, path: Path, name: str, size: int) -> list[FilePart]:  # noqa: ARG001
    raise InternalError(f"No parts for {type(step).__name__}")


_parts.register(ReadCsv, csv_parts)
_parts.register(ReadJson, json_parts)
_parts.register(ReadNdJson, ndjson_parts)
_parts.register(ReadEsriShapefile, esri_parts)
_parts.register(ReadGeoJson, geojson_parts)
_parts.register(ReadNdGeoJson, geojson_parts)
_parts.register(ReadParquet, parquet_parts)


def inferred_schema(step: ReadStep, path: Path, *, name: str | None = None) -> DataSchema | None:
    """The schema that is inferred from all of a file, with which it can be read in parts; None if there is one, if the
    format tells it everywhere, or if the file tells none. Only some megabytes of the file are held at a time.

    Args:
        step: the read step.
        path: the file.
        name: what messages call the file; its name by default.

    Raises: as `read`.
    """
    found = None if schema_of(step) is not None else _schema(step, path, name or str(path))
    return from_arrow(found) if found else None


@singledispatch
def _schema(step: ReadStep, path: Path, name: str) -> pa.Schema | None:  # noqa: ARG001
    return None


_schema.register(ReadCsv, csv_schema)
_schema.register(ReadJson, json_schema)
_schema.register(ReadNdJson, json_schema)
_schema.register(ReadGeoJson, geojson_schema)
_schema.register(ReadNdGeoJson, geojson_schema)
