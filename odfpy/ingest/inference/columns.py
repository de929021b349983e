"""Columns of a sample in any format: names, types, and the fields that cannot become columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

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
from odfpy.data.schemas import schema as odf
from odfpy.data.schemas.arrow import from_arrow, to_arrow
from odfpy.data.schemas.schema import DataField, DataSchema, DataType
from odfpy.data.slices.logical_hash import LogicalHasher
from odfpy.data.slices.parquet_io import INT96_UNIT
from odfpy.data.slices.rules import check_slice_schema
from odfpy.data.vocabulary import DEFAULT_VOCABULARY
from odfpy.errors import IngestError, SchemaError
from odfpy.ingest.inference.delimited import names_of
from odfpy.ingest.inference.sample import Sample
from odfpy.ingest.inference.times import written_times
from odfpy.ingest.inference.types import InferredType, guess_type, marker_in, null_marker
from odfpy.ingest.read import FilePart, parts_of, read
from odfpy.ingest.read.csv import first_record, refuse_separator_line
from odfpy.ingest.read.csv_text import Dialect
from odfpy.ingest.read.files import TextFile, in_turn
from odfpy.ingest.read.geo.geojson_features import GEOMETRY, Collection, parse_feature_series
from odfpy.ingest.read.json_array import cut_at_item
from odfpy.ingest.read.json_inference import infer_schema
from odfpy.ingest.read.json_records import Records, parse_array, parse_series
from odfpy.ingest.read.part import WHOLE
from odfpy.ingest.read.typed import Misfit

_MOMENT: Final = pa.timestamp("ms", "UTC")
_PARQUET_BYTES: Final = 64 << 20


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the source.

    Attributes:
        name: name in the dataset.
        type: type that the schema declares.
        remark: reason for the type, if it is not obvious.
        origin: name in the file, if it differs.
    """

    name: str
    type: DataType
    remark: str | None = None
    origin: str | None = None

    @property
    def plain(self) -> DataType:
        """The type of values that are not null."""
        return self.type.inner if isinstance(self.type, odf.Option) else self.type

    @property
    def field(self) -> DataField:
        """The column in a schema."""
        return DataField(self.name, self.type)


