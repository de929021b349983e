"""Reading CSV (ODF specification, "ReadStep: Csv").

Columns are matched by position, so that a schema may rename them. However, a header with exactly the names of the
schema in another order is matched by name, and a header with some of the names in other positions is rejected. All
columns are first read as text, by Arrow and in parallel, and then converted column by column: as fast as reading them
typed, but exact. Only if that fails are lines counted, for the message.

Without a schema all columns are optional: strings, or with `inferSchema` the first of Bool, Int64, Float64, Date,
Timestamp and String that fits all values in the file, and the null type for a column of only nulls. Columns of a file
without header are `column_1`, `column_2`...
"""

from __future__ import annotations

import codecs
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from odfpy.chain.read_steps import ReadCsv
from odfpy.data.schemas.arrow import to_arrow
from odfpy.data.schemas.schema import DataSchema, alike_name
from odfpy.errors import IngestError, SchemaError
from odfpy.ingest.read.csv_text import (
    Dialect,
    Record,
    cut_at_record,
    problem_in,
    records,
    row_place,
    with_doubled_quotes,
)
from odfpy.ingest.read.files import PIECE_SIZE, Piece, TextFile, is_utf8, map_pieces
from odfpy.ingest.read.part import WHOLE, FilePart, parts_between
from odfpy.ingest.read.text import CastFailed, TimeFormats, parse_texts
from odfpy.ingest.read.typed import Misfit, fit_table, shorten

_T = TypeVar("_T")
_INFERRED = (pa.bool_(), pa.int64(), pa.float64(), pa.date32(), pa.timestamp("ms", "UTC"))
_SAMPLE = 20
_MAX_NAMES = 10  # of columns in a message
_MAX_BLOCK_SIZE = 2**31 - 1
_END = "\0end"  # a record of ours, appended to detect whether the quotes of the last record are closed


def read_csv(step: ReadCsv, schema: DataSchema | None, path: Path, name: str, part: FilePart = WHOLE) -> pa.Table:
    """Return the rows of a CSV file, or of a part of it.

    Args:
        step: the read step.
        schema: the schema that the source declares, None for none.
        path: the file.
        name: name of the file in messages.
        part: the part to read; all of the file by default.

    Raises:
        BadValue: a value or a line is invalid; the message names it.
        IngestError: the file cannot be read, or its columns differ from those of the schema.
        SchemaError: the schema has a type that CSV cannot represent.
        InvalidValue: an option of the step cannot be used.
    """
    formats = TimeFormats.of(step.date_format, step.timestamp_format)
    given = None if schema is None else _without_nested(to_arrow(schema))
    text = _CsvText(step, given, path, name)
    wanted = given if given is not None else _inferred(step, text, formats)

    def fit(columns: Sequence[pa.ChunkedArray], piece: Piece) -> pa.Table:
        try:
            return fit_table(columns, wanted, formats)
        except Misfit as misfit:
            raise misfit.at(row_place(piece, text.dialect, misfit.row)) from None

    return pa.concat_tables(text.each(fit, part))


def csv_parts(step: ReadCsv, schema: DataSchema | None, path: Path, name: str, size: int) -> list[FilePart]:
    """Return the parts of a CSV file that can be read independently, unless a guessed end is wrong; errors as above.

    Inferred types depend on the whole file, and another encoding can only be converted as a whole.

    Args:
        step: the read step.
        schema: the schema that the source declares, None for none.
        path: the file.
        name: name of the file in messages.
        size: wanted size of a part in bytes.
    """
    if (schema is None and step.infer_schema) or not is_utf8(step.encoding):
        return [WHOLE]
    return _CsvText(step, None if schema is None else to_arrow(schema), path, name).parts(size)


def csv_schema(step: ReadCsv, path: Path, name: str) -> pa.Schema | None:
    """Return the schema inferred for a file, or None if the step infers none; errors as above.

    Args:
        step: the read step.
        path: the file.
        name: name of the file in messages.
    """
    if not step.infer_schema:
        return None
    formats = TimeFormats.of(step.date_format, step.timestamp_format)
    return _inferred(step, _CsvText(step, None, path, name), formats)


