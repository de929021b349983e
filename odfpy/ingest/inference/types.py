"""Types of text columns: the narrowest that fits all values without loss."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from odfpy.data.schemas import schema as odf
from odfpy.data.schemas.arrow import to_arrow_type
from odfpy.data.schemas.schema import DataType
from odfpy.ingest.read.text import DEFAULT_FORMATS, CastFailed, TimeFormats, parse_texts

_FIRST: Final = 20  # most types are excluded after so many values
_LEADING: Final = r"^(?:\+[0-9]|[+-]?0[0-9])"
_LONG: Final = r"^[+-]?[0-9]{16,}"
_DECIMAL: Final = r"^[+-]?[0-9]+\.([0-9]{1,4})$"
_MONEY: Final = re.compile(
    r"amount|balance|cost|fee|income|money|net|gross|paid|pay|payment|premium|price|revenue|salary|sum|tax|total|turnover"
    r"|usd|eur|gbp|chf|jpy"
)
_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_MARKERS: Final = ("NA", "N/A", "n/a", "NULL", "null", "NaN", "None", "\\N", "-", "?")
_MONEY_DIGITS: Final = 18
_CENTS: Final = 2

MOMENT: Final = odf.Timestamp(odf.TimeUnit.MILLISECOND, "UTC")
"""The type of event times, and of other times in text."""


@dataclass(frozen=True, slots=True)
class InferredType:
    """The inferred type of a column.

    Attributes:
        type: the type, never an Option.
        remark: reason for the type, if it is not obvious.
    """

    type: DataType
    remark: str | None = None


def words_of(name: str) -> list[str]:
    """Split a name into words, in lower case."""
    return [word.lower() for word in _WORD.findall(name)]


def is_money(name: str) -> bool:
    """Return whether a column's name suggests amounts of money, for which binary floats are too imprecise."""
    return any(_MONEY.fullmatch(word) for word in words_of(name))


def guess_type(texts: pa.ChunkedArray, name: str = "") -> InferredType:
    """Return the type that all texts fit; times only in RFC 3339.

    Args:
        texts: strings and nulls.
        name: name of the column, which may suggest money.
    """
    if texts.null_count == len(texts):
        return InferredType(odf.String(), "no value among the rows seen")
    if fits(texts, odf.Bool()):
        return InferredType(odf.Bool())
    if _any(texts, _LEADING) and (fits(texts, odf.Int64()) or fits(texts, odf.Float64())):
        return InferredType(odf.String(), "text, since numbers would lose their leading zeros or signs")
    if fits(texts, odf.Int64()):
        return InferredType(odf.Int64())
    if _is_fractional(texts):
        return _fraction(texts, name)
    if fits(texts, odf.Date()):
        return InferredType(odf.Date())
    if fits(texts, MOMENT):
        zoned = _all(texts, r"(?:[Zz]|[+-][0-9]{2}(?::?[0-9]{2})?)$")
        return InferredType(MOMENT, None if zoned else "without a zone in the data; taken for UTC")
    if _all(texts, r"^[+-]?[0-9]+$"):
        return InferredType(odf.String(), "text, since some numbers are beyond Int64")
    if _all(texts, r"^[+-]?[0-9.]*,[0-9]+$"):
        return InferredType(odf.String(), "text: decimal commas are not numbers here; replace them in `preprocess`")
    return InferredType(odf.String())


def _is_fractional(texts: pa.ChunkedArray) -> bool:
    """Return whether texts are numbers that floats represent exactly. Words alone, such as `inf`, are not numbers."""
    return fits(texts, odf.Float64()) and _any(texts, "[0-9]") and not _any(texts, _LONG)


def _fraction(texts: pa.ChunkedArray, name: str) -> InferredType:
    plain = texts.filter(pc.match_substring(texts, "."))
    if is_money(name) and len(plain) and _all(plain, _DECIMAL) and _all(texts, r"^[+-]?[0-9]+(?:\.[0-9]+)?$"):
        seen = pc.max(pc.utf8_length(pc.struct_field(pc.extract_regex(plain, "[.](?P<d>[0-9]+)$"), "d"))).as_py()
        exact = odf.Decimal(_MONEY_DIGITS, max(_CENTS, seen))
        if fits(texts, exact):
            return InferredType(exact, "exact, as for money; a value with more decimals is an error, Float64 takes any")
    return InferredType(odf.Float64())


def fits(texts: pa.ChunkedArray, wanted: DataType, formats: TimeFormats = DEFAULT_FORMATS) -> bool:
    """Return whether all texts are values of a type.

    Args:
        texts: strings and nulls.
        wanted: a type that is not nested.
        formats: formats of dates and timestamps.
    """
    arrow = to_arrow_type(wanted)
    try:
        for chunk in texts.chunks:
            parse_texts(chunk.slice(0, _FIRST), arrow, formats)
            parse_texts(chunk, arrow, formats)
    except CastFailed:
        return False
    return True


def null_marker(columns: Iterable[pa.ChunkedArray]) -> str | None:
    """Return the marker of null in a file, if without it text columns become columns of numbers or times.

    A file has only one marker, so there is none if the empty text is already used as such.
    """
    columns = list(columns)
    if any(column.null_count for column in columns):
        return None
    return next((marker for column in columns if (marker := marker_in(column)) is not None), None)


def marker_in(column: pa.ChunkedArray) -> str | None:
    """Return the text that keeps a text column from being a column of numbers or times."""
    if column.null_count == len(column):
        return None
    for marker in _MARKERS:
        if pc.any(pc.equal(column, marker)).as_py() and _is_typed_without(column, marker):
            return marker
    return None


def _is_typed_without(column: pa.ChunkedArray, marker: str) -> bool:
    rest = column.filter(pc.not_equal(column, marker))
    return len(rest) > 0 and not isinstance(guess_type(rest).type, odf.String)


def _any(texts: pa.ChunkedArray, pattern: str) -> bool:
    return bool(pc.any(pc.match_substring_regex(texts, pattern)).as_py())


def _all(texts: pa.ChunkedArray, pattern: str) -> bool:
    return bool(pc.all(pc.match_substring_regex(texts, pattern)).as_py())
