"""Shapefiles, written by pyshp."""

from __future__ import annotations

import io
import warnings
from collections.abc import Sequence
from typing import Any

import shapefile
from support.ingest.preparing import zipped

Row = tuple[Any, dict[str, Any]]
"""A geometry, as accepted by `write_shape`, and attributes."""

TYPES = {
    "null": shapefile.NULL,
    "point": shapefile.POINT,
    "pointz": shapefile.POINTZ,
    "pointm": shapefile.POINTM,
    "line": shapefile.POLYLINE,
    "linez": shapefile.POLYLINEZ,
    "linem": shapefile.POLYLINEM,
    "poly": shapefile.POLYGON,
    "polyz": shapefile.POLYGONZ,
    "polym": shapefile.POLYGONM,
    "multipoint": shapefile.MULTIPOINT,
    "multipointz": shapefile.MULTIPOINTZ,
    "multipointm": shapefile.MULTIPOINTM,
}
FIELDS = (("id", "N", 10, 0), ("name", "C", 20, 0))


def write_shape(writer: shapefile.Writer, kind: str, shape: Any) -> None:
    """Write a shape with the method of the writer for its kind; None is not a shape."""
    if shape is None:
        writer.null()
    elif kind.startswith("point"):
        getattr(writer, kind)(*shape)
    else:
        getattr(writer, kind)(shape)


def files(
    kind: str,
    rows: Sequence[Row],
    fields: Sequence[tuple[str, str, int, int]] = FIELDS,
    encoding: str = "utf-8",
    name: str = "data",
) -> dict[str, bytes]:
    """Return the files of a shapefile, without .cpg, by name."""
    shp, shx, dbf = io.BytesIO(), io.BytesIO(), io.BytesIO()
    with (
        warnings.catch_warnings(),
        shapefile.Writer(shp=shp, shx=shx, dbf=dbf, shapeType=TYPES[kind], encoding=encoding) as writer,
    ):
        warnings.simplefilter("ignore", shapefile.PossibleDataLoss)  # only trailing spaces of texts are lost
        for field in fields:
            writer.field(*field)
        for shape, values in rows:
            write_shape(writer, kind, shape)
            writer.record(**values)
    return {f"{name}.shp": shp.getvalue(), f"{name}.shx": shx.getvalue(), f"{name}.dbf": dbf.getvalue()}


def archive(kind: str, rows: Sequence[Row], **options: Any) -> bytes:
    """Return a zipped shapefile."""
    return zipped(files(kind, rows, **options))
