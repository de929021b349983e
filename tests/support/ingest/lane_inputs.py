"""Random inputs for both lanes, in every format: few rows, with everything that might differ between the lanes.

All types, nulls, both zeros, NaN, duplicate keys, rows without event time, line breaks in values.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from support.ingest.shapefiles import archive

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
from odfpy.chain.sources import MergeAppend, MergeSnapshot, MergeStrategy
from odfpy.data.schemas import schema as odf
from odfpy.data.schemas.schema import DataField, DataSchema, DataType, Option
from odfpy.ingest.merge import MERGES
from odfpy.ingest.read import read

Row = dict[str, Any]
Columns = dict[str, DataType]

FLAT: Columns = {
    "flag": odf.Bool(),
    "tiny": odf.UInt8(),
    "wide": odf.UInt32(),
    "half": odf.Float16(),
    "real": odf.Float64(),
    "price": odf.Decimal(10, 2),
    "huge": odf.Decimal(50, 5),
    "day": odf.Date(),
    "moment": odf.Timestamp(),
    "text": odf.String(),
}
NESTED: Columns = {
    "list": odf.List(Option(odf.Float64())),
    "struct": odf.Struct((DataField("x", Option(odf.Float64())), DataField("y", Option(odf.UInt16())))),
}
GEOMETRY: Columns = {"geometry": odf.String()}
KEYS: Columns = {"id": odf.UInt64(), "key": odf.String()}

VALUES: dict[str, list[Any]] = {
    "op": [0, 0, 1, 3],
    "event_time": ["2024-01-01T00:00:00Z", "2024-01-02T00:00:00.001Z", "1960-02-03T04:05:06Z"],
    "id": [0, 2**63, 2**64 - 1, *range(1, 6)],
    "key": ["a", "B", "ž", "é", "\U0001f600", "a\nb"],
    "flag": [True, False],
    "tiny": [0, 127, 128, 255],
    "wide": [0, 2**31, 2**32 - 1],
    "half": [0.5, -0.0, 0.0, 65504.0, "NaN"],
    "real": [0.0, -0.0, 1.5, 1e-300, -7.25, "NaN"],
    "price": ["0.00", "12345678.90", "-0.01"],
    "huge": ["0", "123456789012345678901234567890123456789012345.12345", "-1.5"],
    "day": ["2024-02-29", "0001-01-01", "9999-12-31"],
    "moment": ["2024-02-29T12:00:00.123Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999Z"],
    "text": ["plain", 'quoted "text", with\nline break', "ž", "{[", "]}"],
    "list": [[], [0.0, None], [-0.0, None], [1.5]],
    "struct": [{"x": -0.0, "y": 65535}, {"x": 0.0, "y": None}, {"x": None, "y": 1}],
    "geometry": [{"type": "Point", "coordinates": [0.5, -0.0]}, {"coordinates": [1, 2, 3], "type": "Point"}],
}


@dataclass(frozen=True, slots=True)
class Format:
    """A format of inputs.

    Attributes:
        step: how it is read, with a schema.
        write: writes rows with some columns to a file.
        columns: supported columns, apart from keys.
    """

    step: Callable[[DataSchema | None], ReadStep]
    write: Callable[[Path, DataSchema, Sequence[Row]], None]
    columns: Columns


@dataclass(frozen=True, slots=True)
class Shape:
    """The shape of a test case's rows.

    Attributes:
        schema: schema of the input.
        strategy: merge strategy with its primary key.
    """

    schema: DataSchema
    strategy: MergeStrategy

    @classmethod
    def of(cls, kind: type[MergeStrategy], columns: Columns, chance: random.Random) -> Shape:
        """Return some columns, and a key of two, one of which has any flat type."""
        second = chance.choice([name for name in ("key", *FLAT) if name in {**KEYS, **columns}])
        names = [name for name in columns if name == "geometry" or chance.random() < 0.4]
        keys = ("id", second)
        optional = [name for name in dict.fromkeys([*names, "real"]) if name not in keys]
        operations = [DataField("op", odf.Int32())] if MERGES[kind].takes_operations else []
        fields = [DataField("event_time", Option(odf.Timestamp()))]
        fields += [DataField(name, {**KEYS, **columns}[name]) for name in keys]
        fields += [DataField(name, Option(columns[name])) for name in optional]
        strategy = MergeAppend() if kind is MergeAppend else kind(keys)  # type: ignore[call-arg]
        return cls(DataSchema((*operations, *fields)), strategy)

    def rows(self, count: int, chance: random.Random) -> list[Row]:
        """Return random rows; for a snapshot each key occurs once."""
        found: dict[Any, Row] = {}
        for number in range(count):
            row = {}
            for field in self.schema.fields:
                is_null = field.is_optional and chance.random() < 0.2
                row[field.name] = None if is_null else chance.choice(VALUES[field.name])
            keys = [row[name] for name in getattr(self.strategy, "primary_key", ())]
            found[tuple(keys) if isinstance(self.strategy, MergeSnapshot) else number] = row
        return list(found.values())


# --- Formats ---------------------------------------------------------------------------------------------------------


def write_csv(path: Path, schema: DataSchema, rows: Sequence[Row]) -> None:
    """Every value in quotes."""

    def cell(item: Any) -> str:
        if item is None:
            return "NULL"
        text = str(item).lower() if isinstance(item, bool) else str(item)
        return '"' + text.replace('"', '""') + '"'

    names = [field.name for field in schema.fields]
    lines = [",".join(names), *(",".join(cell(row[name]) for name in names) for row in rows)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def write_json(path: Path, schema: DataSchema, rows: Sequence[Row]) -> None:
    """An array, below a key that is not the first."""
    document = {"about": {"rows": [len(schema.fields)]}, "rows": list(rows), "end": "]}"}
    path.write_text(json.dumps(document, indent=1), encoding="utf-8")


def write_ndjson(path: Path, schema: DataSchema, rows: Sequence[Row]) -> None:
    """One object a line."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def _feature(row: Row) -> Row:
    properties = {name: value for name, value in row.items() if name != "geometry"}
    return {"type": "Feature", "properties": properties, "geometry": row["geometry"]}


