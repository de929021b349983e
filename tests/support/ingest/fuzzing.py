"""Damaged files for every reader: each raises a typed error, or returns the rows found by an independent reader.

The independent reader is the standard library (csv, json) or pyshp, never our own code. Parquet files have page
checksums, and give their own rows or an error. The same seed always generates the same files.

    PYTHONPATH=tests python -m support.ingest.fuzzing 10000
"""

from __future__ import annotations

import csv
import io
import json
import math
import random
import struct
import sys
import tempfile
import time
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapefile
from support.chains.schemas import optional
from support.ingest.preparing import zipped
from support.ingest.reading import set_piece_size
from support.ingest.shapefiles import files

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
from odfpy.data.schemas.schema import Bool, Date, Float64, Int64, String
from odfpy.errors import OdfError
from odfpy.ingest.read import read

_PIECES = (16, 200, 1 << 20)
Rows = Sequence[Sequence[Any]]
SCHEMA = optional(id=Int64(), x=Float64(), name=String(), day=Date(), ok=Bool())


@dataclass(frozen=True)
class Target:
    """A reader under fire.

    Attributes:
        cases: a read step with valid files; one of each is chosen at random.
        tokens: texts inserted into them.
        check: raises AssertionError unless the rows are those of the content.
        damage: makes another file of one.
    """

    cases: Sequence[tuple[ReadStep, Sequence[bytes]]]
    tokens: Sequence[bytes]
    check: Callable[[ReadStep, bytes, pa.Table], None]
    damage: Callable[[random.Random, bytes, Sequence[bytes]], bytes]


def fuzz(target: Target, count: int, seed: int) -> Counter[str]:
    """Read damaged files; return how many gave rows, and how many raised which error.

    Raises:
        AssertionError: a file gave wrong rows, or another error; the message has the file.
    """
    rng = random.Random(seed)
    outcomes: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "input"
        for _ in range(count):
            step, seeds = rng.choice(target.cases)
            content = target.damage(rng, rng.choice(seeds), target.tokens)
            path.write_bytes(content)
            try:
                with pytest.MonkeyPatch.context() as patch:
                    set_piece_size(patch, rng.choice(_PIECES))
                    table = read(step, path, name="input")
                target.check(step, content, table)
                outcomes["rows"] += 1
            except OdfError as error:
                outcomes[type(error).__name__] += 1
            except Exception as error:
                raise AssertionError(f"{step!r}\n{content!r}\n{type(error).__name__}: {error}") from error
    return outcomes


def damaged(rng: random.Random, content: bytes, tokens: Sequence[bytes]) -> bytes:
    """Content with one to three changes."""
    changed = bytearray(content)
    for _ in range(rng.choice((1, 1, 2, 3))):
        at = rng.randint(0, len(changed))
        until = min(len(changed), at + rng.choice((0, 1, 1, 2, 5, 20)))
        match rng.randrange(9):
            case 0:
                changed[at:until] = b""
            case 1:
                changed[at:until] = rng.choice(tokens)
            case 2:
                changed[at:at] = changed[until : until + 30]
            case 3 if at < len(changed):
                changed[at] = rng.randrange(256)
            case 4 | 5 | 6 | 7 if at < len(changed) and chr(changed[at]).isalnum():
                changed[at] = rng.choice(b"0123456789" if chr(changed[at]).isdigit() else b"abcxyzABC")
            case 4 if rng.random() < 0.3:
                del changed[at:]
            case _:
                changed[at:at] = rng.choice(tokens)
    return bytes(changed)


# --- CSV ---

_CSV_HEADER = "id,x,name,day,ok\n"
_CSV = (
    _CSV_HEADER + '1,1.5,"a, ""b""",2024-02-29,true\n2,,c,,\n3,-1e3,"d\ne",2023-12-31,false\n',
    "\ufeff" + _CSV_HEADER.replace("\n", "\r\n") + "1,0,ž,2024-01-01,TRUE\r\n\r\n2,2.25,x y,,false\r\n",
    _CSV_HEADER + "".join(f"{i},{i}.5,n{i},2024-01-{i:02},true\n" for i in range(1, 12)),
)
_CSV_TOKENS = (b",", b'"', b'""', b"\n", b"\r", b"\r\n", b"\0", b"\xff", b"\xef\xbb\xbf", b" ", b"9" * 20, b"1.5", b"2023-02-30", b"\xc5\xbe", b"\\", b"-", b"nan", b"true")  # fmt: skip


