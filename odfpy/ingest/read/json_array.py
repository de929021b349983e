"""An array of records in a JSON document, read in pieces: the text before it, its items, the text after it.

Items are separated by counting brackets outside of quotes, which is correct for valid JSON. In an invalid document, the
parser of a piece detects the error: every piece before it was correct, so it began between two items.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

import numpy as np

from odfpy.errors import BadValue
from odfpy.ingest.read.files import PIECE_SIZE, Incomplete, Piece, TextFile
from odfpy.ingest.read.json_records import Parser, Records
from odfpy.values import dataclass

_MAX_HEADER_SIZE = 1 << 26
_ESCAPED = re.compile(rb"\\.", re.DOTALL)
_STEPS = np.zeros(256, "int8")
_STEPS[list(b"[{")], _STEPS[list(b"]}")] = 1, -1
_MARKS = _STEPS != 0
_MARKS[ord('"')] = True

T = TypeVar("T")


def cut_at_item(text: bytes) -> int:
    """Return the length of the longest prefix that ends with an item, for text that begins between two items."""
    codes = np.frombuffer(_ESCAPED.sub(b"..", text) if b"\\" in text else text, "uint8")
    depth = quotes = end = 0
    for start in range(0, len(codes), PIECE_SIZE):
        part = codes[start : start + PIECE_SIZE]
        at = np.flatnonzero(_MARKS[part])
        marks = part[at]
        is_quote = marks == ord('"')
        inside = (is_quote.cumsum(dtype="int32") + quotes) & 1
        depths = (_STEPS[marks] * (1 - inside)).cumsum(dtype="int32") + depth
        closed = np.flatnonzero((depths <= 0) & (inside == 0) & (_STEPS[marks] < 0))
        below = np.flatnonzero(depths[closed] < 0)
        closed = closed[: below[0]] if len(below) else closed
        end = start + int(at[closed[-1]]) + 1 if len(closed) else end
        if len(below):
            break
        if len(at):
            depth, quotes = int(depths[-1]), int(inside[-1])
    return end


def find_in_head(file: TextFile, find: Callable[[Piece], T]) -> T:
    """Search the first bytes of a file, as many as needed.

    Args:
        file: the file.
        find: called with a piece that claims to be the last; raises BadValue if it finds nothing.

    Raises:
        BadValue: nothing is found in the file, or in its first 64 MiB.
    """
    size = PIECE_SIZE
    while True:
        head = file.head(size)
        if not head.is_last:
            head = replace(head, text=head.text[: _whole_characters(head.text)])
        try:
            head.check_utf8()
            return find(replace(head, is_last=True))
        except BadValue as error:
            if head.is_last:
                raise
            if size >= _MAX_HEADER_SIZE:
                raise BadValue(error.message, hint=f"{error.hint} Records have to begin within 64 MiB.") from error
        size *= 8


def _whole_characters(text: bytes) -> int:
    """Return the length of the longest prefix of UTF-8 that does not end within a character."""
    end = len(text)
    while end and end > len(text) - 4 and text[end - 1] & 0xC0 == 0x80:
        end -= 1
    return end - 1 if end and text[end - 1] >= 0xC0 else len(text)


@dataclass(frozen=True, slots=True)
class JsonArray:
    """An array of records: the document itself, or a value below keys.

    Attributes:
        start: offset of the first byte after the opening bracket.
        keys: keys of the path to the array.
    """

    start: int
    keys: Sequence[str]

    @classmethod
    def of(cls, file: TextFile, keys: Sequence[str]) -> JsonArray | None:
        """Find the array; return None for an empty file.

        Raises:
            BadValue: the document has no such array.
        """
        start = find_in_head(file, lambda head: ArrayParser(head).header(keys))
        return None if start is None else cls(start, keys)

    def parse(self, piece: Piece) -> Records:
        """Return the items of a piece, whose end was determined by `cut_at_item`.

        Raises:
            BadValue: the piece is not JSON, or has an item that is not an object.
            Incomplete: the array ends in the piece, but the piece is not the last.
        """
        piece.check_utf8()
        parser = ArrayParser(replace(piece, is_last=True))
        return parser.items(lambda at: parser.tail(at, self.keys), is_first=self.begins(piece), is_last=piece.is_last)

    def begins(self, piece: Piece) -> bool:
        """Return whether a piece is the first."""
        return piece.start == self.start


class ArrayBegins(Exception):
    """Raised with the position of the array in the text."""

    def __init__(self, at: int) -> None:
        super().__init__(at)
        self.at = at


class ArrayParser(Parser):
    """Parser of a document in parts."""

    def header(self, keys: Sequence[str]) -> int | None:
        """Return the byte offset of the first item; None if the document is empty."""
        at = self._skip(0)
        if at == len(self._text):
            return None
        try:
            self._descend(at, keys, [])
        except ArrayBegins as found:
            return self._bytes_before(found.at)
        raise self._nothing_under(keys)

    def items(self, tail: Callable[[int], None], *, is_first: bool, is_last: bool) -> Records:
        """Return the items of a piece.

        Args:
            tail: parses the text after the array, given its position.
            is_first: whether the array begins in the piece.
            is_last: whether the piece is the last of the document.
        """
        at = self._skip(0)
        while at < len(self._text) or is_last:
            if self._text[at : at + 1] == "]":
                if not is_last:
                    raise Incomplete
                tail(at + 1)
                break
            if not is_first:
                at = self._expect(at, ",", "a comma or the end of the array is missing")
            at, is_first = self._skip(self._record(at)), False
        return self._records()

    def tail(self, at: int, keys: Sequence[str]) -> None:
        """Check that all objects around the array are closed after it, and that nothing follows."""
        for key in reversed(keys):
            at = self._rest_of_object(at, partial(self._other, key))
        self._end(at)

    def _items(self, at: int, path: list[str]) -> int:
        raise ArrayBegins(self._open_array(at, path))

    def _other(self, taken: str, key: str, start: int) -> int:
        if key == taken:
            raise self._error(start, f"key {key!r} occurs twice")
        return self._value(start)[1]

    def _rest_of_object(self, at: int, take: Callable[[str, int], int]) -> int:
        """Parse the remaining members of an object, from the position after one of them; see `_members`."""
        end = self._skip(at)
        if self._text[end : end + 1] == "}":
            return end + 1
        if self._text[self._expect(end, ",", "a comma or the end of the object is missing") :].startswith("}"):
            raise self._error(end, "a comma before the end of the object")
        return self._members(end, take)

    def _end(self, at: int) -> None:
        if self._skip(at) < len(self._text):
            raise self._error(self._skip(at), "something follows after the end of the document")

    def _bytes_before(self, at: int) -> int:
        return len(self._text[:at].encode())