def write_geojson(path: Path, schema: DataSchema, rows: Sequence[Row]) -> None:
    """A feature collection."""
    document = {"type": "FeatureCollection", "features": [_feature(row) for row in rows], "name": "rows"}
    path.write_text(json.dumps(document), encoding="utf-8")


def write_ndgeojson(path: Path, schema: DataSchema, rows: Sequence[Row]) -> None:
    """One feature a line."""
    write_ndjson(path, schema, [_feature(row) for row in rows])


def write_shapefile(path: Path, schema: DataSchema, rows: Sequence[Row]) -> None:
    """Write points, with all attributes as text, to be converted by the schema."""
    names = [field.name for field in schema.fields if field.name != "geometry"]
    records = []
    for row in rows:
        texts = {name: "" if row[name] is None else str(row[name]).replace("True", "true") for name in names}
        shape = row["geometry"] and row["geometry"]["coordinates"][:2]
        records.append((shape, {name: text.replace("False", "false") for name, text in texts.items()}))
    path.write_bytes(archive("point", records, fields=[(name, "C", 60, 0) for name in names]))


def write_parquet(path: Path, schema: DataSchema, rows: Sequence[Row]) -> None:
    """Convert from NdJson, with at least seven row groups."""
    write_ndjson(path, schema, rows)
    pq.write_table(read(ReadNdJson(schema=schema), path), path, row_group_size=max(1, len(rows) // 7))


FORMATS: dict[str, Format] = {
    "csv": Format(lambda schema: ReadCsv(header=True, null_value="NULL", schema=schema), write_csv, FLAT),
    "json": Format(lambda schema: ReadJson(sub_path="rows", schema=schema), write_json, {**FLAT, **NESTED}),
    "ndjson": Format(lambda schema: ReadNdJson(schema=schema), write_ndjson, {**FLAT, **NESTED}),
    "geojson": Format(lambda schema: ReadGeoJson(schema=schema), write_geojson, {**FLAT, **GEOMETRY}),
    "ndgeojson": Format(lambda schema: ReadNdGeoJson(schema=schema), write_ndgeojson, {**FLAT, **GEOMETRY}),
    "shapefile": Format(lambda schema: ReadEsriShapefile(schema=schema), write_shapefile, {**FLAT, **GEOMETRY}),
    "parquet": Format(lambda _: ReadParquet(), write_parquet, {**FLAT, **NESTED}),
}
STRATEGIES: list[type[Any]] = list(MERGES)
