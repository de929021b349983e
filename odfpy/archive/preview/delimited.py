"""The first rows of a delimited text; all values are text."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

MAX_ROWS: Final = 100
"""Maximum number of rows shown."""

MAX_COLUMNS: Final = 60
"""Maximum number of columns shown."""

MAX_LENGTH: Final = 500
"""Maximum characters of a value shown."""

_DELIMITERS: Final = ",;\t|"


@dataclass(frozen=True, slots=True)
class FirstRows:
    """The first rows of a table.

    Attributes:
        columns: names of the columns.
        rows: values, shortened if they are long.
        num_columns: number of columns, including those not shown.
        has_more: whether there are further rows.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]
    num_columns: int
    has_more: bool


def first_rows(text: str, *, is_whole: bool) -> FirstRows | None:
    """Return the first rows of a text; None if it is not a table.

    Args:
        text: beginning of the text; the first line has the names of the columns.
        is_whole: whether it is the whole text; otherwise the last line may be incomplete, and is omitted.
    """
    lines = text if is_whole else text[: text.rfind("\n") + 1]
    reader = csv.reader(io.StringIO(lines, newline=""), delimiter=_delimiter_of(lines))
    rows: list[list[str]] = []
    has_more = not is_whole
    try:
        for row in reader:
            if len(rows) > MAX_ROWS:
                has_more = True
                break
            if row:
                rows.append(row)
    except csv.Error:  # an unclosed quote, for example; the text can still be shown
        return None
    if not rows:
        return None
    widest = max(map(len, rows))
    head, *others = [_cut(row, min(widest, MAX_COLUMNS)) for row in rows]
    return FirstRows(tuple(name or "" for name in head), tuple(others), widest, has_more)


def cut(value: str) -> str:
    """Shorten a value for display."""
    return value if len(value) <= MAX_LENGTH else f"{value[:MAX_LENGTH]}…"


def _cut(row: Sequence[str], count: int) -> tuple[str, ...]:
    return tuple(cut(value) for value in [*row, *[""] * (count - len(row))][:count])


def _delimiter_of(text: str) -> str:
    """Return the most frequent delimiter of the first line."""
    counts = Counter(sign for sign in text.partition("\n")[0] if sign in _DELIMITERS)
    return counts.most_common(1)[0][0] if counts else ","
