"""Formatting of values and offsets in results."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from odfpy.data.rows.plain_values import plain

MAX_ROWS: Final = 10
"""Maximum number of rows of a dataset in text."""

_MAX_LENGTH: Final = 40


def plain_value(value: Any) -> Any:
    """Return a value for JSON, with times in the notation of other output."""
    if isinstance(value, datetime):
        return value.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return plain(value)


def short_text(value: Any) -> str:
    """Return a value for a line with others, truncated if it is long."""
    text = str(plain_value(value))
    return text if len(text) <= _MAX_LENGTH else f"{text[: _MAX_LENGTH - 1]}…"


def ranges_text(offsets: Sequence[int]) -> str:
    """Return ascending offsets as text, with ranges: `0-3, 7`."""
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in ranges(offsets))


def ranges(offsets: Sequence[int]) -> list[tuple[int, int]]:
    """Return ascending offsets as ranges, both ends included."""
    found: list[tuple[int, int]] = []
    for offset in offsets:
        if found and found[-1][1] == offset - 1:
            found[-1] = found[-1][0], offset
        else:
            found.append((offset, offset))
    return found
