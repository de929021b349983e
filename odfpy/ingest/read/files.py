"""Text files in pieces: whole records of about a megabyte each, read in parallel, with few pieces in memory at a time.

The format determines the ends of records from the bytes alone, and sometimes it has to guess (a line break in a CSV
file may be quoted). A piece that ends within a record is read again, together with the rest of the
file. Since every piece before it was correct, it began at the start of a record.
"""

from __future__ import annotations

import codecs
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, TypeVar

from odfpy.data.processors import processors
from odfpy.errors import IngestError
from odfpy.ingest.read.encodings import HEAD_SIZE, Utf8Copy, codec_of, convert, not_encoded
from odfpy.ingest.read.progress import report_rows
from odfpy.values import dataclass

PIECE_SIZE = 1 << 20
_UTF8 = ("utf-8", "utf-8-sig")

T = TypeVar("T")


class Incomplete(Exception):
    """Signals that a piece other than the last ends within a record."""


@contextmanager
def opening(name: str) -> Iterator[None]:
    """Convert errors of the operating system.

    Raises:
        IngestError: there is no such file, or it cannot be read.
    """
    try:
        yield
    except FileNotFoundError as error:
        raise IngestError(f"There is no file {name}") from error
    except OSError as error:
        raise IngestError(f"Cannot read {name}: {error.strerror or error}") from error


