"""Shapefiles; pyshp reads their shapes, too."""

from __future__ import annotations

import io
import json
import math
import random
import struct
import warnings
import zipfile
from collections.abc import Iterator, Sequence
from datetime import date
from typing import Any

import pyarrow as pa
import shapefile
from support.ingest.fuzz_targets.rows import GEO_SCHEMA
from support.ingest.fuzz_targets.target import Target, damaged
from support.ingest.preparing import zipped
from support.ingest.shapefiles import files

from odfpy.chain.read_steps import ReadEsriShapefile, ReadStep

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


_POLYGONS = [[_SQUARE], None, [_SQUARE, [[1, 1], [2, 1], [2, 2], [1, 2], [1, 1]]], [_SQUARE]]
_SHAPEFILES = (
    _shapefile("point", [(1, 2), None, (3.5, 4), (-1e5, 0)]),
    _shapefile("poly", _POLYGONS),
    _shapefile("linez", [[[[0, 0, 1], [1, 1, 2]], [[2, 2, 3], [3, 3, 4]]]] * 4),
    _shapefile("multipointm", [[[0, 0, 1], [1, 1, 2]]] * 4),
)


SHAPEFILES = Target(
    [(ReadEsriShapefile(), _SHAPEFILES), (ReadEsriShapefile(schema=GEO_SCHEMA), _SHAPEFILES)],
    (b" ", b"*", b"\0", b"\xff", b"\r", b"\x1a", b"1", b"PK", b"\0\0\0\1"),
    _check_shapefile,
    _damaged_shapefile,
)
