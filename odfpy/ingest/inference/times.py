"""Dates and times not in RFC 3339: one format for all columns of a file, if it is unambiguous."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from odfpy.data.schemas import schema as odf
from odfpy.data.schemas.arrow import to_arrow_type
from odfpy.data.schemas.schema import DataType
from odfpy.ingest.inference.types import MOMENT, InferredType, fits
from odfpy.ingest.read.text import TimeFormats, parse_texts

_DAYS: Final = (
    "%Y/%m/%d", "%Y.%m.%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y", "%d %b %Y", "%d-%b-%Y",
    "%d. %b %Y", "%b %d, %Y", "%b %d %Y", "%d.%m.%y", "%d/%m/%y", "%m/%d/%y",
)  # fmt: skip
_CLOCKS: Final = (
    "%H:%M", "%H:%M:%S", "%H:%M:%S%.f", "%I:%M %p", "%I:%M:%S %p", "%H:%M:%S%z", "%H:%M:%S %z",
)  # fmt: skip
_MOMENTS: Final = (
    *(f"{day} {clock}" for day in ("%Y-%m-%d", *_DAYS) for clock in _CLOCKS),
    *(f"{day}, {clock}" for day in _DAYS for clock in _CLOCKS),
    "%a, %d %b %Y %H:%M:%S %z",
    "%d/%b/%Y:%H:%M:%S %z",
)


@dataclass(frozen=True, slots=True)
class WrittenTimes:
    """Text columns that contain dates or timestamps.

    Attributes:
        date_format: format of all dates in the file; None for RFC 3339.
        timestamp_format: format of all timestamps.
        guesses: new guesses, by column.
    """

    date_format: str | None = None
    timestamp_format: str | None = None
    guesses: Mapping[str, InferredType] = field(default_factory=dict)


def written_times(texts: Mapping[str, pa.ChunkedArray], known: Mapping[str, InferredType]) -> WrittenTimes:
    """Find the times among columns of text.

    A format is chosen if every value of a column matches it, and no other format gives other days. A file has one
    format for dates and one for timestamps, so one column may resolve an ambiguity in another.

    Args:
        texts: columns of text, by name.
        known: guesses so far. If a column already has times in RFC 3339, no other format of that type is searched.
    """
    guesses: dict[str, InferredType] = {}
    formats: dict[type, str | None] = {}
    for wanted, candidates in ((odf.Date(), _DAYS), (MOMENT, _MOMENTS)):
        if any(type(guess.type) is type(wanted) for guess in known.values()):
            continue
        open_ = {
            name: column
            for name, column in texts.items()
            if isinstance(known[name].type, odf.String) and name not in guesses and _may_be_times(column)
        }
        possible = {
            name: found for name, column in open_.items() if (found := list(_fitting(column, wanted, candidates)))
        }
        chosen = _chosen(open_, possible, wanted)
        formats[type(wanted)] = chosen
        for name, found in possible.items():
            if chosen in found:
                guesses[name] = InferredType(wanted, None if wanted == odf.Date() else _zone_remark(chosen))
            else:
                shown = " or ".join(found)
                guesses[name] = InferredType(
                    odf.String(), f"text: these could be times, {shown}, but it is not certain"
                )
    return WrittenTimes(formats.get(odf.Date), formats.get(odf.Timestamp), guesses)


def _zone_remark(form: str | None) -> str | None:
    return None if form is not None and "%z" in form else "without a zone in the data; taken for UTC"


def _may_be_times(column: pa.ChunkedArray) -> bool:
    """Return whether all texts are short and have digits: trying all formats is slow."""
    if column.null_count == len(column) or not pc.all(pc.match_substring_regex(column, "[0-9]")).as_py():
        return False
    return bool(pc.max(pc.utf8_length(column)).as_py() <= 40 and pc.min(pc.utf8_length(column)).as_py() >= 6)


def _fitting(column: pa.ChunkedArray, wanted: DataType, candidates: tuple[str, ...]) -> Iterator[str]:
    first = column.slice(0, 1) if column[0].is_valid else column.drop_null().slice(0, 1)
    for form in candidates:
        formats = TimeFormats.of(form, form)
        if fits(first, wanted, formats) and fits(column, wanted, formats):
            yield form


def _chosen(texts: Mapping[str, pa.ChunkedArray], possible: Mapping[str, list[str]], wanted: DataType) -> str | None:
    """Return the format that fits most columns, among those that are unambiguous for at least one column."""
    certain = Counter(
        form for name, found in possible.items() if _is_one_reading(texts[name], found, wanted) for form in found[:1]
    )
    if not certain:
        return None
    fitting = Counter(form for found in possible.values() for form in found if form in certain)
    most = max(fitting.values())
    return next(form for form, count in fitting.items() if count == most)


def _is_one_reading(column: pa.ChunkedArray, forms: list[str], wanted: DataType) -> bool:
    arrow = to_arrow_type(wanted)
    whole = column.combine_chunks()
    whole = whole.chunk(0) if isinstance(whole, pa.ChunkedArray) else whole
    readings = [parse_texts(whole, arrow, TimeFormats.of(form, form)) for form in forms]
    return all(reading.equals(readings[0]) for reading in readings[1:])