def _csv_rows(step: ReadCsv, content: bytes) -> list[list[str | None]]:
    text = content.decode().removeprefix("\ufeff")
    if step.escape == "":
        assert step.quote is None
    reader = csv.reader(io.StringIO(text, newline=""))
    rows: list[list[str | None]] = [[cell or None for cell in row] for row in reader if row]
    return rows[1:] if step.header else rows


def _check_csv(step: ReadStep, content: bytes, table: pa.Table) -> None:
    assert isinstance(step, ReadCsv)
    if b"\0" in content and sys.version_info < (3, 11):
        return
    wanted = _csv_rows(step, content)
    header = next(csv.reader(io.StringIO(content.decode().removeprefix("\ufeff"), newline="")), [])
    if step.schema is not None and sorted(header) == sorted(step.schema.names):
        order = [header.index(name) for name in step.schema.names]
        wanted = [[row[i] for i in order] for row in wanted]
    _check_rows(table, wanted)


def _check_rows(table: pa.Table, wanted: Rows) -> None:
    found = list(zip(*(column.to_pylist() for column in table.columns), strict=True))
    assert len(found) == len(wanted), f"{len(found)} rows of {len(wanted)}"
    for row, texts in zip(found, wanted, strict=True):
        assert len(row) == len(texts)
        for value, text in zip(row, texts, strict=True):
            assert _is_same(value, text), f"{value!r} for {text!r}"


def _is_same(value: Any, given: Any) -> bool:
    """Return whether a value equals that of a text, or of a JSON value."""
    if value is None or given is None:
        return value is given
    match value:
        case bool():
            return given is value or str(given).lower() == str(value).lower()
        case int():
            return Decimal(given) == value
        case float() if math.isnan(value):
            return str(given).lower() == "nan"
        case float():
            return float(given) == value
        case date():
            return str(given) == value.isoformat()
        case dict():
            return all(_is_same(item, given.get(key)) for key, item in value.items()) and (
                given.keys() <= value.keys() or bool(value)
            )
        case list():
            return len(value) == len(given) and all(map(_is_same, value, given))
    return bool(value == given)


# --- JSON ---

_RECORDS = (
    {"id": 1, "x": 1.5, "name": 'a ž "}', "day": "2024-02-29", "ok": True, "more": [{"a": None}]},
    {"id": 2, "x": None, "name": "null", "ok": False},
    {"id": 3, "x": -1e3, "name": "\u2028\n[", "day": "2023-12-31", "ok": None},
)
_NDJSON = tuple(
    "\n".join(json.dumps(record, ensure_ascii=ascii_only, indent=indent) for record in _RECORDS)
    for ascii_only in (True, False)
    for indent in (None, 1)
)
_JSON_TOKENS = (b"{", b"}", b"[", b"]", b",", b":", b'"', b"\\", b"null", b"true", b"1", b"1e5", b"9" * 20, b"-", b".5", b"\n", b"\r\n", b"\0", b"\xff", b"\xef\xbb\xbf", b'"id":1,', b"\\ud800", b"NaN", b" ")  # fmt: skip


def _number(text: str) -> Decimal | float:
    try:
        return Decimal(text)
    except InvalidOperation:  # an excessive exponent
        return float(text)


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    keys = Counter(key for key, _ in pairs)
    return members | {key: AssertionError(f"{key!r} occurs twice") for key, count in keys.items() if count > 1}


_DECODER = json.JSONDecoder(parse_float=_number, object_pairs_hook=_members)


def _series(content: bytes) -> Iterator[dict[str, Any]]:
    text = content.decode().removeprefix("\ufeff")
    at = 0
    while rest := text[at:].lstrip(" \t\r\n"):
        at = len(text) - len(rest)
        value, at = _DECODER.raw_decode(text, at)
        assert isinstance(value, dict)
        yield value


def _whole(content: bytes) -> Any:
    return _DECODER.decode(content.decode().removeprefix("\ufeff"))


