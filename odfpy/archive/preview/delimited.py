"""The first rows of a text with a delimiter, as they are written: every value is text."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

MAX_ROWS: Final = 100
"""Rows that are shown."""

MAX_COLUMNS: Final = 60
"""Columns that are shown."""

MAX_LENGTH: Final = 500
"""Characters of a value that are shown."""

_DELIMITERS: Final = ",;\t|"


@dataclass(frozen=True, slots=True)
class FirstRows:
    """The first rows of a table.

    Attributes:
        columns: names of the columns.
        rows: values, cut where they are long.
        num_columns: columns that there are, also those that are not shown.
        has_more: whether there are further rows.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]
    num_columns: int
    has_more: bool


def first_rows(text: str, *, is_whole: bool) -> FirstRows | None:
    """The first rows of a text; None if it is not a table.

    Args:
        text: the beginning of it; the first line has the names of the columns.
        is_whole: whether it is all; else its last line may be incomplete, and is left out.
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
    except csv.Error:  # a quote that is not closed, for one; the text can be shown all the same
        return None
    if not rows:
        return None
    widest = max(map(len, rows))
    head, *others = [_cut(row, min(widest, MAX_COLUMNS)) for row in rows]
    return FirstRows(tuple(name or "" for name in head), tuple(others), widest, has_more)


def cut(value: str) -> str:
    """A value as it is shown."""
    return value if len(value) <= MAX_LENGTH else f"{value[:MAX_LENGTH]}…"


def _cut(row: Sequence[str], count: int) -> tuple[str, ...]:
    return tuple(cut(value) for value in [*row, *[""] * (count - len(row))][:count])


def _delimiter_of(text: str) -> str:
    """The sign that the first line has most often."""
    counts = Counter(sign for sign in text.partition("\n")[0] if sign in _DELIMITERS)
    return counts.most_common(1)[0][0] if counts else ","
