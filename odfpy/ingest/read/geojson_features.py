"""The features of GeoJSON documents (RFC 7946) as records: their properties, and their geometry as a text.

A feature has `properties` and a `geometry`; either may be null. What else it has (`id`, `bbox`, members of others) is
no part of the record, as in the reference implementation. A property that is called `geometry` itself is an error,
since one of the two would be lost.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from odfpy.errors import BadValue
from odfpy.ingest.read.files import PIECE_SIZE, Incomplete, Piece, TextFile
from odfpy.ingest.read.geometry_text import NoText, geometry_text
from odfpy.ingest.read.json_columns import to_json
from odfpy.ingest.read.json_records import Parser, Records, members_of
from odfpy.ingest.read.typed import shorten

GEOMETRY = "geometry"
_LARGEST_HEADER = 1 << 26
_FEATURE_HINT = "Features have the type Feature, `properties` and a `geometry`, which may be null."
_COLLECTION_HINT = "GeoJson reads one FeatureCollection; features one a line are read by NdGeoJson."
_SHOWN = 20
_ESCAPED = re.compile(rb"\\.", re.DOTALL)
_STEPS = np.zeros(256, "int8")
_STEPS[list(b"[{")], _STEPS[list(b"]}")] = 1, -1

_LONGEST_PLAIN = 18  # characters of an integer that certainly has 64 bits
_EXPONENTS = ("e-", "e+")  # as Python writes them, and the reference does not


def _plain_integer(text: str) -> int:
    if len(text) > _LONGEST_PLAIN or text == "-0":
        raise ValueError(text)
    return int(text)


def _refuse(constant: str) -> float:
    raise ValueError(constant)


_DECODER = json.JSONDecoder(parse_int=_plain_integer, parse_constant=_refuse, object_pairs_hook=members_of)
_ENCODER = json.JSONEncoder(sort_keys=True, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def parse_feature_series(piece: Piece) -> Records:
    """All features of a series, one a line or with any white space between them.

    Raises:
        BadValue: a record is no JSON, or no feature; the message names its line.
        Incomplete: the piece ends within a record and is not the last.
    """
    return _FeatureParser(piece).series()


# --- Collections -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Collection:
    """A file with a feature collection.

    Attributes:
        start: offset of the first byte after the bracket that opens the array of features.
        keys: members of the collection that stand before it.
    """

    start: int
    keys: Sequence[str]

    @classmethod
    def of(cls, file: TextFile) -> Collection | None:
        """Find the array of features; None for a file with nothing in it.

        Raises:
            BadValue: there is none.
        """
        size = PIECE_SIZE
        while True:
            head = file.head(size)
            if not head.is_last:
                head = replace(head, text=head.text[: _whole_characters(head.text)])
            try:
                head.check_utf8()
                return _CollectionParser(replace(head, is_last=True)).header()
            except BadValue:
                if head.is_last or size >= _LARGEST_HEADER:
                    raise
            size *= 8

    def parse(self, piece: Piece) -> Records:
        """The features in a piece of the file that `cut_at_feature` has cut.

        Raises:
            BadValue: the piece is no JSON, or has something that is no feature.
            Incomplete: the array ends in the piece, but the piece is not the last.
        """
        piece.check_utf8()
        return _CollectionParser(replace(piece, is_last=True)).features(self, is_last=piece.is_last)


def cut_at_feature(text: bytes) -> int:
    """Length of the longest prefix that ends with a feature, given text that begins between two features."""
    codes = np.frombuffer(_ESCAPED.sub(b"..", text) if b"\\" in text else text, "uint8")
    depth = quotes = end = 0
    for start in range(0, len(codes), PIECE_SIZE):
        part = codes[start : start + PIECE_SIZE]
        counts = (part == ord('"')).cumsum(dtype="int32") + quotes
        steps = np.where(counts % 2 == 1, 0, _STEPS[part])
        depths = steps.cumsum(dtype="int32") + depth
        closed = np.flatnonzero((depths <= 0) & (steps < 0))
        below = np.flatnonzero(depths[closed] < 0)
        closed = closed[: below[0]] if len(below) else closed
        end = start + int(closed[-1]) + 1 if len(closed) else end
        if len(below):
            break
        depth, quotes = int(depths[-1]), int(counts[-1])
    return end


def _whole_characters(text: bytes) -> int:
    """Length of a prefix of UTF-8 that does not end within a character."""
    end = len(text)
    while end and end > len(text) - 4 and text[end - 1] & 0xC0 == 0x80:
        end -= 1
    return end - 1 if end and text[end - 1] >= 0xC0 else len(text)


# --- Parsers ---------------------------------------------------------------------------------------------------------


class _FeatureParser(Parser):
    def _record(self, at: int) -> int:
        """Keep the feature at a position; returns where it ends."""
        self._expect(at, "{", f"{shorten(self._text[at : at + _SHOWN])} is no object", _FEATURE_HINT)
        members: dict[str, Any] = {}

        def take(key: str, start: int) -> int:
            if key in members:
                raise self._error(start, f"the feature has {shorten(key)} twice")
            if key == GEOMETRY:
                members[key], end = self._geometry(start)
            else:
                members[key], end = self._value(start)
            return end

        end = self._members(at, take)
        if members.get("type") != "Feature":
            found = members.get("type")
            what = f"is {shorten(found)}" if isinstance(found, str) else "has no type"
            raise self._error(at, f"this {what} and no Feature", _FEATURE_HINT)
        for key in ("properties", GEOMETRY):
            if key not in members:
                raise self._error(at, f"the feature has no `{key}`", _FEATURE_HINT)
        properties = members["properties"] if members["properties"] is not None else {}
        if not isinstance(properties, dict):
            raise self._error(at, "the properties of the feature are no object", _FEATURE_HINT)
        if GEOMETRY in properties:
            raise self._error(
                at,
                f"the feature has a property {GEOMETRY!r}, the name of the column of its geometry",
                "Give the property another name in a Pipe step.",
            )
        self._objects.append({**properties, GEOMETRY: members[GEOMETRY]})
        self._starts.append(at)
        return end

    def _geometry(self, at: int) -> tuple[str | None, int]:
        """The text of the geometry at a position, and where that ends; by the library where that writes the same."""
        try:
            value, end = _DECODER.raw_decode(self._text, at)
            text = _ENCODER.encode(value)
            if isinstance(value, dict) and not any(exponent in text for exponent in _EXPONENTS):
                return text, end
        except (ValueError, TypeError, RecursionError):
            pass  # the slow way says what is wrong, if anything is
        value, end = self._value(at)
        if value is None:
            return None, end
        if not isinstance(value, dict):
            raise self._error(at, "the geometry of the feature is no object", _FEATURE_HINT)
        try:
            return geometry_text(value), end
        except NoText as error:
            raise self._error(at, f"the geometry has no exact text: {error}") from error


class _ArrayFound(Exception):
    """The array of features begins, at an offset in the text."""

    def __init__(self, at: int) -> None:
        super().__init__(at)
        self.at = at


class _CollectionParser(_FeatureParser):
    """A collection in parts: what stands before the features, the features, what stands after them."""

    def header(self) -> Collection | None:
        at = self._skip(0)
        if at == len(self._text):
            return None
        self._expect(at, "{", "the document is no object", _COLLECTION_HINT)
        keys: list[str] = []

        def take(key: str, start: int) -> int:
            if key == "features":
                raise _ArrayFound(self._expect(start, "[", "`features` is no array", _COLLECTION_HINT))
            return self._member(key, start, keys)

        try:
            self._members(at, take)
        except _ArrayFound as found:
            return Collection(len(self._text[: found.at].encode()), keys)
        raise self._error(at, "the document has no `features`", _COLLECTION_HINT)

    def features(self, collection: Collection, *, is_last: bool) -> Records:
        at = self._skip(0)
        is_first = self._piece.start == collection.start
        while at < len(self._text) or is_last:
            if self._text[at : at + 1] == "]":
                if not is_last:
                    raise Incomplete
                self._tail(at + 1, list(collection.keys))
                break
            if not is_first:
                at = self._expect(at, ",", "a comma or the end of the array is missing")
            at, is_first = self._skip(self._record(at)), False
        return self._records()

    def _tail(self, at: int, keys: list[str]) -> None:
        end = self._skip(at)
        if self._text[end : end + 1] == "}":
            end += 1
        else:
            self._expect(end, ",", "a comma or the end of the object is missing")
            if self._text[self._skip(end + 1) :].startswith("}"):
                raise self._error(end, "a comma before the end of the object")
            end = self._members(end, lambda key, start: self._member(key, start, keys))
        if self._skip(end) < len(self._text):
            raise self._error(self._skip(end), "something follows after the end of the document")
        if "type" not in keys:
            raise self._error(at, "the document has no `type`", _COLLECTION_HINT)

    def _member(self, key: str, start: int, keys: list[str]) -> int:
        """Look at a member of the collection other than the first `features`; returns where its value ends."""
        value, end = self._value(start)
        if key == "features" or (key == "type" and key in keys):
            raise self._error(start, f"key {key!r} is there twice")
        if key == "type" and value != "FeatureCollection":
            raise self._error(start, f"the document is a {shorten(to_json(value))}", _COLLECTION_HINT)
        keys.append(key)
        return end
