"""The dialect of a delimited text: separator, quote, and whether the first record is a header."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice, pairwise
from typing import Final

import pyarrow as pa

from odfpy.chain.read_steps import ReadCsv
from odfpy.data.schemas import schema as odf
from odfpy.ingest.inference.types import guess_type
from odfpy.ingest.read.csv_text import Dialect, Record, quoted_values, records

_LOOKED_AT: Final = 256 << 10  # bytes; parsed by Python
_MAX_RECORDS: Final = 500
_SEPARATORS: Final = ("\t", ";", "|", ",")
"""In order of preference: commas and spaces also occur in values, for example as decimal commas."""

_YEAR: Final = re.compile(r"(?:19|20|21)\d\d")
_MIN_YEARS: Final = 3
_MIN_SHARE: Final = 0.6  # of records
_OPENING: Final = re.compile(rb'^"', re.MULTILINE)


def dialect_of(text: bytes) -> ReadCsv:
    """Return the read step, still without a schema, that splits a text most evenly.

    Args:
        text: the beginning of a file, as UTF-8 without byte order mark, ending with a complete line.
    """
    text = _beginning(text)
    found = _unescaped(text) or next(_readings(text), None) or _uneven(text) or next(_alone(text), ReadCsv())
    if b'"' not in text and b"'" in text and _is_quoted(text, replace(found, quote="'")):
        found = replace(found, quote="'")
    return replace(found, header=has_header([record.cells for record in _some(text, found)]))


def _unescaped(text: bytes) -> ReadCsv | None:
    """Return the dialect of a text with backslashes in quoted values that escape nothing; its quotes are doubled.

    By default the backslash is the escape character, so values such as Windows paths would be damaged. If it really
    escaped quotes, text would follow a closing quote.
    """
    if b"\\" not in text:
        return None
    for step in _even(text, '"', escape=""):
        quoted = list(quoted_values(text, Dialect.of(step)))
        if any(b"\\" in value for value, _ in quoted) and not any(rest for _, rest in quoted):
            return step
    return None


def _readings(text: bytes) -> Iterator[ReadCsv]:
    """Yield the dialects in which all records have the same number of values, most likely first."""
    yield from _even(text, '"')
    if b'"' not in text:
        yield from _even(text, "'")
    if not _OPENING.search(text):
        yield from _even(text, "")  # quotes that are not quotes, such as inch marks


def _alone(text: bytes) -> Iterator[ReadCsv]:
    """Yield the dialects that read a text as a single column."""
    yield from _even(text, '"', is_alone=True)
    yield from _even(text, "", is_alone=True)


def _beginning(text: bytes) -> bytes:
    if len(text) <= _LOOKED_AT:
        return text
    cut = max(text.rfind(b"\n", 0, _LOOKED_AT), text.rfind(b"\r", 0, _LOOKED_AT)) + 1
    return text[: cut or _LOOKED_AT]


def _some(text: bytes, step: ReadCsv) -> list[Record]:
    return list(islice(records(text, Dialect.of(step)), _MAX_RECORDS))


def _even(text: bytes, quote: str, *, escape: str | None = None, is_alone: bool = False) -> Iterator[ReadCsv]:
    """Yield the separators by which all records have the same number of values: several, or one with `is_alone`.

    Args:
        text: the text.
        quote: quote character, empty for none.
        escape: escape character, empty for none; None for the default.
        is_alone: whether a record has one value.
    """
    for separator in reversed(_SEPARATORS) if is_alone else _SEPARATORS:
        step = ReadCsv(separator=separator, quote=None if quote == '"' else quote, escape=escape)
        found = _some(text, step)
        if len(found) > 1 and not found[-1].is_closed and len(text) >= _LOOKED_AT // 2:
            found = found[:-1]  # the text may be cut within the last record
        widths = {len(record.cells) for record in found}
        if len(widths) == 1 and (widths == {1}) is is_alone and all(record.is_closed for record in found):
            yield step


def _uneven(text: bytes) -> ReadCsv | None:
    """Return the separator by which most records have the same number of values; a reader reports the other records."""
    shares = {}
    for separator in reversed(_SEPARATORS):
        step = ReadCsv(separator=separator)
        widths = Counter(len(record.cells) for record in _some(text, step))
        shares[max((count for width, count in widths.items() if width > 1), default=0) / (widths.total() or 1)] = step
    best = max(shares)
    return shares[best] if best > _MIN_SHARE else None


def _is_quoted(text: bytes, step: ReadCsv) -> bool:
    """Return whether a quote opens and closes all values of a column."""
    bare = [record.cells for record in _some(text, replace(step, quote=""))]
    quoted = _some(text, step)
    if len({len(record.cells) for record in quoted}) != 1 or not all(record.is_closed for record in quoted):
        return False
    character = step.quote or "'"
    columns = zip(*bare[1:], strict=False)
    return any(
        all(len(cell) > 1 and cell[0] == cell[-1] == character for cell in column if cell) and any(column)
        for column in columns
    )


# --- The header ------------------------------------------------------------------------------------------------------


def has_header(rows: Sequence[Sequence[str]]) -> bool:
    """Return whether the first record contains names: none of its cells is a number, a truth value or a time.

    Years are names if several of them are consecutive, as in the tables of statistical offices.
    """
    if not rows or not any(cell.strip() for cell in rows[0]):
        return False
    first = [cell.strip() for cell in rows[0]]
    years = [int(cell) for cell in first if _YEAR.fullmatch(cell)]
    are_names = len(years) >= _MIN_YEARS and all(b - a == years[1] - years[0] for a, b in pairwise(years))
    values = [cell for cell in first if cell and not (are_names and _YEAR.fullmatch(cell))]
    if any(_is_value(cell) for cell in values):
        return False
    if any(any(map(_is_value, column)) for column in zip(*rows[1:], strict=False)):
        return True
    # All values are text. Names are distinct, and do not occur as values of their own columns.
    repeated = len(set(first)) < len(first)
    among_values = any(
        cell and cell in column for cell, column in zip(first, zip(*rows[1:], strict=False), strict=False)
    )
    return not (repeated or among_values)


def _is_value(cell: str) -> bool:
    return bool(cell) and not isinstance(guess_type(pa.chunked_array([[cell]])).type, odf.String)


def names_of(cells: Sequence[str]) -> list[str]:
    """Return unique, non-empty column names for the cells of a header.

    Generated names differ from those of all other cells: otherwise the reader would reject the other cell.
    """
    names: list[str] = []
    taken = {cell.strip().casefold() for cell in cells}
    for number, cell in enumerate(cells, 1):
        wanted = cell.strip() or f"column_{number}"
        name, again = wanted, 1
        while name in names or (name != cell.strip() and name.casefold() in taken):
            again += 1
            name = f"{wanted}_{again}"
        names.append(name)
    return names
