"""Read steps of sources: from bytes to rows (ODF specification, "ReadStep").

Fields are in the order of the wire format, and union members in the order of its union.
"""

from __future__ import annotations

from typing import ClassVar, TypeAlias

from odfpy.data.schemas.schema import DataSchema
from odfpy.values import dataclass


@dataclass(frozen=True, slots=True)
class ReadCsv:
    """Delimited text.

    https://github.com/open-data-fabric/open-data-fabric/blob/master/open-data-fabric.md#readstepcsv

    Attributes:
        ddl_schema: columns as SQL definitions, the older form of `schema`; either of the two, or neither.
        separator: character between fields; a comma by default.
        encoding: name of the character encoding; UTF-8 by default.
        quote: character around fields; `"` by default.
        escape: character before a quote within a field.
        header: whether the first record names the columns.
        infer_schema: whether types are inferred from the values; else all is text.
        null_value: text that stands for NULL.
        date_format: pattern of dates, in the notation of Spark (`yyyy-MM-dd`).
        timestamp_format: pattern of timestamps, in the notation of Spark.
        schema: columns and their types; without it they are inferred, or text.
    """

    KIND: ClassVar[str] = "Csv"

    ddl_schema: tuple[str, ...] | None = None
    separator: str | None = None
    encoding: str | None = None
    quote: str | None = None
    escape: str | None = None
    header: bool | None = None
    infer_schema: bool | None = None
    null_value: str | None = None
    date_format: str | None = None
    timestamp_format: str | None = None
    schema: DataSchema | None = None


@dataclass(frozen=True, slots=True)
class ReadGeoJson:
    """A GeoJSON feature collection.

    https://github.com/open-data-fabric/open-data-fabric/blob/master/open-data-fabric.md#readstepgeojson

    Attributes:
        ddl_schema: columns as SQL definitions, the older form of `schema`; either of the two, or neither.
        schema: columns and their types; without it they are inferred, or text.
    """

    KIND: ClassVar[str] = "GeoJson"

    ddl_schema: tuple[str, ...] | None = None
    schema: DataSchema | None = None


@dataclass(frozen=True, slots=True)
class ReadEsriShapefile:
    """A zipped ESRI shapefile.

    https://github.com/open-data-fabric/open-data-fabric/blob/master/open-data-fabric.md#readstepesrishapefile

    Attributes:
        ddl_schema: columns as SQL definitions, the older form of `schema`; either of the two, or neither.
        sub_path: shapefile in the archive; required if it has several.
        schema: columns and their types; without it they are inferred, or text.
    """

    KIND: ClassVar[str] = "EsriShapefile"

    ddl_schema: tuple[str, ...] | None = None
    sub_path: str | None = None
    schema: DataSchema | None = None


@dataclass(frozen=True, slots=True)
class ReadParquet:
    """An Apache Parquet file.

    https://github.com/open-data-fabric/open-data-fabric/blob/master/open-data-fabric.md#readstepparquet

    Attributes:
        ddl_schema: columns as SQL definitions, the older form of `schema`; either of the two, or neither.
        schema: columns and their types; without it they are inferred, or text.
    """

    KIND: ClassVar[str] = "Parquet"

    ddl_schema: tuple[str, ...] | None = None
    schema: DataSchema | None = None


@dataclass(frozen=True, slots=True)
class ReadJson:
    """A JSON array of objects, possibly below `sub_path`.

    https://github.com/open-data-fabric/open-data-fabric/blob/master/open-data-fabric.md#readstepjson

    Attributes:
        sub_path: path to the array, with dots; the whole document by default.
        ddl_schema: columns as SQL definitions, the older form of `schema`; either of the two, or neither.
        date_format: pattern of dates, in the notation of Spark (`yyyy-MM-dd`).
        encoding: name of the character encoding; UTF-8 by default.
        timestamp_format: pattern of timestamps, in the notation of Spark.
        schema: columns and their types; without it they are inferred, or text.
    """

    KIND: ClassVar[str] = "Json"

    sub_path: str | None = None
    ddl_schema: tuple[str, ...] | None = None
    date_format: str | None = None
    encoding: str | None = None
    timestamp_format: str | None = None
    schema: DataSchema | None = None


@dataclass(frozen=True, slots=True)
class ReadNdJson:
    """One JSON object per line.

    https://github.com/open-data-fabric/open-data-fabric/blob/master/open-data-fabric.md#readstepndjson

    Attributes:
        ddl_schema: columns as SQL definitions, the older form of `schema`; either of the two, or neither.
        date_format: pattern of dates, in the notation of Spark (`yyyy-MM-dd`).
        encoding: name of the character encoding; UTF-8 by default.
        timestamp_format: pattern of timestamps, in the notation of Spark.
        schema: columns and their types; without it they are inferred, or text.
    """

    KIND: ClassVar[str] = "NdJson"

    ddl_schema: tuple[str, ...] | None = None
    date_format: str | None = None
    encoding: str | None = None
    timestamp_format: str | None = None
    schema: DataSchema | None = None


@dataclass(frozen=True, slots=True)
class ReadNdGeoJson:
    """One GeoJSON feature per line.

    https://github.com/open-data-fabric/open-data-fabric/blob/master/open-data-fabric.md#readstepndgeojson

    Attributes:
        ddl_schema: columns as SQL definitions, the older form of `schema`; either of the two, or neither.
        schema: columns and their types; without it they are inferred, or text.
    """

    KIND: ClassVar[str] = "NdGeoJson"

    ddl_schema: tuple[str, ...] | None = None
    schema: DataSchema | None = None


ReadStep: TypeAlias = ReadCsv | ReadGeoJson | ReadEsriShapefile | ReadParquet | ReadJson | ReadNdJson | ReadNdGeoJson