def _check_records(table: pa.Table, records: Sequence[dict[str, Any]]) -> None:
    _check_rows(table, [[record.get(name) for name in table.column_names] for record in records])


def _check_ndjson(step: ReadStep, content: bytes, table: pa.Table) -> None:
    del step
    _check_records(table, list(_series(content)))


def _check_json(step: ReadStep, content: bytes, table: pa.Table) -> None:
    assert isinstance(step, ReadJson)
    document = _whole(content) if content.strip() else []
    for key in step.sub_path.split(".") if step.sub_path and document else ():
        document = document[key]
    _check_records(table, document)


# --- GeoJSON ---

_GEOMETRIES = (
    {"type": "Point", "coordinates": [1.5, 2]},
    None,
    {"type": "LineString", "coordinates": [[0, 1e-5], [1, 1e16]]},
)
_FEATURES = [
    {"type": "Feature", "properties": record, "geometry": geometry, "id": i}
    for i, (record, geometry) in enumerate(zip(_RECORDS, _GEOMETRIES, strict=True))
]
_NDGEOJSON = tuple("\n".join(json.dumps(item, indent=indent) for item in _FEATURES) for indent in (None, 1))
_GEOJSON = (
    json.dumps({"type": "FeatureCollection", "features": _FEATURES}, ensure_ascii=False),
    json.dumps({"name": "[}", "features": _FEATURES, "crs": {"a": [[]]}, "type": "FeatureCollection"}, indent=1),
)
_GEO_SCHEMA = optional(id=Int64(), x=Float64(), name=String(), day=Date(), ok=Bool(), geometry=String())
_GEO_TOKENS = (*_JSON_TOKENS, b'"geometry":null,', b'"type":"Feature"', b'"properties":{},', b"-0")


def _check_features(table: pa.Table, features: Sequence[dict[str, Any]]) -> None:
    records = []
    for feature, text in zip(features, table.column("geometry").to_pylist(), strict=True):
        assert feature["type"] == "Feature"
        geometry = feature["geometry"]
        if text is not None:
            parsed = json.loads(text)
            assert _is_same(parsed, geometry), f"{text} for {geometry}"
            assert " " not in text or " " in str(geometry)
            geometry = text
        records.append({**(feature["properties"] or {}), "geometry": geometry})
    _check_records(table, records)


def _check_ndgeojson(step: ReadStep, content: bytes, table: pa.Table) -> None:
    del step
    if table.num_columns:
        _check_features(table, list(_series(content)))
    else:
        assert not list(_series(content))


def _check_geojson(step: ReadStep, content: bytes, table: pa.Table) -> None:
    del step
    document = (
        _whole(content) if content.strip(b"\xef\xbb\xbf \t\r\n") else {"type": "FeatureCollection", "features": []}
    )
    assert document["type"] == "FeatureCollection"
    if table.num_columns:
        _check_features(table, document["features"])
    else:
        assert not document["features"]


# --- Shapefiles ---

_SQUARE = [[0, 0], [0, 4], [4, 4], [4, 0], [0, 0]]
_ATTRIBUTES = [{"id": i, "name": f"n{i}", "x": i / 4, "day": date(2024, 1, i + 1), "ok": i > 1} for i in range(4)]
_MEMBERS = ("data.shp", "data.shx", "data.dbf")
_DBF_FIELDS = (("id", "N", 9, 0), ("name", "C", 6, 0), ("x", "N", 9, 3), ("day", "D", 8, 0), ("ok", "L", 1, 0))


def _shapefile(kind: str, shapes: Sequence[Any]) -> bytes:
    return zipped(files(kind, list(zip(shapes, _ATTRIBUTES, strict=True)), fields=_DBF_FIELDS))


def _damaged_shapefile(rng: random.Random, content: bytes, tokens: Sequence[bytes]) -> bytes:
    """Damage the archive itself, or one of its files before packing it again."""
    if rng.random() < 0.2:
        return damaged(rng, content, tokens)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    name = rng.choice(list(members))
    whole = members[name]
    if rng.random() < 0.3:
        members[name] = damaged(rng, whole, tokens)
    else:
        changed = bytearray(whole)
        for _ in range(rng.randint(1, 3)):
            changed[rng.randrange(len(changed))] = rng.choice((0, 1, 255, 32, 42, rng.randrange(256)))
        members[name] = bytes(changed)
    return zipped(members)


