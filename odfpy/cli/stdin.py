"""Standard input as text: UTF-8, regardless of the locale."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from odfpy.errors import UsageError


def text_of_stdin() -> str:
    """Read all of standard input.

    Raises:
        UsageError: the input is not text.
    """
    return _decoded(sys.stdin.buffer.read())


def line_of_stdin(longest: int = 16_384) -> str:
    """Read the next line, without its line ending. Return an empty string at the end of input.

    Args:
        longest: maximum number of bytes.

    Raises:
        UsageError: the line is not text.
    """
    return _decoded(sys.stdin.buffer.readline(longest)).rstrip("\r\n")


def lines_of_stdin() -> Iterator[str]:
    """Yield the lines, without line endings.

    Raises:
        UsageError: a line is not text.
    """
    for line in sys.stdin.buffer:
        yield _decoded(line).rstrip("\r\n")


def _decoded(data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UsageError("Standard input is not text in UTF-8", hint="`iconv -t utf-8` converts it.") from None
