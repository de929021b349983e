"""GeoJSON, of a collection and newline-delimited; the standard library reads them, too."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from support.ingest.fuzz_targets.json import JSON_TOKENS, RECORDS, check_records, series, whole
from support.ingest.fuzz_targets.rows import GEO_SCHEMA, encoded, is_same
from support.ingest.fuzz_targets.target import Target, damaged

from odfpy.chain.read_steps import ReadGeoJson, ReadNdGeoJson, ReadStep

_GEOMETRIES = (
    {"type": "Point", "coordinates": [1.5, 2]},
    None,
    {"type": "LineString", "coordinates": [[0, 1e-5], [1, 1e16]]},
)
_FEATURES = [
    {"type": "Feature", "properties": record, "geometry": geometry, "id": i}
    for i, (record, geometry) in enumerate(zip(RECORDS, _GEOMETRIES, strict=True))
]
_NDGEOJSON = tuple("\n".join(json.dumps(item, indent=indent) for item in _FEATURES) for indent in (None, 1))
_GEOJSON = (
    json.dumps({"type": "FeatureCollection", "features": _FEATURES}, ensure_ascii=False),
    json.dumps({"name": "[}", "features": _FEATURES, "crs": {"a": [[]]}, "type": "FeatureCollection"}, indent=1),
)
_GEO_TOKENS = (*JSON_TOKENS, b'"geometry":null,', b'"type":"Feature"', b'"properties":{},', b"-0")


def _check_features(table: pa.Table, features: Sequence[dict[str, Any]]) -> None:
    records = []
    for feature, text in zip(features, table.column("geometry").to_pylist(), strict=True):
        assert feature["type"] == "Feature"
        geometry = feature["geometry"]
        if text is not None:
            parsed = json.loads(text)
            assert is_same(parsed, geometry), f"{text} for {geometry}"
            assert " " not in text or " " in str(geometry)
            geometry = text
        records.append({**(feature["properties"] or {}), "geometry": geometry})
    check_records(table, records)


def _check_ndgeojson(step: ReadStep, content: bytes, table: pa.Table) -> None:
    del step
    if table.num_columns:
        _check_features(table, list(series(content)))
    else:
        assert not list(series(content))


def _check_geojson(step: ReadStep, content: bytes, table: pa.Table) -> None:
    del step
    document = (
        whole(content) if content.strip(b"\xef\xbb\xbf \t\r\n") else {"type": "FeatureCollection", "features": []}
    )
    assert document["type"] == "FeatureCollection"
    if table.num_columns:
        _check_features(table, document["features"])
    else:
        assert not document["features"]


GEOJSON = Target(
    [(ReadGeoJson(), encoded(_GEOJSON)), (ReadGeoJson(schema=GEO_SCHEMA), encoded(_GEOJSON))],
    _GEO_TOKENS,
    _check_geojson,
    damaged,
)
NDGEOJSON = Target(
    [(ReadNdGeoJson(), encoded(_NDGEOJSON)), (ReadNdGeoJson(schema=GEO_SCHEMA), encoded(_NDGEOJSON))],
    _GEO_TOKENS,
    _check_ndgeojson,
    damaged,
)
