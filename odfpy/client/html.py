"""Pieces of HTML for notebooks. Whatever comes from data is escaped: names of columns are data, too."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, timedelta
from html import escape
from typing import Any, Final

MOST_CHARACTERS: Final = 120
MOST_BARS: Final = 90
_HEIGHT: Final = 28
_BAR: Final = 3


def cell(value: Any) -> str:
    """A plain value, cut if it is long."""
    if value is None:
        return '<i style="opacity:.5">null</i>'
    text = str(value)
    if len(text) > MOST_CHARACTERS:
        text = text[: MOST_CHARACTERS - 1] + "…"
    return escape(text)


def table(header: Sequence[str], rows: Iterable[Sequence[Any]], *, hints: Sequence[str] = ()) -> str:
    """A table.

    Args:
        header: names of the columns.
        rows: plain values.
        hints: the text on each column when the mouse is over its name.
    """
    titles = [f' title="{escape(hint)}"' for hint in hints] or [""] * len(header)
    head = "".join(f"<th{title}>{cell(name)}</th>" for name, title in zip(header, titles, strict=True))
    body = "".join(f"<tr>{''.join(f'<td>{cell(value)}</td>' for value in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def facts(pairs: Iterable[tuple[str, str | None]]) -> str:
    """Short texts with names, those that are there."""
    return " · ".join(f"{escape(name)} <b>{escape(text)}</b>".strip() for name, text in pairs if text is not None)


def sparkline(rows_per_day: Mapping[date, int]) -> str:
    """Rows per day as bars, as SVG within the text; several days make a bar where there are many."""
    if not rows_per_day:
        return ""
    first, last = min(rows_per_day), max(rows_per_day)
    count = (last - first).days + 1
    days = -(-count // MOST_BARS)  # of a bar
    bars = [0] * -(-count // days)
    for day, rows in rows_per_day.items():
        bars[(day - first).days // days] += rows
    most = max(bars)
    parts = []
    for at, rows in enumerate(bars):
        if not rows:
            continue
        height = max(1, round(rows / most * _HEIGHT))
        begin = first + timedelta(days * at)
        when = str(begin) if days == 1 else f"{begin} and {days - 1} more"
        parts.append(
            f'<rect x="{at * _BAR}" y="{_HEIGHT - height}" width="{_BAR - 1}" height="{height}" fill="#4878b0">'
            f"<title>{when}: {rows}</title></rect>"
        )
    width = len(bars) * _BAR
    label = f"rows per day from {first} to {last}, {most} at most" + ("" if days == 1 else f" in {days} days")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{label}" width="{width}" height="{_HEIGHT}"'
        f' viewBox="0 0 {width} {_HEIGHT}">{"".join(parts)}</svg>'
    )