def _check_shapefile(step: ReadStep, content: bytes, table: pa.Table) -> None:
    del step
    if not content:
        assert not table.num_rows
        return
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {name[-3:]: archive.read(name) for name in archive.namelist() if name in _MEMBERS}
    start, width = struct.unpack_from("<2H", members["dbf"], 8)
    (count,) = struct.unpack_from("<I", members["dbf"], 4)
    marks = [members["dbf"][start + i * width] for i in range(count)]
    kept = [i for i, mark in enumerate(marks) if mark == ord(" ")]
    assert table.num_rows == len(kept)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        reader = shapefile.ShpReader(io.BytesIO(members["shp"]))
        offsets = list(_offsets(members))
        for row, text in zip(kept, table.column("geometry").to_pylist(), strict=True):
            offset = offsets[row]
            length = 2 * int.from_bytes(members["shp"][offset + 4 : offset + 8], "big")
            _check_shape(reader.shape(row, offset, length), text)
    for field in table.schema:
        if field.name in ("id", "x", "name", "day", "ok"):
            _check_attribute(members["dbf"], kept, start, width, field.name, table.column(field.name).to_pylist())


def _offsets(members: dict[str, bytes]) -> Iterator[int]:
    """Return where the shapes are: by the index, else one after the other."""
    if "shx" in members:
        yield from (2 * offset for offset, _ in struct.iter_unpack(">2i", members["shx"][100:]))
        return
    at = 100
    while at < len(members["shp"]):
        yield at
        at += 8 + 2 * int.from_bytes(members["shp"][at + 4 : at + 8], "big")


def _check_shape(shape: Any, text: str | None) -> None:
    points = [tuple(point[:2]) for point in shape.points]
    if text is None:
        assert not points or math.isnan(points[0][0])
        return
    found = list(_flat(json.loads(text)["coordinates"]))
    assert set(found) == set(points)
    assert len(found) >= len(points)


def _flat(coordinates: Any) -> Iterator[tuple[float, float]]:
    if coordinates and not isinstance(coordinates[0], list):
        yield tuple(coordinates[:2])
        return
    for item in coordinates:
        yield from _flat(item)


def _check_attribute(dbf: bytes, kept: Sequence[int], start: int, width: int, name: str, values: Sequence[Any]) -> None:
    at, size = 1, 0
    for descriptor in range(32, start, 32):
        if dbf[descriptor] == 0x0D:
            break
        size = dbf[descriptor + 16]
        if dbf[descriptor : descriptor + 11].split(b"\0")[0].strip() == name.encode():
            break
        at += size
    else:
        assert values == [None] * len(values)
        return
    if dbf[descriptor] == 0x0D:
        assert values == [None] * len(values), "a column that is not there"
        return
    for row, value in zip(kept, values, strict=True):
        raw = dbf[start + row * width + at :][:size].strip(b" \0")
        text: str | None = raw.decode("utf-8" if raw.isascii() else "latin-1")
        if value is None:
            assert not raw.strip(b"*?0"), f"{raw!r} is lost"
        elif isinstance(value, bool):
            assert (text in "TtYy1") == value
        elif isinstance(value, date):
            assert value.isoformat().replace("-", "") == text
        elif isinstance(value, str):
            assert value in {text, raw.decode("utf-8", "replace")} or not raw.isascii()
        else:
            assert float(text or "") == value


# --- Parquet ---


_PARQUET = pa.table(
    {
        "id": pa.array(range(200), pa.int64()),
        "name": pa.array([f"name {i % 7}" if i % 5 else None for i in range(200)]),
        "x": pa.array([[float(i)] * (i % 3) for i in range(200)]),
    }
)


def _parquet() -> bytes:
    buffer = io.BytesIO()
    pq.write_table(_PARQUET, buffer, row_group_size=80, write_page_checksum=True, compression="none")
    return buffer.getvalue()