@dataclass(frozen=True, slots=True)
class SkippedField:
    """A field of the file that cannot become a column, and the reason."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class FoundColumns:
    """The columns of a sample.

    Attributes:
        read: the read step, with formats of times and the marker of null, still without a schema.
        columns: columns in the order of the file, all optional unless the file says otherwise.
        left_out: fields that cannot become columns.
        part: the inspected part of the file.
    """

    read: ReadStep
    columns: tuple[Column, ...]
    left_out: tuple[SkippedField, ...] = ()
    part: FilePart = WHOLE


def find_columns(step: ReadStep, sample: Sample) -> FoundColumns:
    """Return the columns of a sample.

    Args:
        step: the read step, without a schema.
        sample: the sample.

    Raises:
        IngestError: the file cannot be read, or has no columns.
    """
    if isinstance(step, ReadCsv):
        found = _csv_columns(step, sample)
    elif isinstance(step, ReadParquet):
        found = _parquet_columns(step, sample)
    elif isinstance(step, ReadEsriShapefile):
        schema = from_arrow(read(step, sample.path, name=sample.name).schema)
        found = FoundColumns(step, tuple(Column(field.name, field.type) for field in schema.fields))
    else:
        found = _json_columns(step, sample)
    if not found.columns:
        raise IngestError(
            f"{sample.name} has no columns",
            hint="; ".join(f"{skipped.name}: {skipped.reason}" for skipped in found.left_out[:3]) or None,
        )
    return found


# --- CSV -------------------------------------------------------------------------------------------------------------


def _csv_columns(step: ReadCsv, sample: Sample) -> FoundColumns:
    first = first_record(TextFile(sample.path, sample.name, step.encoding), Dialect.of(step))
    cells = first.cells if first is not None else []
    refuse_separator_line(cells, sample.name)
    names = names_of(cells if step.header else [""] * len(cells))
    schema = DataSchema(tuple(DataField(name, odf.Option(odf.String())) for name in names))
    table = read(replace(step, schema=schema), sample.path, name=sample.name)
    marker = null_marker(table.columns)
    if marker is not None:
        step = replace(step, null_value=marker)
        table = read(replace(step, schema=schema), sample.path, name=sample.name)
    texts = dict(zip(names, table.columns, strict=True))
    guesses = {name: guess_type(column, name) for name, column in texts.items()}
    guesses |= {name: _mixed(texts[name], guess) for name, guess in guesses.items()}
    times = written_times(texts, guesses)
    step = replace(step, date_format=times.date_format, timestamp_format=times.timestamp_format)
    origins = dict(zip(names, cells, strict=True)) if step.header else {}
    return FoundColumns(step, tuple(_columns(guesses | dict(times.guesses), origins)))


def _mixed(texts: pa.ChunkedArray, guess: InferredType) -> InferredType:
    """Return the guess, with a remark if only a marker of null keeps texts from being numbers or times."""
    if not isinstance(guess.type, odf.String) or guess.remark is not None:
        return guess
    marker = marker_in(texts)
    return (
        guess
        if marker is None
        else InferredType(guess.type, f"text, since {marker!r} is among the values; see `nullValue`")
    )


def _columns(guesses: Mapping[str, InferredType], origins: Mapping[str, str]) -> Iterator[Column]:
    for name, guess in guesses.items():
        origin = origins.get(name)
        yield Column(name, odf.Option(guess.type), guess.remark, None if origin == name else origin)


# --- JSON ------------------------------------------------------------------------------------------------------------


def _json_columns(step: ReadStep, sample: Sample) -> FoundColumns:
    objects = [members for some in _records(step, sample) for members in some.objects]
    guesses: dict[str, InferredType] = {}
    texts: dict[str, pa.ChunkedArray] = {}
    left_out = []
    for name in dict.fromkeys(key for members in objects for key in members):
        values = [members.get(name) for members in objects]
        try:
            field = infer_schema([{name: value} for value in values], pa.string()).field(0)
            _require_storable(field)
        except Misfit as misfit:
            where = "" if misfit.path == name else f" in {misfit.path}"
            reason = f"record {misfit.row + 1} has {misfit.shown}{where}, which is not a valid {misfit.wanted}"
            left_out.append(SkippedField(name, reason))
            continue
        except SchemaError as error:
            left_out.append(SkippedField(name, error.message))
            continue
        known = from_arrow(pa.schema([field])).fields[0].type
        guesses[name] = InferredType(known.inner if isinstance(known, odf.Option) else known)
        if pa.types.is_string(field.type) and name != GEOMETRY:
            texts[name] = pa.chunked_array([pa.array(values, pa.string())])
            guesses[name] = _time_or_text(texts[name])
    if isinstance(step, ReadJson | ReadNdJson):
        times = written_times(texts, guesses)
        guesses |= times.guesses
        step = replace(step, date_format=times.date_format, timestamp_format=times.timestamp_format)
    return FoundColumns(step, tuple(_columns(guesses, {})), tuple(left_out))


def _time_or_text(texts: pa.ChunkedArray) -> InferredType:
    """Infer the type of JSON strings: a time or a string. Numbers would have been written without quotes."""
    guess = guess_type(texts)
    is_time = isinstance(guess.type, odf.Date | odf.Timestamp)
    return guess if is_time or texts.null_count == len(texts) else InferredType(odf.String())


def _records(step: ReadStep, sample: Sample) -> Iterator[Records]:
    encoding = step.encoding if isinstance(step, ReadJson | ReadNdJson) else None
    file = TextFile(sample.path, sample.name, encoding)
    if isinstance(step, ReadGeoJson):
        collection = Collection.of(file)
        if collection is not None:
            yield from in_turn(file.pieces(collection.start, cut_at_item), collection.parse)
        return
    document = file.rest(0)
    document.check_utf8()
    if isinstance(step, ReadJson):
        yield parse_array(document, [] if step.sub_path is None else step.sub_path.split("."))
    else:
        yield (parse_feature_series if isinstance(step, ReadNdGeoJson) else parse_series)(document)


# --- Parquet ---------------------------------------------------------------------------------------------------------


def _parquet_columns(step: ReadParquet, sample: Sample) -> FoundColumns:
    parts = parts_of(step, sample.path, name=sample.name, size=_PARQUET_BYTES)  # a damaged file is rejected here
    columns, left_out = [], []
    with pq.ParquetFile(sample.path, coerce_int96_timestamp_unit=INT96_UNIT) as file:
        fields: Sequence[Any] = file.schema_arrow
    for field in fields:
        try:
            known = from_arrow(pa.schema([field])).fields[0]
            _require_storable(to_arrow(DataSchema((known,))).field(0))
        except SchemaError as error:
            left_out.append(SkippedField(field.name, error.message))
        else:
            columns.append(Column(known.name, known.type))
    return FoundColumns(step, tuple(columns), tuple(left_out), parts[0])


def _require_storable(field: pa.Field) -> None:
    """Check that a slice can hold a column.

    Raises:
        SchemaError: the column has no name, or its type cannot be stored.
    """
    if not field.name:
        raise SchemaError("a column needs a name")
    if pa.types.is_null(field.type):
        raise SchemaError(f"Column {field.name!r} has no type, since it has only nulls")
    LogicalHasher(pa.schema([field]), threads=1)
    system = [
        pa.field(name, wanted)
        for name, wanted in zip(DEFAULT_VOCABULARY.columns, (pa.int64(), pa.int32(), _MOMENT, _MOMENT), strict=True)
    ]
    check_slice_schema(pa.schema([*system, field.with_name("value")]), DEFAULT_VOCABULARY)
