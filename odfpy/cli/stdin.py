"""Standard input as text: UTF-8, whatever the locale says."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from odfpy.errors import UsageError


def text_of_stdin() -> str:
    """Read all of it.

    Raises:
        UsageError: it is not text.
    """
    return _decoded(sys.stdin.buffer.read())


def line_of_stdin(longest: int = 16_384) -> str:
    """Read the next line, without its end; nothing behind the last one.

    Args:
        longest: bytes of it at most.

    Raises:
        UsageError: it is not text.
    """
    return _decoded(sys.stdin.buffer.readline(longest)).rstrip("\r\n")


def lines_of_stdin() -> Iterator[str]:
    """Yield its lines, without their ends; raises as above."""
    for line in sys.stdin.buffer:
        yield _decoded(line).rstrip("\r\n")


def _decoded(data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UsageError("Standard input is not text in UTF-8", hint="`iconv -t utf-8` converts it.") from None
