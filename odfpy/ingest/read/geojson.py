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
from odfpy.ingest.read.geojson_features import Collection, parse_feature_series
from odfpy.ingest.read.json import table_of
from odfpy.ingest.read.json_array import cut_at_item
from odfpy.ingest.read.json_inference import infer_in_turn
from odfpy.ingest.read.json_records import Records
from odfpy.ingest.read.text import DEFAULT_FORMATS

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
    return _read(partial(file.pieces, collection.start, cut_at_item), collection.parse, schema)


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
    wanted = to_arrow(schema) if schema is not None else infer_in_turn(lambda: in_turn(pieces(), parse), _in_order)
    return pa.concat_tables(in_turn(pieces(), lambda piece: table_of(parse(piece), wanted, DEFAULT_FORMATS)))


def _in_order(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _in_order(value[key]) for key in sorted(value)}
    return [_in_order(item) for item in value] if isinstance(value, list) else value