class TextFile:
    """A text file, as UTF-8 without byte order mark. UTF-8 input is used unchanged, without validation.

    Raises:
        InvalidValue: the encoding does not exist.
        BadValue: the text is not in the encoding.
        IngestError: the file cannot be read.
    """

    def __init__(self, path: Path, name: str, encoding: str | None = None) -> None:
        self.name = name
        self._path = path
        codec = codec_of(encoding)
        with opening(name), path.open("rb") as file:
            self._copy = None if codec in _UTF8 else Utf8Copy(file, codec, name)
            self._mark = 3 * (self._copy is None and file.read(3) == codecs.BOM_UTF8)

    def head(self, size: int) -> Piece:
        """Return the first bytes of the text."""
        with opening(self.name), self._open(0) as file:
            text = file.read(size)
            return Piece(self, 0, text, is_last=not file.read(1))

    def pieces(self, start: int, cut: Callable[[bytes], int], stop: int | None = None) -> Iterator[Piece]:
        """Yield the text from an offset on, in pieces.

        Args:
            start: offset of the first byte.
            stop: offset of the end, at a guessed end of a record; by default the end of the text.
            cut: returns the length of the longest prefix that ends with a record as far as the format can tell, else 0.
        """
        size = PIECE_SIZE
        with opening(self.name), self._open(start) as file:
            while len(block := file.read(size if stop is None else min(size, stop - start))) == size:
                end = cut(block)
                if end:
                    yield Piece(self, start, block[:end])
                    start += end
                    size = PIECE_SIZE
                else:
                    size *= 2  # otherwise a record as long as the file would be scanned repeatedly
                file.seek(self._mark + start)
            yield Piece(self, start, block, is_last=stop is None)

    def bounds(self, start: int, cut: Callable[[bytes], int], size: int) -> list[int]:
        """Return offsets that divide the text from `start` into parts of approximately `size` bytes.

        Args:
            start: offset of the first record.
            cut: returns the length of the longest prefix that ends with a record.
            size: approximate bytes of a part.
        """
        found = []
        with opening(self.name), self._open(start) as file:
            wanted = size
            while len(block := file.read(wanted)) == wanted:
                end = cut(block)
                wanted = size if end else 2 * wanted
                if end:
                    start += end
                    found.append(start)
                file.seek(self._mark + start)
        return found

    def rest(self, start: int) -> Piece:
        """Return all the text from an offset on."""
        with opening(self.name), self._open(start) as file:
            return Piece(self, start, file.read(), is_last=True)

    def lines_before(self, offset: int) -> int:
        """Return the number of physical lines that end before an offset, with LF, CR or CRLF."""
        count, last = 0, b""
        with opening(self.name), self._open(0) as file:
            while offset > 0 and (block := file.read(min(offset, PIECE_SIZE))):
                count += count_lines(block) - (last == b"\r" and block[:1] == b"\n")
                offset, last = offset - len(block), block[-1:]
        return count

    def _open(self, offset: int) -> BinaryIO:
        file = self._path.open("rb") if self._copy is None else self._copy.open()
        file.seek(self._mark + offset)
        return file


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a text file that begins where a record begins.

    Attributes:
        start: offset of the piece in the file.
        is_last: whether it is the last piece of the file.
    """

    file: TextFile
    start: int
    text: bytes
    is_last: bool = False

    def place(self, offset: int) -> str:
        """Return the file and line of an offset in the piece, for errors."""
        return f"{self.file.name}, line {1 + self.file.lines_before(self.start + offset)}"

    def check_utf8(self) -> None:
        """Check that the text is UTF-8.

        Raises:
            BadValue: the text is not UTF-8; the message names the line.
        """
        if self.text.isascii():
            return
        try:
            self.text.decode()
        except UnicodeDecodeError as error:
            head = self.file.head(HEAD_SIZE).text
            raise not_encoded(self.place(error.start), self.text, error.start, "utf-8", head) from error


def map_pieces(pieces: Iterator[Piece], work: Callable[[Piece], T], *, is_part: bool = False) -> list[T]:
    """Apply `work` to each piece in several threads, and return the results in order.

    Args:
        pieces: pieces of one file.
        work: function to apply. It may raise `Incomplete` for a piece that is not the last; it is then called with
            that piece and all following ones combined.
        is_part: whether the pieces are only a part of the file: then the rest is unavailable, and `Incomplete` is
            raised to the caller.
    """
    results: list[T] = []
    rows = 0
    threads = processors()
    waiting: deque[tuple[Piece, Future[T]]] = deque()
    pool = ThreadPoolExecutor(threads)
    try:
        for piece in pieces:
            waiting.append((piece, pool.submit(work, piece)))
            if len(waiting) > 2 * threads:
                results.append(waiting[0][1].result())
                waiting.popleft()
                rows = _count(rows, results[-1])
        while waiting:
            results.append(waiting[0][1].result())
            waiting.popleft()
            rows = _count(rows, results[-1])
    except Incomplete:
        if is_part:
            raise
        broken = waiting[0][0]
        pool.shutdown(cancel_futures=True)
        waiting.clear()
        results.append(work(broken.file.rest(broken.start)))
    finally:
        pool.shutdown(cancel_futures=True)
    return results


def _count(rows: int, result: object) -> int:
    """Return the number of rows so far including those of a result, and report it."""
    more: int = getattr(result, "num_rows", 0)
    if more:
        report_rows(rows + more)
    return rows + more


def in_turn(pieces: Iterator[Piece], work: Callable[[Piece], T], *, is_part: bool = False) -> Iterator[T]:
    """Apply `work` to each piece sequentially, and yield the results.

    Like `map_pieces`, but only one piece is held at a time. It is faster for work in pure Python, where threads only
    wait for each other.

    Args:
        pieces: the pieces of a file, in order.
        work: function to apply.
        is_part: whether more of the file may follow the last piece.
    """
    rows = 0
    for piece in pieces:
        try:
            result = work(piece)
        except Incomplete:
            if is_part:
                raise
            yield work(piece.file.rest(piece.start))
            return
        rows = _count(rows, result)
        yield result


def count_lines(text: bytes) -> int:
    """Count line ends in a text: LF, CR or CRLF."""
    if b"\r" not in text:
        return text.count(b"\n")
    return text.count(b"\n") + text.count(b"\r") - text.count(b"\r\n")


def cut_at_line(text: bytes) -> int:
    """Return the length of the longest prefix that ends with a line."""
    return text.rfind(b"\n") + 1


def rewrite_as_utf8(path: Path, name: str, encoding: str | None, target: Path) -> None:
    """Write the text of a file to another file as UTF-8.

    Args:
        path: the file.
        name: name of the file in messages.
        encoding: name of the encoding, None for UTF-8.
        target: the file to write.

    Raises: as `TextFile`.
    """
    codec = codec_of(encoding)
    with opening(name), path.open("rb") as source, target.open("wb") as copy:
        copy.write(codecs.BOM_UTF8)  # so that a second mark, which is text, is not taken for the mark
        convert(source, copy, codec, name)


def is_utf8(encoding: str | None) -> bool:
    """Return whether a file in an encoding is read unchanged, so that parts of it can be read.

    Raises:
        InvalidValue: the encoding does not exist.
    """
    return codec_of(encoding) in _UTF8
