"""Reading GeoJSON and newline-delimited GeoJSON (ODF specification, "ReadStep: GeoJson" and "ReadStep: NdGeoJson").

Each feature is a row: its properties are columns, its geometry is the column `geometry`, a GeoJSON text. Properties
are read like members of JSON records: those that the schema lacks are ignored, missing ones are null. Without a
schema, it is inferred from all features, with columns in alphabetical order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from odfpy.chain.read_steps import ReadGeoJson, ReadNdGeoJson
from odfpy.data.schemas.arrow import to_arrow
from odfpy.data.schemas.schema import DataSchema
from odfpy.ingest.read.files import Piece, TextFile, cut_at_line, in_turn
from odfpy.ingest.read.geo.geojson_features import GEOMETRY, Collection, parse_feature_series
from odfpy.ingest.read.json import table_of
from odfpy.ingest.read.json_array import cut_at_item
from odfpy.ingest.read.json_inference import infer_in_turn
from odfpy.ingest.read.json_records import Records
from odfpy.ingest.read.part import WHOLE, FilePart, parts_between
from odfpy.ingest.read.text import DEFAULT_FORMATS

_Parse = Callable[[Piece], Records]


def read_geojson(
    step: ReadGeoJson,  # noqa: ARG001
    schema: DataSchema | None,
    path: Path,
    name: str,
    part: FilePart = WHOLE,
) -> pa.Table:
    """Return the rows of a file with one feature collection, or of a part of it.

    Args:
        step: the read step.
        schema: the schema that the source declares, None for none.
        path: the file.
        name: name of the file in messages.
        part: the part to read; all of the file by default.

    Raises:
        BadValue: the file is not a feature collection, or a value does not fit; the message names the line.
        IngestError: the file cannot be read.
    """
    file = TextFile(path, name)
    collection = Collection.of(file)
    if collection is None:
        return pa.table({}) if schema is None else to_arrow(schema).empty_table()
    wanted = _inferred(file, collection) if schema is None else to_arrow(schema)
    pieces = file.pieces(part.start or collection.start, cut_at_item, part.stop)
    return _read(pieces, collection.parse, wanted, part)


def read_ndgeojson(
    step: ReadNdGeoJson,  # noqa: ARG001
    schema: DataSchema | None,
    path: Path,
    name: str,
    part: FilePart = WHOLE,
) -> pa.Table:
    """Return the rows of a file with one feature per line, or of a part of it.

    Args:
        step: the read step.
        schema: the schema that the source declares, None for none.
        path: the file.
        name: name of the file in messages.
        part: the part to read; all of the file by default.

    Raises:
        BadValue: a record is not a feature, or a value does not fit; the message names the line of the record.
        IngestError: the file cannot be read.
    """
    file = TextFile(path, name)
    wanted = _inferred(file, None) if schema is None else to_arrow(schema)
    return _read(file.pieces(part.start, cut_at_line, part.stop), _parse_series, wanted, part)


def geojson_parts(
    step: ReadGeoJson | ReadNdGeoJson, schema: DataSchema | None, path: Path, name: str, size: int
) -> list[FilePart]:
    """Return the parts of a file that can be read independently, unless a guessed end is wrong; errors as above.

    Args:
        step: the read step.
        schema: the schema that the source declares, None for none.
        path: the file.
        name: name of the file in messages.
        size: approximate bytes of a part.
    """
    if schema is None:
        return [WHOLE]
    file = TextFile(path, name)
    if isinstance(step, ReadNdGeoJson):
        return parts_between(file.bounds(0, cut_at_line, size))
    collection = Collection.of(file)
    return [WHOLE] if collection is None else parts_between(file.bounds(collection.start, cut_at_item, size))


def geojson_schema(step: ReadGeoJson | ReadNdGeoJson, path: Path, name: str) -> pa.Schema:
    """Return the schema inferred for a file; errors as above.

    Args:
        step: the read step.
        path: the file.
        name: name of the file in messages.
    """
    file = TextFile(path, name)
    if isinstance(step, ReadNdGeoJson):
        return _inferred(file, None)
    collection = Collection.of(file)
    return pa.schema([]) if collection is None else _inferred(file, collection)


def _read(pieces: Iterator[Piece], parse: _Parse, wanted: pa.Schema, part: FilePart) -> pa.Table:
    tables = in_turn(pieces, lambda piece: table_of(parse(piece), wanted, DEFAULT_FORMATS), is_part=part.has_end)
    return pa.concat_tables(tables)


def _parse_series(piece: Piece) -> Records:
    piece.check_utf8()
    return parse_feature_series(piece)


def _inferred(file: TextFile, collection: Collection | None) -> pa.Schema:
    """Infer the schema of the features of a collection, or of a series if there is none."""
    if collection is None:
        found = infer_in_turn(lambda: in_turn(file.pieces(0, cut_at_line), _parse_series), _in_order)
    else:
        found = infer_in_turn(lambda: in_turn(file.pieces(collection.start, cut_at_item), collection.parse), _in_order)
    # The geometry is a text, even if no feature has one.
    return pa.schema([pa.field(field.name, pa.string()) if field.name == GEOMETRY else field for field in found])


def _in_order(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _in_order(value[key]) for key in sorted(value)}
    return [_in_order(item) for item in value] if isinstance(value, list) else value
