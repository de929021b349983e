"""Detection of missing headers in CSV files: without it, the first row or all rows might be lost silently.

An empty file has no header. In a file with rows but without a header, the first row would be taken for it. This is
detected if its values fit the types of the schema, since names of columns are not numbers or dates. Years alone do not
count, since they may be names of columns; nor do numbers that count the columns, such as hours; nor do texts, so that a
missing header in a file of texts only cannot be detected.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from pathlib import Path

import pyarrow as pa

from odfpy.chain.read_steps import ReadCsv
from odfpy.data.schemas.arrow import to_arrow
from odfpy.data.schemas.schema import DataSchema
from odfpy.errors import HeaderMissing
from odfpy.ingest.read.csv import first_record
from odfpy.ingest.read.csv_text import Dialect
from odfpy.ingest.read.files import TextFile
from odfpy.ingest.read.text import CastFailed, TimeFormats, parse_texts

_HINT = "Check that the file is complete; for files without a header, set `header: false`."
_OF_JSON = "A file with a JSON object on each line is read with `--input-format ndjson`, or by a source of kind NdJson."
_DIGIT = re.compile(r"[0-9]")
_YEAR = re.compile(r"[12][0-9]{3}")
_MAX_SHOWN = 60
_MIN_COUNTED = 4  # fewer numbers one after the other may well be values


def require_header(
    step: ReadCsv,
    schema: DataSchema | None,
    keys: Collection[str],
    path: Path,
    name: str,
    *,
    may_be_empty: bool = False,
) -> None:
    """Check that a file has a header, if its read step declares one.

    Args:
        step: the read step.
        schema: the schema of the step.
        keys: columns of the primary key.
        path: the file.
        name: name of the file in messages.
        may_be_empty: whether an empty file is permitted, since nothing can be lost.

    Raises:
        HeaderMissing: the file has no header.
        BadValue, IngestError, InvalidValue: the file cannot be read; as `read_csv`.
    """
    dialect = Dialect.of(step)
    if not dialect.header:
        return
    first = first_record(TextFile(path, name, step.encoding), dialect)
    if first is None:
        if may_be_empty:
            return
        raise HeaderMissing(f"{name} is empty, without even a header", hint=_HINT)
    if first.cells[0].lstrip().startswith("{") and first.cells[-1].rstrip().endswith("}"):
        raise HeaderMissing(f"{name} has no header: its first line is a JSON object", hint=_OF_JSON)
    if schema is not None and _is_row(first.cells, to_arrow(schema), keys, step):
        shown = dialect.separator.decode().join(first.cells)
        shown = shown if len(shown) <= _MAX_SHOWN else f"{shown[:_MAX_SHOWN]}..."
        raise HeaderMissing(f"{name} has no header: the values of its first line are a row, {shown!r}", hint=_HINT)


def _is_row(cells: Sequence[str], schema: pa.Schema, keys: Collection[str], step: ReadCsv) -> bool:
    if len(cells) != len(schema) or {cell.lower() for cell in cells} & {name.lower() for name in schema.names}:
        return False
    formats = TimeFormats.of(step.date_format, step.timestamp_format)
    typed = [
        (field, cell)
        for field, cell in zip(schema, cells, strict=True)
        if not pa.types.is_string(field.type) and not pa.types.is_nested(field.type) and cell != (step.null_value or "")
    ]
    telling = any(_DIGIT.search(cell) and (field.name in keys or not _YEAR.fullmatch(cell)) for field, cell in typed)
    if not telling or _counts_columns([cell for _, cell in typed]):
        return False
    return all(_fits(cell, field.type, formats) for field, cell in typed)


def _counts_columns(cells: Sequence[str]) -> bool:
    """Return whether the texts are 0, 1, 2... or 1, 2, 3..., such as names of hours, days and months."""
    return len(cells) >= _MIN_COUNTED and any(
        all(cell.isdecimal() and int(cell) == number for number, cell in enumerate(cells, first)) for first in (0, 1)
    )


def _fits(cell: str, wanted: pa.DataType, formats: TimeFormats) -> bool:
    try:
        parse_texts(pa.array([cell]), wanted, formats)
    except CastFailed:
        return False
    return True
