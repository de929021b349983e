"""Sanitized terminal output: control characters in data are made visible; only odfpy's own colors pass.

A color is marked with a random word of this process. The mark becomes an escape sequence only in `put`, after all
else is sanitized. So nothing in the data can produce an escape sequence.
"""

from __future__ import annotations

import os
import re
import sys
from typing import Final, TextIO

from odfpy.escaping import escape_controls_in_lines

_MARK: Final = f"\ue000{os.urandom(12).hex()}:"
_MARKED: Final = re.compile(f"{_MARK}([0-9]+)m")
_CODES: Final = {"red": 31, "green": 32, "yellow": 33, "cyan": 36, "bold": 1, "dim": 2}


def put(stream: TextIO, text: str) -> None:
    """Write text for people; it may have several lines.

    Text that cannot be written to standard error, for example because its disk is full, is lost: remarks do not decide
    the outcome of the work. If the reader has exited, the command ends as with any other broken pipe.
    """
    try:
        stream.write(_MARKED.sub("\x1b[\\1m", escape_controls_in_lines(text)))
    except BrokenPipeError:
        raise
    except OSError:
        if stream is not sys.stderr:
            raise


def paint(text: str, colour: str, stream: TextIO) -> str:
    """Color a text if the stream is a terminal and colors are wanted. Only `put` can write the result.

    Args:
        text: the text.
        colour: name of the color.
        stream: the target; only terminals get colors.
    """
    if not stream.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return text
    return f"{_MARK}{_CODES[colour]}m{text}{_MARK}0m"


class VisibleStream:
    """A stream for data that is exact in files and pipes, and sanitized on a terminal."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._is_terminal = stream.isatty()

    def write(self, text: str) -> int:
        """Write part of the data."""
        if self._is_terminal:
            put(self._stream, text)
        else:
            self._stream.write(text)
        return len(text)
