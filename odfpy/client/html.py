"""HTML fragments for notebooks. All values are escaped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date, timedelta
from html import escape
from typing import Final

MAX_BARS: Final = 90
_WIDTH: Final = 240
_HEIGHT: Final = 40
_NARROWEST: Final = 3
_MAX_WIDTH: Final = 30
_LETTER: Final = 6.6
_LINE: Final = 14
_BARS: Final = "#4878b0"  # visible on white and on black; texts inherit the color of their context


def facts(pairs: Iterable[tuple[str, str | None]]) -> str:
    """Return labeled short texts as HTML, without those that are None."""
    return " · ".join(f"{escape(name)} <b>{escape(text)}</b>".strip() for name, text in pairs if text is not None)


def sparkline(rows_per_day: Mapping[date, int | None]) -> str:
    """Return rows per day as an inline SVG bar chart. With many days, a bar is the sum of several days.

    The chart includes the maximum, minimum and last number, and the first and last day. Missing days are gaps, and
    count as 0 rows.

    Args:
        rows_per_day: number of rows per day; None means unknown, like a missing day.
    """
    known = {day: rows for day, rows in rows_per_day.items() if rows is not None}
    if not known:
        return ""
    first, last = min(known), max(known)
    count = (last - first).days + 1
    days = -(-count // MAX_BARS)  # days per bar
    bars = [0] * -(-count // days)
    for day, rows in known.items():
        bars[(day - first).days // days] += rows
    step = min(max(_WIDTH // len(bars), _NARROWEST), _MAX_WIDTH)
    parts = []
    for at, rows in enumerate(bars):
        if not rows:
            continue
        height = max(1, round(rows / max(bars) * _HEIGHT))
        begin = first + timedelta(days * at)
        when = str(begin) if days == 1 else f"{begin} and {days - 1} more"
        parts.append(
            f'<rect x="{at * step}" y="{_HEIGHT - height}" width="{step - 1}" height="{height}" fill="{_BARS}">'
            f"<title>{when}: {rows:,}</title></rect>"
        )
    span = str(first) if first == last else f"{first} to {last}"
    below = f"rows per {'day' if days == 1 else f'{days} days'}, {span}"
    beside = _numbers(bars)
    wide = len(bars) * step
    texts = [_text(line, wide + 8, _LINE * (at + 1) - 3) for at, line in enumerate(beside)]
    texts.append(_text(below, 0, _HEIGHT + _LINE))
    width = round(max(wide + 8 + max(map(len, beside)) * _LETTER, len(below) * _LETTER)) + 2
    height = _HEIGHT + _LINE + 6
    ground = f'<path d="M0,{_HEIGHT}.5 h{wide}" stroke="currentColor" stroke-opacity="0.4"/>'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{below}: {", ".join(beside)}" width="{width}"'
        f' height="{height}" viewBox="0 0 {width} {height}" font-family="monospace" font-size="11"'
        f' style="max-width:none">{ground}{"".join([*parts, *texts])}</svg>'
    )


def _numbers(bars: list[int]) -> list[str]:
    """Return the summary of the bars; a single number if all are equal."""
    if len(bars) == 1:
        return [f"{bars[0]:,}"]
    if min(bars) == max(bars):
        return [f"each {bars[0]:,}"]
    return [f"max  {max(bars):,}", f"min  {min(bars):,}", f"last {bars[-1]:,}"]


def _text(text: str, x: int, y: int) -> str:
    """Return an SVG text whose width does not depend on the font."""
    return (
        f'<text x="{x}" y="{y}" textLength="{len(text) * _LETTER:.1f}" lengthAdjust="spacingAndGlyphs"'
        f' fill="currentColor" style="white-space:pre">{escape(text)}</text>'
    )