def _check_parquet(step: ReadStep, content: bytes, table: pa.Table) -> None:
    """Check the rows. Pages have checksums but the footer has none: its names and types of columns are not checked."""
    del step
    with pq.ParquetFile(io.BytesIO(content)) as file:
        assert table.num_rows == file.metadata.num_rows
    for name, column in zip(table.column_names, table.columns, strict=True):
        if name in _PARQUET.column_names and column.type == _PARQUET.schema.field(name).type:
            assert column.equals(_PARQUET.column(name))


def _encoded(texts: Sequence[str]) -> list[bytes]:
    return [text.encode() for text in texts]


_POLYGONS = [[_SQUARE], None, [_SQUARE, [[1, 1], [2, 1], [2, 2], [1, 2], [1, 1]]], [_SQUARE]]
_SHAPEFILES = (
    _shapefile("point", [(1, 2), None, (3.5, 4), (-1e5, 0)]),
    _shapefile("poly", _POLYGONS),
    _shapefile("linez", [[[[0, 0, 1], [1, 1, 2]], [[2, 2, 3], [3, 3, 4]]]] * 4),
    _shapefile("multipointm", [[[0, 0, 1], [1, 1, 2]]] * 4),
)
_ARRAYS = _encoded([json.dumps(_RECORDS), json.dumps(_RECORDS[:2], ensure_ascii=False, indent=1)])
_NESTED = _encoded([json.dumps({"c": 1, "a": {"b": _RECORDS, "d": []}}, indent=indent) for indent in (None, 1)])
_FILES = {
    name: _encoded(texts)
    for name, texts in {"csv": _CSV, "ndjson": _NDJSON, "geojson": _GEOJSON, "ndgeojson": _NDGEOJSON}.items()
}

TARGETS = {
    "Csv": Target(
        [
            (ReadCsv(escape='"'), _FILES["csv"]),
            (ReadCsv(header=True, escape='"'), _FILES["csv"]),
            (ReadCsv(header=True, escape='"', infer_schema=True), _FILES["csv"]),
            (ReadCsv(header=True, escape='"', schema=SCHEMA), _FILES["csv"]),
        ],
        _CSV_TOKENS,
        _check_csv,
        damaged,
    ),
    "Json": Target(
        [
            (ReadJson(), _ARRAYS),
            (ReadJson(schema=SCHEMA), _ARRAYS),
            (ReadJson(sub_path="a.b"), _NESTED),
            (ReadJson(sub_path="a.b", schema=SCHEMA), _NESTED),
        ],
        _JSON_TOKENS,
        _check_json,
        damaged,
    ),
    "NdJson": Target(
        [(ReadNdJson(), _FILES["ndjson"]), (ReadNdJson(schema=SCHEMA), _FILES["ndjson"])],
        _JSON_TOKENS,
        _check_ndjson,
        damaged,
    ),
    "GeoJson": Target(
        [(ReadGeoJson(), _FILES["geojson"]), (ReadGeoJson(schema=_GEO_SCHEMA), _FILES["geojson"])],
        _GEO_TOKENS,
        _check_geojson,
        damaged,
    ),
    "NdGeoJson": Target(
        [(ReadNdGeoJson(), _FILES["ndgeojson"]), (ReadNdGeoJson(schema=_GEO_SCHEMA), _FILES["ndgeojson"])],
        _GEO_TOKENS,
        _check_ndgeojson,
        damaged,
    ),
    "EsriShapefile": Target(
        [(ReadEsriShapefile(), _SHAPEFILES), (ReadEsriShapefile(schema=_GEO_SCHEMA), _SHAPEFILES)],
        (b" ", b"*", b"\0", b"\xff", b"\r", b"\x1a", b"1", b"PK", b"\0\0\0\1"),
        _check_shapefile,
        _damaged_shapefile,
    ),
    "Parquet": Target([(ReadParquet(), [_parquet()])], (b"\0", b"\xff", b"\x15", b"PAR1"), _check_parquet, damaged),
}


if __name__ == "__main__":
    for title, target in TARGETS.items():
        started = time.monotonic()
        found = fuzz(target, int(sys.argv[1]), seed=2)
        sys.stdout.write(f"{title}: {dict(found)} in {time.monotonic() - started:.1f} s\n")
        sys.stdout.flush()