class _CsvText:
    """A CSV file as columns of text."""

    def __init__(self, step: ReadCsv, wanted: pa.Schema | None, path: Path, name: str) -> None:
        self.dialect = Dialect.of(step)
        self._cut = partial(cut_at_record, dialect=self.dialect)
        self._file = TextFile(path, name, step.encoding)
        first = first_record(self._file, self.dialect)
        has_header = first is not None and self.dialect.header
        self._start = first.end if first is not None and has_header else 0
        self.names = wanted.names if wanted is not None else _names(first, self.dialect, name)
        self._order = _order(first.cells if first is not None and has_header else None, self.names, name)

    def each(self, work: Callable[[Sequence[pa.ChunkedArray], Piece], _T], part: FilePart = WHOLE) -> list[_T]:
        """Apply `work` to the columns, piece by piece, and return the results."""

        def read(piece: Piece) -> _T:
            columns = _texts(piece, self.dialect, len(self.names))
            return work([columns[i] for i in self._order], piece)

        pieces = self._file.pieces(part.start or self._start, self._cut, part.stop)
        return map_pieces(pieces, read, is_part=part.has_end)

    def parts(self, size: int) -> list[FilePart]:
        """Return the parts of approximately `size` bytes."""
        return parts_between(self._file.bounds(self._start, self._cut, size))


def first_record(file: TextFile, dialect: Dialect) -> Record | None:
    """Return the header, or without one the first row; None in a file without records.

    Raises:
        BadValue: the text is not UTF-8, or has an unclosed quote.
    """
    size = PIECE_SIZE
    while True:
        head = file.head(size)
        first = next(records(head.text, dialect), None)
        if head.is_last or (first is not None and first.is_closed and first.end < len(head.text)):
            break
        size *= 8
    # text after the record is validated with its own piece: the head may end within a character
    (head if first is None else replace(head, text=head.text[: first.end])).check_utf8()
    if first is not None and not first.is_closed:
        raise problem_in(head, dialect, len(first.cells))
    return first


def _without_nested(schema: pa.Schema) -> pa.Schema:
    for field in schema:
        if pa.types.is_nested(field.type):
            raise SchemaError(
                f"Column {field.name!r} cannot be read from CSV, which has no lists and structs",
                hint="Read the column as String, and parse it in the preprocessing query.",
            )
    return schema


# --- Columns ---------------------------------------------------------------------------------------------------------


def _names(first: Record | None, dialect: Dialect, name: str) -> list[str]:
    """Return the column names of a file without a schema."""
    if first is None:
        return []
    if not dialect.header:
        return [f"column_{i}" for i in range(1, len(first.cells) + 1)]
    refuse_separator_line(first.cells, name)
    repeated = [cell for cell, count in Counter(first.cells).items() if count > 1]
    if repeated or "" in first.cells:
        what = f"has {shorten(repeated[0])} twice" if repeated else "leaves a column without a name"
        raise IngestError(f"The header of {name} {what}", hint="Give the columns names with a schema in the read step.")
    return first.cells


def _order(header: Sequence[str] | None, names: Sequence[str], name: str) -> list[int]:
    """Return the index of the file's column for each name."""
    if header is None:
        return list(range(len(names)))
    if len(header) == len(names) == len(set(names)) and set(names) == set(header):
        return [header.index(wanted) for wanted in names]
    refuse_separator_line(header, name)
    if len(header) != len(names):
        missing = [wanted for wanted in names if wanted not in header]
        extra = [found for found in header if found not in names]
        raise IngestError(
            f"The header of {name} has {len(header)} column{'s' * (len(header) != 1)} where the schema has {len(names)}"
            + (f"; missing: {_some(missing)}" if missing else "")
            + (f"; not in the schema: {_some(extra)}" if extra else ""),
            hint="List all columns of the file in the schema, in their order.",
        )
    _check_places(header, names, name)
    return list(range(len(names)))


def refuse_separator_line(header: Sequence[str], name: str) -> None:
    """Reject a first line such as `sep=;`, which declares the separator to Excel.

    Raises:
        IngestError: the header would be read as a row.
    """
    if header and header[0].lower().startswith("sep="):
        raise IngestError(
            f"The first line of {name} begins with {shorten(header[0])}: it tells Excel the separator,"
            " and is no header",
            hint="Leave it out, for example by a step of `prepare`: {kind: Pipe, command: [tail, '-n', '+2']}",
        )


def _check_places(header: Sequence[str], names: Sequence[str], name: str) -> None:
    """Check that a header that is matched by position has no name of the schema in another position."""
    found = [alike_name(text) for text in header]
    for at, wanted in enumerate(names):
        if header[at].strip() == wanted:
            continue
        if wanted in header:
            other = header.index(wanted)
        elif found[at] != alike_name(wanted) and alike_name(wanted) in found:
            other = found.index(alike_name(wanted))
        else:
            continue
        unknown = [text for text in header if text not in names]
        raise IngestError(
            f"The header of {name} has {shorten(header[other])} as column {other + 1}, and {shorten(header[at])} as"
            f" column {at + 1}, which is {shorten(wanted)} in the schema; matched by position, they would be mixed up"
            + (f"; not in the schema: {_some(unknown)}" if unknown else ""),
            hint="Use the names of the header in the schema, in any order, and rename columns in the preprocessing"
            " query; or use the order of the header in the schema.",
        )


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(shorten(name) for name in names[:_MAX_NAMES])
    return shown + (f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else "")


