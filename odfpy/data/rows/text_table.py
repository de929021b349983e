"""Text tables: columns side by side if the width permits, otherwise one value per line."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence

from odfpy.escaping import escape_controls

GAP = "  "
NARROWEST = 16
"""Minimum width of folded columns; if rows still do not fit, each is shown on several lines."""

_FOLD_AFTER = re.compile(r"[\s,;/._-]|(?<=\d)T(?=\d)")


def lines_of(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    right: Collection[int] = (),
    width: int | None = None,
    heading: Callable[[str], str] = str,
) -> Iterator[str]:
    """Yield the lines of a table.

    Args:
        columns: titles of the columns.
        rows: cells as text; control characters are escaped.
        right: indices of right-aligned columns.
        width: maximum width in terminal cells; None for no limit.
        heading: formats the line of titles, for example in bold.
    """
    safe = [[escape_controls(cell) for cell in row] for row in (columns, *rows)]
    widths = [max(map(cells, column)) for column in zip(*safe, strict=True)]
    if width is not None:
        fitting = _fitting(widths, width)
        if fitting is None:
            yield from _one_below_the_other(safe[0], safe[1:], heading)
            return
        widths = fitting
    for number, row in enumerate(safe):
        lines = _side_by_side(row, widths, right)
        yield from map(heading, lines) if number == 0 else lines


def _fitting(widths: list[int], width: int) -> list[int] | None:
    """Return widths with which all columns fit, by narrowing the widest; None if they would become too narrow."""
    room = width - len(GAP) * (len(widths) - 1)
    for limit in range(max(widths, default=0), NARROWEST - 1, -1):
        cut = [min(natural, limit) for natural in widths]
        left = room - sum(cut)
        if left >= 0:
            for number, natural in enumerate(widths):
                more = min(left, natural - cut[number])
                cut[number] += more
                left -= more
            return cut
    return widths if sum(widths) <= room else None


def _side_by_side(row: Sequence[str], widths: Sequence[int], right: Collection[int]) -> Iterator[str]:
    folded = [_fold(cell, limit) for cell, limit in zip(row, widths, strict=True)]
    for at in range(max(map(len, folded), default=0)):
        parts = []
        for number, (pieces, limit) in enumerate(zip(folded, widths, strict=True)):
            piece = pieces[at] if at < len(pieces) else ""
            space = " " * (limit - cells(piece))
            parts.append(space + piece if number in right else piece + space)
        yield GAP.join(parts).rstrip()


def _one_below_the_other(
    columns: Sequence[str], rows: Sequence[Sequence[str]], heading: Callable[[str], str]
) -> Iterator[str]:
    longest = max(map(cells, columns))
    for number, row in enumerate(rows, 1):
        yield heading(f"-- {number} --")
        for name, cell in zip(columns, row, strict=True):
            yield f"{name}{' ' * (longest - cells(name))}{GAP}{cell}".rstrip()


def _fold(text: str, width: int) -> list[str]:
    """Split a text into pieces of at most a width, if possible after punctuation."""
    pieces = []
    start = 0
    while len(text) - start > width or cells(text[start:]) > width:
        end = start + width
        while end > start + 1 and cells(text[start:end]) > width:
            end -= 1
        nice = [match.end() for match in _FOLD_AFTER.finditer(text, start, end) if 2 * (match.end() - start) > width]
        cut = nice[-1] if nice else end
        pieces.append(text[start:cut].rstrip())
        start = cut
    return [*pieces, text[start:]]


def cells(text: str) -> int:
    """Return the number of terminal cells of a text."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(0 if combining(char) else 2 if east_asian_width(char) in "WF" else 1 for char in text)
