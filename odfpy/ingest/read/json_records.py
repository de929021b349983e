"""The records of JSON documents: slow, but with the original notation of numbers and the position of every record.

A document is a series of objects (NdJson: one per line, though any white space may separate them), or has an array of
objects (Json), possibly below a path of keys. A duplicate key in an object fits no type, since one of its values would
be lost.
"""

from __future__ import annotations

import codecs
import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from odfpy.errors import BadValue
from odfpy.ingest.read.files import Incomplete, Piece
from odfpy.ingest.read.typed import shorten
from odfpy.values import dataclass

_FIRST: Final = 100
_HEAD: Final = 1 << 16
"""Maximum number of records, and of bytes, that are inspected for names of members."""

_SPACE = re.compile(r"[ \t\r\n]*")


class Number(str):
    """A number in its original notation, distinct from a string."""

    __slots__ = ()


class Repeated:
    """Represents the values of a duplicate key in an object."""


REPEATED = Repeated()


@dataclass(frozen=True, slots=True)
class Records:
    """Objects with their positions.

    Attributes:
        objects: members by key; numbers are `Number`.
        place: returns file and line of the record with an index.
    """

    objects: Sequence[dict[str, Any]]
    place: Callable[[int], str]


def member_names(path: Path) -> frozenset[str]:
    """Return the member names of the first records in a file with one record per line; none if it is no such file."""
    found: set[str] = set()
    with suppress(OSError, ValueError, RecursionError), path.open("rb") as file:
        for line in file.read(_HEAD).removeprefix(codecs.BOM_UTF8).splitlines()[:_FIRST]:
            record = json.loads(line) if line.strip() else None
            found.update(record if isinstance(record, dict) else ())
    return frozenset(found)


def parse_series(piece: Piece) -> Records:
    """Return all objects of a series.

    Raises:
        BadValue: a record is not JSON, or not an object; the message names its line.
        Incomplete: the piece ends within a record and is not the last.
    """
    return Parser(piece).series()


def parse_array(piece: Piece, keys: Sequence[str]) -> Records:
    """Return all objects of the array that is the document, or its value below the keys.

    Raises:
        BadValue: the document is not JSON or has no such array, or an item is not an object.
    """
    return Parser(piece).array(keys)


class Parser:
    """Parser of a document in one pass. Python's decoder parses the values; this class parses the path to them."""

    def __init__(self, piece: Piece) -> None:
        self._piece = piece
        self._text = piece.text.decode()
        self._objects: list[dict[str, Any]] = []
        self._starts: list[int] = []
        self._found = False
        self._decoder = json.JSONDecoder(
            parse_int=Number, parse_float=Number, parse_constant=Number, object_pairs_hook=members_of
        )

    def series(self) -> Records:
        at = self._skip(0)
        while at < len(self._text):
            at = self._skip(self._record(at))
        return self._records()

    def array(self, keys: Sequence[str]) -> Records:
        at = self._skip(0)
        if at < len(self._text):
            at = self._skip(self._descend(at, keys, []))
            if at < len(self._text):
                raise self._error(at, "something follows after the end of the document")
            if not self._found:
                raise self._nothing_under(keys)
        return self._records()

    def _nothing_under(self, keys: Sequence[str]) -> BadValue:
        return self._error(0, f"there is nothing under {'.'.join(keys)!r}", "Correct `subPath`.")

    def _records(self) -> Records:
        return Records(self._objects, lambda row: self._place(self._starts[row]))

    def _record(self, at: int) -> int:
        """Add the object at a position; return its end."""
        value, end = self._value(at)
        if not isinstance(value, dict):
            raise self._error(at, f"{shorten(self._text[at:end])} is not an object", "Each record is a JSON object.")
        self._objects.append(value)
        self._starts.append(at)
        return end

    def _value(self, at: int) -> tuple[Any, int]:
        try:
            return self._decoder.raw_decode(self._text, at)
        except json.JSONDecodeError as error:
            if not self._piece.is_last and error.pos >= len(self._text.rstrip()) - 1:
                raise Incomplete from error
            raise self._error(at, f"this is not JSON: {error.msg[:1].lower()}{error.msg[1:]}") from error
        except RecursionError as error:
            raise self._error(at, "values are nested too deeply") from error

    def _descend(self, at: int, keys: Sequence[str], path: list[str]) -> int:
        """Descend to the array below the keys and add its items; return the end of the value at the position."""
        if not keys:
            return self._items(at, path)
        self._expect(at, "{", f"{_say(path)} is not an object", "Correct `subPath`.")

        def take(key: str, start: int) -> int:
            if key != keys[0]:
                return self._value(start)[1]
            if self._found:
                raise self._error(start, f"key {key!r} occurs twice")
            return self._descend(start, keys[1:], [*path, key])

        return self._members(at, take)

    def _members(self, at: int, take: Callable[[str, int], int]) -> int:
        """Parse the object at a position; `take` is called with each key and the position of its value, and returns the
        end of the value. Return the end of the object.
        """
        end = self._skip(at + 1)
        if self._text[end : end + 1] == "}":
            return end + 1
        while True:
            if self._text[end : end + 1] != '"':
                raise self._error(end, "a key in quotes is missing")
            key, end = self._value(end)
            end = self._expect(self._skip(end), ":", "a key without a value")
            end = self._skip(take(key, end))
            if self._text[end : end + 1] == "}":
                return end + 1
            end = self._expect(end, ",", "a comma or the end of the object is missing")

    def _open_array(self, at: int, path: list[str]) -> int:
        """Return the position of the first item of an array."""
        return self._expect(
            at,
            "[",
            f"{_say(path)} is not an array",
            "Name the array of records with `subPath`, or read the file as NdJson.",
        )

    def _items(self, at: int, path: list[str]) -> int:
        end = self._open_array(at, path)
        self._found = True
        if self._text[end : end + 1] == "]":
            return end + 1
        while True:
            end = self._skip(self._record(end))
            if self._text[end : end + 1] == "]":
                return end + 1
            end = self._expect(end, ",", "a comma or the end of the array is missing")

    def _expect(self, at: int, wanted: str, otherwise: str, hint: str | None = None) -> int:
        if self._text[at : at + 1] != wanted:
            raise self._error(at, otherwise, hint)
        return self._skip(at + 1)

    def _skip(self, at: int) -> int:
        match = _SPACE.match(self._text, at)
        return match.end() if match else at

    def _place(self, at: int) -> str:
        return self._piece.place(len(self._text[:at].encode()))

    def _error(self, at: int, what: str, hint: str | None = None) -> BadValue:
        if not self._piece.is_last and at >= len(self._text.rstrip()):
            raise Incomplete
        return BadValue(
            f"{self._place(at)}: {what}",
            hint=hint or "Check the file with a JSON tool; it may be truncated.",
        )


def members_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the members of an object by key; `REPEATED` represents the values of a duplicate key."""
    members = dict(pairs)
    if len(members) < len(pairs):
        counts = Counter(key for key, _ in pairs)
        members |= {key: REPEATED for key, count in counts.items() if count > 1}
    return members


def _say(path: Sequence[str]) -> str:
    return repr(".".join(path)) if path else "the document"