# --- Inference -------------------------------------------------------------------------------------------------------


def _inferred(step: ReadCsv, text: _CsvText, formats: TimeFormats) -> pa.Schema:
    types = [pa.string()] * len(text.names)
    if step.infer_schema:
        found = text.each(lambda columns, _: [_Evidence.of(column, formats) for column in columns])
        types = [reduce(_Evidence.__and__, column).type for column in zip(*found, strict=True)]
    return pa.schema(list(zip(text.names, types, strict=True)))


@dataclass(frozen=True, slots=True)
class _Evidence:
    """Evidence for the type of a column, from a part of its values.

    Attributes:
        fits: types that fit all values.
        has_texts: whether there are non-null values.
        has_digits: whether any possible float has digits; words like `inf` alone make no column of numbers.
    """

    fits: tuple[pa.DataType, ...]
    has_texts: bool
    has_digits: bool

    @classmethod
    def of(cls, column: pa.ChunkedArray, formats: TimeFormats) -> _Evidence:
        fits = tuple(wanted for wanted in _INFERRED if _fits(column, wanted, formats))
        digits = pa.float64() in fits and pc.any(pc.match_substring_regex(column, "[0-9]")).as_py()
        return cls(fits, has_texts=column.null_count < len(column), has_digits=bool(digits))

    def __and__(self, other: _Evidence) -> _Evidence:
        return _Evidence(
            fits=tuple(wanted for wanted in self.fits if wanted in other.fits),
            has_texts=self.has_texts or other.has_texts,
            has_digits=self.has_digits or other.has_digits,
        )

    @property
    def type(self) -> pa.DataType:
        """The first type that fits, else text; the null type if all values are null."""
        if not self.has_texts:
            return pa.null()
        if not self.fits or (pa.types.is_floating(self.fits[0]) and not self.has_digits):
            return pa.string()
        return self.fits[0]


def _fits(column: pa.ChunkedArray, wanted: pa.DataType, formats: TimeFormats) -> bool:
    # A long integer would lose digits as a float: a column with one beyond Int64 stays text.
    if pa.types.is_floating(wanted) and pc.any(pc.match_substring_regex(column, r"^[+-]?[0-9]{16,}$")).as_py():
        return False
    try:
        for chunk in column.chunks:
            parse_texts(chunk.slice(0, _SAMPLE), wanted, formats)  # most types are excluded by the first values
            parse_texts(chunk, wanted, formats)
    except CastFailed:
        return False
    return True


# --- Text by Arrow ---------------------------------------------------------------------------------------------------


def _texts(piece: Piece, dialect: Dialect, width: int) -> Sequence[pa.ChunkedArray]:
    """Return the columns of a piece as strings, with nulls for the dialect's marker of null.

    Raises:
        BadValue: a record has a wrong number of values, unclosed quotes, or bytes that are not UTF-8.
        Incomplete: the piece ends within a record and is not the last.
    """
    text = with_doubled_quotes(piece.text, dialect)
    if text.startswith(codecs.BOM_UTF8):
        text = b"\n" + text  # Arrow drops it at the beginning of a text, but here it is part of a value
    quoting = bool(dialect.quote) and dialect.quote in text
    if quoting:
        text += b"\n" + dialect.separator.join([_END.encode()] * width) + b"\n"
    try:
        table = _parse(text, dialect, width, quoting=quoting)
    except pa.ArrowInvalid as error:
        raise problem_in(piece, dialect, width) from error
    if quoting:
        if table.num_rows == 0 or table.column(0)[-1].as_py() != _END:
            raise problem_in(piece, dialect, width)
        table = table.slice(0, table.num_rows - 1)
    columns: Sequence[pa.ChunkedArray] = table.columns
    return columns


def _parse(text: bytes, dialect: Dialect, width: int, *, quoting: bool) -> pa.Table:
    names = [str(i) for i in range(width)]
    if not text or not width:
        return pa.table({column: pa.array([], pa.string()) for column in names})
    # without threads in Arrow: `map_pieces` already has one for each piece
    read = csv.ReadOptions(column_names=names, use_threads=False, block_size=min(len(text) + 1, _MAX_BLOCK_SIZE))
    parse = csv.ParseOptions(
        delimiter=dialect.separator.decode(),
        quote_char=dialect.quote.decode() if quoting else False,
        double_quote=True,
        escape_char=False,
        newlines_in_values=quoting,
        ignore_empty_lines=True,
    )
    convert = csv.ConvertOptions(
        column_types=dict.fromkeys(names, pa.string()),
        null_values=[dialect.null_value],
        strings_can_be_null=True,
        quoted_strings_can_be_null=True,
    )
    return csv.read_csv(pa.BufferReader(text), read, parse, convert)
