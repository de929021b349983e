"""Reading ESRI shapefiles (ODF specification, "ReadStep: EsriShapefile"): a zip archive with files of the same name.

`.shp` has the geometries, `.dbf` the attributes, `.shx` the index, `.cpg` the encoding; the first two are required.
Each feature is a row: its attributes are columns by name, its geometry is the column `geometry`, a GeoJSON text.
Attributes that the schema lacks are ignored, missing ones are null. Without a schema the types are those of the
`.dbf` file, and columns are in alphabetical order, as in the reference implementation.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path, PurePosixPath
from typing import BinaryIO

import pyarrow as pa
import pyarrow.compute as pc

from odfpy.chain.read_steps import ReadEsriShapefile
from odfpy.data.schemas.arrow import to_arrow
from odfpy.data.schemas.schema import DataSchema
from odfpy.errors import IngestError, SchemaError, did_you_mean
from odfpy.ingest.archive import UnpackLimits, ZipArchive
from odfpy.ingest.read.files import opening
from odfpy.ingest.read.geo.dbf import DbfBatch, DbfTable, codec_of_cpg
from odfpy.ingest.read.geo.geojson_features import GEOMETRY
from odfpy.ingest.read.geo.shapes import Shapes
from odfpy.ingest.read.part import WHOLE, FilePart, parts_between
from odfpy.ingest.read.typed import Misfit, fit_table, shorten

_ENCODINGS = {".cpg", ".cst"}  # the second is GeoServer's name for the first
_LIMITS = UnpackLimits()
_WHOLE = r"^([+-]?[0-9]+)\.0*$"


def read_esri_shapefile(
    step: ReadEsriShapefile, schema: DataSchema | None, path: Path, name: str, part: FilePart = WHOLE
) -> pa.Table:
    """Return the rows of a shapefile in a zip archive, or of a part of it.

    Args:
        step: the read step.
        schema: the schema that the source declares, None for none.
        path: the file.
        name: name of the file in messages.
        part: the part to read; all of the file by default.

    Raises:
        BadValue: a value is invalid, or a geometry is damaged; the message names the row, counted from 1.
        IngestError: the archive or one of its files cannot be read, or has no such shapefile.
        SchemaError: a column has a type that shapefiles do not have.
    """
    with opening(name), path.open("rb") as packed:
        if not packed.read(1):
            return pa.table({}) if schema is None else to_arrow(schema).empty_table()
        with _Shapefile.opened(ZipArchive(packed, name), step.sub_path) as source:
            wanted = _inferred(source.table) if schema is None else to_arrow(schema)
            _check(source.table, wanted)
            return pa.concat_tables([wanted.empty_table(), *source.read(wanted, part)])


def esri_parts(
    step: ReadEsriShapefile,
    schema: DataSchema | None,  # noqa: ARG001
    path: Path,
    name: str,
    size: int,
) -> list[FilePart]:
    """Return ranges of rows with approximately `size` unpacked bytes; errors as above.

    Args:
        step: the read step.
        schema: the schema that the source declares, None for none.
        path: the file.
        name: name of the file in messages.
        size: approximate bytes of a part.
    """
    with opening(name), path.open("rb") as packed:
        if not packed.read(1):
            return [WHOLE]
        with _Shapefile.opened(ZipArchive(packed, name), step.sub_path) as source:
            rows = source.table.num_rows
            step_rows = max(1, rows * size // max(1, source.shapes.size + source.table.size))
            return parts_between(range(step_rows, rows, step_rows))


class _Shapefile:
    """The unpacked files of a shapefile."""

    def __init__(self, shapes: Shapes, table: DbfTable, name: str) -> None:
        self.shapes = shapes
        self.table = table
        if len(shapes) != table.num_rows:
            raise IngestError(
                f"{name} has {len(shapes)} shapes and {table.num_rows} rows of attributes",
                hint="The archive may have been created while the shapefile was being written; ask its publisher.",
            )

    @classmethod
    @contextmanager
    def opened(cls, archive: ZipArchive, sub_path: str | None) -> Iterator[_Shapefile]:
        """Unpack a shapefile of an archive for the duration of the block."""
        names = [name for name in archive.names if PurePosixPath(name).suffix.lower() == ".shp"]
        member = archive.find(sub_path, names, "shapefile")
        siblings = {
            PurePosixPath(name).suffix.lower(): name
            for name in archive.names
            if PurePosixPath(name).with_suffix("") == PurePosixPath(member).with_suffix("")
        }
        if ".dbf" not in siblings:
            raise IngestError(
                f"{archive.name} has no attributes (.dbf) for {member}", hint="A shapefile is .shp, .shx and .dbf."
            )
        with ExitStack() as stack:

            def unpacked(suffix: str) -> BinaryIO:
                file = stack.enter_context(tempfile.TemporaryFile())
                archive.extract(siblings[suffix], file, _LIMITS)
                file.seek(0)
                return file

            encoding = None
            for suffix in sorted(_ENCODINGS & siblings.keys()):
                encoding = encoding or codec_of_cpg(unpacked(suffix).read(), f"{archive.name}/{siblings[suffix]}")
            index = unpacked(".shx").read() if ".shx" in siblings else None
            shapes = Shapes(unpacked(".shp"), index, f"{archive.name}/{member}")
            table = DbfTable(unpacked(".dbf"), f"{archive.name}/{siblings['.dbf']}", encoding)
            yield cls(shapes, table, f"{archive.name}/{member}")

    def read(self, wanted: pa.Schema, part: FilePart) -> Iterator[pa.Table]:
        """Yield the rows of a part, in batches."""
        for batch in self.table.batches(set(wanted.names), part.start, part.stop):
            columns = [self._column(batch, field) for field in wanted]
            try:
                yield fit_table([pa.chunked_array([column]) for column in columns], wanted)
            except Misfit as misfit:
                place = self.table.place(int(batch.numbers[misfit.row]))
                raise misfit.at(place, has_formats=False) from None

    def _column(self, batch: DbfBatch, field: pa.Field) -> pa.Array:
        if field.name == GEOMETRY:
            return pa.array(list(self.shapes.texts(batch.numbers.tolist())), pa.string())
        texts = batch.texts.get(field.name)
        if texts is None:
            return pa.nulls(len(batch.numbers))
        return pc.replace_substring_regex(texts, _WHOLE, r"\1") if pa.types.is_integer(field.type) else texts


def _inferred(table: DbfTable) -> pa.Schema:
    types = {field.name: field.type for field in table.fields} | {GEOMETRY: pa.string()}
    return pa.schema([(name, types[name] or pa.string()) for name in sorted(types)])


def _check(table: DbfTable, wanted: pa.Schema) -> None:
    """Check that each requested column exists and is readable."""
    counts = Counter(field.name for field in table.fields)
    for field in wanted:
        if field.name not in counts and field.name != GEOMETRY and not field.nullable:
            raise IngestError(
                f"{table.place(0)}: there is no column {shorten(field.name)}",
                hint=did_you_mean(field.name, counts, otherwise=f"There are {', '.join(map(shorten, counts))}."),
            )
    for field in table.fields:
        if field.name not in wanted.names:
            continue
        if counts[field.name] > 1:
            raise IngestError(f"{table.place(0)}: there are two columns {shorten(field.name)}")
        if field.name == GEOMETRY:
            raise IngestError(
                f"{table.place(0)}: a column is called {GEOMETRY!r}, the name of the column of the geometries",
                hint="The publisher has to rename the column; the two cannot be distinguished.",
            )
        if field.type is None:
            raise SchemaError(
                f"{table.place(0)}: column {shorten(field.name)} is of the dBASE type {field.kind!r}",
                hint="Shapefiles have C, N, F, L and D. To skip this column, list the others in a schema.",
            )
