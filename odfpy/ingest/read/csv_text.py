"""The text of CSV files: dialect and records (ODF specification, "ReadStep: Csv").

A value is quoted if its first character is the quote. In a quoted value, a quote is doubled or escaped, and the escape
character is escaped by itself; before any other character it is literal, as it is in unquoted values. Lines end with
LF, CR or CRLF. Empty lines are not records.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

from odfpy.chain.read_steps import ReadCsv
from odfpy.errors import BadValue, InvalidValue
from odfpy.ingest.read.files import Incomplete, Piece, cut_at_line


@dataclass(frozen=True, slots=True)
class Dialect:
    """The dialect of a file. Characters are single ASCII ones.

    Attributes:
        quote: the quote character; empty if quotes have no meaning.
        escape: the escape character; empty for none.
        null_value: text that represents null, quoted or not.
    """

    separator: bytes = b","
    quote: bytes = b'"'
    escape: bytes = b"\\"
    header: bool = False
    null_value: str = ""

    @classmethod
    def of(cls, step: ReadCsv) -> Dialect:
        """Return the dialect for the options of a read step.

        Raises:
            InvalidValue: an option cannot be used; the message names it.
        """
        separator = _character("separator", "\t" if step.separator == "\\t" else step.separator, ",")
        quote = _character("quote", step.quote, '"')
        escape = _character("escape", step.escape, "\\")
        if separator in (b"", quote, escape):
            taken = "`quote`" if separator == quote else "`escape`"
            hint = f"It is the {taken} too: give one of them another character." if separator else "Omit it for `,`."
            raise InvalidValue(f"CSV option `separator` cannot be {separator.decode()!r}", hint=hint)
        return cls(
            separator=separator,
            quote=quote,
            escape=b"" if escape == quote or not quote else escape,
            header=bool(step.header),
            null_value=step.null_value or "",
        )


def _character(option: str, value: str | None, default: str) -> bytes:
    character = default if value is None else value
    if len(character) > 1 or not character.isascii() or character in ("\r", "\n"):
        raise InvalidValue(f"CSV option `{option}` is {value!r}, but has to be a single ASCII character")
    return character.encode()


class Record(NamedTuple):
    """A record and its position in the text.

    Attributes:
        start: offset of its first byte.
        end: offset of the first byte after its line.
        cells: values of the record.
        is_closed: whether all quotes are closed.
    """

    start: int
    end: int
    cells: list[str]
    is_closed: bool


def records(text: bytes, dialect: Dialect) -> Iterator[Record]:
    """Yield the records of a text. This is slow, and meant for headers and the location of errors."""
    cell = _patterns(dialect).cell
    at, first, cells, closed = 0, 0, [], True
    while match := cell.match(text, at):
        quoted, tail, bare, terminator = match.groups()
        value = bare if quoted is None else _unescaped(quoted, dialect) + tail
        closed = closed and (quoted is not None or not dialect.quote or not bare.startswith(dialect.quote))
        cells.append(value.decode("utf-8", "replace"))
        at = match.end()
        if terminator == dialect.separator:
            continue
        if quoted is not None or cells != [""]:
            yield Record(first, at, cells, closed)
        if not terminator:
            return
        first, cells, closed = at, [], True


def quoted_values(text: bytes, dialect: Dialect) -> Iterator[tuple[bytes, bytes]]:
    """Yield what stands between the quotes of each quoted value, and what follows them up to the next separator."""
    cell, at = _patterns(dialect).cell, 0
    while at < len(text) and (match := cell.match(text, at)):
        if match[1] is not None:
            yield match[1], match[2]
        at = match.end()


def with_doubled_quotes(text: bytes, dialect: Dialect) -> bytes:
    """Return the records of a text, rewritten without the escape character."""
    if not dialect.escape or dialect.escape not in text or dialect.quote not in text:
        return text

    def rewrite(match: re.Match[bytes]) -> bytes:
        inner = _unescaped(match[1], dialect).replace(dialect.quote, dialect.quote * 2)
        return dialect.quote + inner + match[2]

    return _patterns(dialect).quoted.sub(rewrite, text)


def cut_at_record(text: bytes, dialect: Dialect) -> int:
    """Return the length of the longest prefix that seems to end with a record.

    A line break counts as quoted if the number of quotes before it is odd. Quotes in the middle of values may make this
    wrong, but then the prefix ends within a quoted value, which its reader detects.
    """
    if not dialect.quote or dialect.quote not in text:
        return cut_at_line(text)
    if dialect.escape and dialect.escape in text:  # mask escaped characters, keep offsets
        text = _patterns(dialect).escaped.sub(b"..", text)
    end = cut_at_line(text)
    quotes = text.count(dialect.quote, 0, end)
    while quotes % 2:  # then all lines since the last quote are inside
        before = text.rfind(b"\n", 0, text.rfind(dialect.quote, 0, end)) + 1
        quotes -= text.count(dialect.quote, before, end)
        end = before
    return end


def row_place(piece: Piece, dialect: Dialect, row: int) -> str:
    """Return the file and line where the record of that index in a piece begins.

    Args:
        piece: whole records of the file.
        dialect: the dialect of the file.
        row: index of the record in the piece, from 0.
    """
    found = next((record for i, record in enumerate(records(piece.text, dialect)) if i == row), None)
    return piece.place(found.start if found else len(piece.text))


def problem_in(piece: Piece, dialect: Dialect, width: int) -> BadValue:
    """Return the error in the first record of a piece that is not UTF-8, not closed, or does not have `width` values.

    Args:
        piece: whole records of the file.
        dialect: the dialect of the file.
        width: number of values in a record.

    Raises:
        BadValue: the record is not UTF-8.
        Incomplete: a record is not closed, but the piece is not the last.
    """
    for record in records(piece.text, dialect):
        replace(piece, start=piece.start + record.start, text=piece.text[record.start : record.end]).check_utf8()
        if not record.is_closed:
            if not piece.is_last:
                raise Incomplete
            return BadValue(
                f"{piece.place(record.start)}: a value begins with {dialect.quote.decode()} and is never closed",
                hint="Close the quotes, or set `quote` to an empty text if they are not quotes in this file.",
            )
        num_cells = len(record.cells)
        if num_cells != width:
            return BadValue(
                f"{piece.place(record.start)}: {_count(num_cells, 'value')} for {_count(width, 'column')}",
                hint="Look for a missing or an extra separator, or for a value that should be in quotes.",
            )
    return BadValue(f"{piece.place(0)}: the text from here on is not CSV")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"


class _Patterns(NamedTuple):
    cell: re.Pattern[bytes]
    quoted: re.Pattern[bytes]
    escaped: re.Pattern[bytes]


@lru_cache(maxsize=64)
def _patterns(dialect: Dialect) -> _Patterns:
    """Return patterns for a cell with its terminator (groups: quoted, tail, bare, terminator); for a quoted value,
    closed or not (groups: content, closing quote); and for an escaped character.
    """
    s, q, e = (re.escape(character) for character in (dialect.separator, dialect.quote, dialect.escape))
    never = b"(?!)"
    special = e + b"[" + q + e + b"]" if e else never
    plain = b"[^" + q + e + b"]*"
    others = b"|".join([q + q, *([special, e + b"(?![" + q + e + b"])"] if e else [])])
    inner = b"(" + plain + b"(?:(?:" + others + b")" + plain + b")*)" if q else b"(" + never + b")"
    bare = b"([^" + s + b"\r\n]*)"
    closing = q + b"(?!" + q + b")" if q else never
    terminator = b"(" + s + b"|\r\n|\r|\n|\\Z)"
    return _Patterns(
        cell=re.compile(b"(?:" + q + inner + closing + bare + b"|" + bare + b")" + terminator),
        quoted=re.compile(b"(?:(?<=[" + s + b"\r\n])|\\A)" + q + inner + b"(" + closing + b"|\\Z)"),
        escaped=re.compile(special),
    )


def _unescaped(quoted: bytes, dialect: Dialect) -> bytes:
    """Return the value between quotes."""
    if dialect.escape and dialect.escape in quoted:
        return re.sub(_patterns(dialect).escaped.pattern + b"|" + re.escape(dialect.quote * 2), _last_byte, quoted)
    return quoted.replace(dialect.quote * 2, dialect.quote)


def _last_byte(match: re.Match[bytes]) -> bytes:
    return bytes(match[0][-1:])
