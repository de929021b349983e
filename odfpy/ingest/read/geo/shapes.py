"""The geometries of a shapefile as GeoJSON texts, decoded by pyshp and checked, so that none is silently truncated.

As in the reference implementation, lines are always MultiLineString and areas always MultiPolygon, members are in the
order `type`, `coordinates`, and coordinates are unchanged, whatever their projection. Heights are the third coordinate
(the reference drops them); measures, which GeoJSON does not have, are omitted.
"""

from __future__ import annotations

import json
import math
import struct
import warnings
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from odfpy.errors import BadValue, IngestError
from odfpy.ingest.read.geo.geometry_text import NoText, geometry_text

if TYPE_CHECKING:
    import shapefile

_HEADER = 100
_RECORD_HEADER = 8
_MAGIC = (9994).to_bytes(4, "big")
_HINT = "The archive may have been created while the shapefile was being written; ask its publisher."
_ENCODER = json.JSONEncoder(allow_nan=False, separators=(",", ":"))
_Position = tuple[float, ...]


class Shapes:
    """The geometries of a .shp file; an optional .shx file contains their positions.

    Attributes:
        size: size of the .shp file in bytes.
    """

    def __init__(self, file: BinaryIO, index: bytes | None, name: str) -> None:
        """Read the positions of the geometries.

        Raises:
            IngestError: the file has another format, or is truncated.
        """
        import shapefile

        self._name = name
        self.size = file.seek(0, 2)
        file.seek(0)
        header = file.read(_HEADER)
        if len(header) < _HEADER or header[:4] != _MAGIC:
            raise IngestError(f"{name} is not a file of shapes", hint=_HINT)
        if self.size < 2 * int.from_bytes(header[24:28], "big"):
            raise IngestError(f"{name} is truncated", hint=_HINT)
        self._file = file
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # its warnings concern what is checked here
            self._reader = shapefile.ShpReader(file)
        self._offsets = self._walk() if index is None else self._indexed(index)

    def __len__(self) -> int:
        """Return the number of geometries."""
        return len(self._offsets)

    def texts(self, numbers: Sequence[int]) -> Iterator[str | None]:
        """Yield the texts of geometries by number; None for null shapes and points without a position.

        Raises:
            BadValue: a shape is damaged, or cannot be written as GeoJSON; the message names the row.
        """
        import shapefile

        damage = (struct.error, shapefile.ShapefileException, ValueError, LookupError, ArithmeticError, AttributeError)
        for number in numbers:
            try:
                yield _text(self._shape(number))
            except (*damage, NoText, TypeError, MemoryError, shapefile.RingSamplingError) as error:
                reason = str(error) if isinstance(error, NoText) else "it is damaged"
                raise BadValue(
                    f"{self._name}, row {number + 1}: the shape cannot be read: {reason}", hint=_HINT
                ) from error

    def _shape(self, number: int) -> shapefile.Shape:
        offset = self._offsets[number]
        length = self._length(offset)
        return self._reader.shape(number, offset, length)

    def _length(self, offset: int) -> int:
        """Return the size of the shape whose header is at an offset."""
        self._file.seek(offset)
        length = 2 * int.from_bytes(self._file.read(_RECORD_HEADER)[4:], "big", signed=True)
        if length < 4 or offset + _RECORD_HEADER + length > self.size:
            raise IngestError(f"{self._name} is truncated or damaged", hint=_HINT)
        return length

    def _walk(self) -> Sequence[int]:
        offsets = []
        at = _HEADER
        while at < self.size:
            offsets.append(at)
            at += _RECORD_HEADER + self._length(at)
        return offsets

    def _indexed(self, index: bytes) -> Sequence[int]:
        if len(index) < _HEADER or index[:4] != _MAGIC or len(index) % 8 != _HEADER % 8:
            raise IngestError(f"The index of {self._name} is truncated or damaged", hint=_HINT)
        offsets = 2 * np.frombuffer(index, ">i4", offset=_HEADER)[::2].astype("int64")
        if len(offsets) and (offsets.min() < _HEADER or offsets.max() > self.size - _RECORD_HEADER):
            raise IngestError(f"The index of {self._name} has invalid offsets", hint=_HINT)
        if len(np.unique(offsets)) < len(offsets):
            raise IngestError(f"The index of {self._name} has a shape twice", hint=_HINT)
        return [int(offset) for offset in offsets]


def _text(shape: shapefile.Shape) -> str | None:
    import shapefile

    kind = shape.shapeType
    positions = _positions(shape)
    coordinates: Any
    if kind == shapefile.NULL:
        return None
    if kind in (shapefile.POINT, shapefile.POINTM, shapefile.POINTZ):
        if all(math.isnan(value) for value in positions[0][:2]):
            return None
        name, coordinates = "Point", positions[0]
    elif kind in (shapefile.MULTIPOINT, shapefile.MULTIPOINTM, shapefile.MULTIPOINTZ):
        name, coordinates = "MultiPoint", positions
    elif kind in (shapefile.POLYLINE, shapefile.POLYLINEM, shapefile.POLYLINEZ):
        name, coordinates = "MultiLineString", _parts(shape, positions)
    elif kind in (shapefile.POLYGON, shapefile.POLYGONM, shapefile.POLYGONZ):
        rings = [[*ring, *ring[: ring[0] != ring[-1]]] for ring in _parts(shape, positions)]
        name, coordinates = "MultiPolygon", shapefile.organize_polygon_rings(rings) if rings else []
    else:
        raise NoText(f"GeoJSON has no {shape.shapeTypeName.lower()}")
    try:
        text = _ENCODER.encode(coordinates)
    except ValueError as error:
        raise NoText("a coordinate is not finite") from error
    return f'{{"type":"{name}","coordinates":{geometry_text(coordinates) if "e" in text else text}}}'


def _positions(shape: shapefile.Shape) -> list[_Position]:
    points: list[_Position] = [(x, y) for x, y, *_ in shape.points]
    heights = getattr(shape, "z", None)
    if not points or heights is None or "Z" not in shape.shapeTypeName:
        return points
    return [(x, y, z) for (x, y), z in zip(points, heights, strict=True)]


def _parts(shape: shapefile.Shape, positions: list[_Position]) -> list[list[_Position]]:
    starts = list(shape.parts) if positions else []
    ends = [*starts[1:], len(positions)]
    if positions and (not starts or starts[0] != 0 or any(a >= b for a, b in zip(starts, ends, strict=True))):
        raise NoText("its parts are not those of its points")
    return [positions[a:b] for a, b in zip(starts, ends, strict=True)]
