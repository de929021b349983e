"""The features of GeoJSON documents (RFC 7946) as records: their properties, and their geometry as a text.

A feature has `properties` and a `geometry`; either may be null. Its other members (`id`, `bbox`, foreign members) are
not part of the record, as in the reference implementation. A property with the name `geometry` is an error, since one
of the two would be lost.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from odfpy.ingest.read.files import Piece, TextFile
from odfpy.ingest.read.geo.geometry_text import NoText, geometry_text
from odfpy.ingest.read.json_array import ArrayBegins, ArrayParser, find_in_head
from odfpy.ingest.read.json_records import Parser, Records, members_of
from odfpy.ingest.read.typed import shorten

GEOMETRY = "geometry"
_FEATURE_HINT = "Features have the type Feature, `properties` and a `geometry`, which may be null."
_COLLECTION_HINT = "GeoJson reads one FeatureCollection; for one feature per line, use NdGeoJson."
_SHOWN = 20
_MAX_PLAIN_LENGTH = 18  # digits of an integer that certainly fits into 64 bits
_EXPONENTS = ("e-", "e+")  # as Python writes them, but the reference does not


def _plain_integer(text: str) -> int:
    if len(text) > _MAX_PLAIN_LENGTH or text == "-0":
        raise ValueError(text)
    return int(text)


def _refuse(constant: str) -> float:
    raise ValueError(constant)


_DECODER = json.JSONDecoder(parse_int=_plain_integer, parse_constant=_refuse, object_pairs_hook=members_of)
_ENCODER = json.JSONEncoder(sort_keys=True, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def parse_feature_series(piece: Piece) -> Records:
    """Return all features of a series, one per line or separated by any white space.

    Raises:
        BadValue: a record is not JSON, or not a feature; the message names its line.
        Incomplete: the piece ends within a record and is not the last.
    """
    return _FeatureParser(piece).series()


# --- Collections -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Collection:
    """A file with a feature collection.

    Attributes:
        start: offset of the first byte after the bracket that opens the array of features.
        keys: members of the collection before the features.
    """

    start: int
    keys: Sequence[str]

    @classmethod
    def of(cls, file: TextFile) -> Collection | None:
        """Find the array of features; return None for an empty file.

        Raises:
            BadValue: the document is not a feature collection.
        """
        return find_in_head(file, lambda head: _CollectionParser(head).collection())

    def parse(self, piece: Piece) -> Records:
        """Return the features of a piece, whose end was determined by `cut_at_item`.

        Raises:
            BadValue: the piece is not JSON, or has an item that is not a feature.
            Incomplete: the array ends in the piece, but the piece is not the last.
        """
        piece.check_utf8()
        parser = _CollectionParser(replace(piece, is_last=True))
        return parser.items(
            lambda at: parser.after(at, list(self.keys)), is_first=piece.start == self.start, is_last=piece.is_last
        )


# --- Parsers ---------------------------------------------------------------------------------------------------------


class _FeatureParser(Parser):
    def _record(self, at: int) -> int:
        """Add the feature at a position; return its end."""
        self._expect(at, "{", f"{shorten(self._text[at : at + _SHOWN])} is not an object", _FEATURE_HINT)
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
            raise self._error(at, f"this {what}, not a Feature", _FEATURE_HINT)
        for key in ("properties", GEOMETRY):
            if key not in members:
                raise self._error(at, f"the feature has no `{key}`", _FEATURE_HINT)
        properties = members["properties"] if members["properties"] is not None else {}
        if not isinstance(properties, dict):
            raise self._error(at, "the properties of the feature are not an object", _FEATURE_HINT)
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
        """Return the text of the geometry at a position, and its end; use the library if it writes the same text."""
        try:
            value, end = _DECODER.raw_decode(self._text, at)
            text = _ENCODER.encode(value)
            if isinstance(value, dict) and not any(exponent in text for exponent in _EXPONENTS):
                return text, end
        except (ValueError, TypeError, RecursionError):
            pass  # the slow path reports the error, if any
        value, end = self._value(at)
        if value is None:
            return None, end
        if not isinstance(value, dict):
            raise self._error(at, "the geometry of the feature is not an object", _FEATURE_HINT)
        try:
            return geometry_text(value), end
        except NoText as error:
            raise self._error(at, f"the geometry has no exact text: {error}") from error


class _CollectionParser(_FeatureParser, ArrayParser):
    """Parser of a collection in parts: the members before the features, the features, the members after them."""

    def collection(self) -> Collection | None:
        at = self._skip(0)
        if at == len(self._text):
            return None
        self._expect(at, "{", "the document is not an object", _COLLECTION_HINT)
        keys: list[str] = []

        def take(key: str, start: int) -> int:
            if key == "features":
                raise ArrayBegins(self._expect(start, "[", "`features` is not an array", _COLLECTION_HINT))
            return self._member(key, start, keys)

        try:
            self._members(at, take)
        except ArrayBegins as found:
            return Collection(self._bytes_before(found.at), keys)
        raise self._error(at, "the document has no `features`", _COLLECTION_HINT)

    def after(self, at: int, keys: list[str]) -> None:
        """Check that the collection is closed and has its type; `at` is the position after its features."""
        self._end(self._rest_of_object(at, lambda key, start: self._member(key, start, keys)))
        if "type" not in keys:
            raise self._error(at, "the document has no `type`", _COLLECTION_HINT)

    def _member(self, key: str, start: int, keys: list[str]) -> int:
        """Process a member of the collection other than the first `features`; return the end of its value."""
        value, end = self._value(start)
        if key == "features" or (key == "type" and key in keys):
            raise self._error(start, f"key {key!r} occurs twice")
        if key == "type" and value != "FeatureCollection":
            raise self._error(start, f"the document is of the type {shorten(str(value))}", _COLLECTION_HINT)
        keys.append(key)
        return end
