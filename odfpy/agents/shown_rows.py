"""Rows as shown to a model, limited in number and length; omissions are reported."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from odfpy.agents.limits import MAX_CELL_LENGTH, MAX_CHARACTERS


@dataclass(frozen=True, slots=True)
class ShownRows:
    """The rows within the limits.

    Attributes:
        rows: cells of the rows; long ones are truncated.
        cut_cells: row, column and full length in characters of each truncated cell.
        is_full: whether rows were omitted because of the limit on characters.
    """

    rows: list[list[Any]]
    cut_cells: list[tuple[int, int, int]]
    is_full: bool


def shown_rows(rows: Iterable[Iterable[Any]]) -> ShownRows:
    """Return the first rows that fit into the limits.

    Args:
        rows: cells of rows, as JSON trees.
    """
    shown: list[list[Any]] = []
    cuts: list[tuple[int, int, int]] = []
    left = MAX_CHARACTERS
    for at, row in enumerate(rows):
        cells = [_shown(cell) for cell in row]
        values = [value for value, _ in cells]
        left -= len(json.dumps(values, ensure_ascii=False, separators=(",", ":")))
        if left < 0:
            return ShownRows(shown, cuts, is_full=True)
        shown.append(values)
        cuts += [(at, column, length) for column, (_, length) in enumerate(cells) if length]
    return ShownRows(shown, cuts, is_full=False)


def _shown(cell: Any) -> tuple[Any, int]:
    """Return a cell, and its length in characters if truncated, else 0; lists and structures are measured as JSON."""
    if not isinstance(cell, str | list | dict):
        return cell, 0
    text = cell if isinstance(cell, str) else json.dumps(cell, ensure_ascii=False, separators=(",", ":"))
    return (cell, 0) if len(text) <= MAX_CELL_LENGTH else (f"{text[:MAX_CELL_LENGTH]}...", len(text))
