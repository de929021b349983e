"""Reading GeoJSON and newline-delimited GeoJSON (ODF specification, "ReadStep: GeoJson" and "ReadStep: NdGeoJson").

Each feature is a row: its properties are columns, its geometry is the column `geometry`, a GeoJSON text. Properties
are read as the members of JSON records are: those that the schema does not have are left out, absent ones are null.
Without a schema it is inferred from all features, with columns in alphabetical order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from odfpy.chain.sources import ReadGeoJson, ReadNdGeoJson
from odfpy.data.arrow import to_arrow
from odfpy.data.schema import DataSchema
from odfpy.ingest.read.files import Piece, TextFile, cut_at_line, in_turn
from odfpy.ingest.read.geojson_features import Collection, cut_at_feature, parse_feature_series
from odfpy.ingest.read.json import table_of
from odfpy.ingest.read.json_inference import Evidence
from odfpy.ingest.read.json_records import Records
from odfpy.ingest.read.text import DEFAULT_FORMATS
from odfpy.ingest.read.typed import Misfit

_Pieces = Callable[[], Iterator[Piece]]
_Parse = Callable[[Piece], Records]


def read_geojson(step: ReadGeoJson, schema: DataSchema | None, path: Path, name: str) -> pa.Table:  # noqa: ARG001
    """The rows of a file with one feature collection.

    Raises:
        BadValue: the file is no feature collection, or a value does not fit; the message names the line.
        IngestError: the file cannot be read.
    """
    file = TextFile(path, name)
    collection = Collection.of(file)
    if collection is None:
        return pa.table({}) if schema is None else to_arrow(schema).empty_table()
    return _read(partial(file.pieces, collection.start, cut_at_feature), collection.parse, schema)


def read_ndgeojson(step: ReadNdGeoJson, schema: DataSchema | None, path: Path, name: str) -> pa.Table:  # noqa: ARG001
    """The rows of a file with one feature a line.

    Raises:
        BadValue: a record is no feature, or a value does not fit; the message names the line where it begins.
        IngestError: the file cannot be read.
    """
    file = TextFile(path, name)

    def parse(piece: Piece) -> Records:
        piece.check_utf8()
        return parse_feature_series(piece)

    return _read(partial(file.pieces, 0, cut_at_line), parse, schema)


def _read(pieces: _Pieces, parse: _Parse, schema: DataSchema | None) -> pa.Table:
    wanted = _inferred(pieces, parse) if schema is None else to_arrow(schema)
    return pa.concat_tables(in_turn(pieces(), lambda piece: table_of(parse(piece), wanted, DEFAULT_FORMATS)))


def _inferred(pieces: _Pieces, parse: _Parse) -> pa.Schema:
    """The schema that all features fit, in a pass of its own."""
    evidence = Evidence()
    count = 0
    try:
        for records in in_turn(pieces(), parse):
            for row, members in enumerate(records.objects, count):
                evidence.add(row, _in_order(members))
            count += len(records.objects)
        schema = evidence.schema
    except Misfit as misfit:
        raise misfit.at(_place(in_turn(pieces(), parse), misfit.row)) from None
    return schema


def _in_order(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _in_order(value[key]) for key in sorted(value)}
    return [_in_order(item) for item in value] if isinstance(value, list) else value


def _place(parsed: Iterator[Records], row: int) -> str:
    """File and line of the record of that number."""
    for records in parsed:
        if row < len(records.objects):
            return records.place(row)
        row -= len(records.objects)
    raise IndexError(row)
