"""HTML tables for notebooks. All data is escaped, including names of columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any, Final

MAX_CHARACTERS: Final = 120


def cell(value: Any, longest: int = MAX_CHARACTERS) -> str:
    """Return a plain value as HTML, truncated to a maximum length."""
    if value is None:
        return '<i style="opacity:.5">null</i>'
    text = str(value)
    if len(text) > longest:
        text = text[: longest - 1] + "…"
    return escape(text)


def table(
    header: Sequence[str],
    rows: Iterable[Sequence[Any]],
    *,
    hints: Sequence[str] = (),
    longest: int = MAX_CHARACTERS,
) -> str:
    """Return an HTML table.

    Args:
        header: names of the columns.
        rows: plain values.
        hints: tooltip of each column's name.
        longest: maximum number of characters of a value.
    """
    titles = [f' title="{escape(hint)}"' for hint in hints] or [""] * len(header)
    head = "".join(f"<th{title}>{cell(name)}</th>" for name, title in zip(header, titles, strict=True))
    body = "".join(f"<tr>{''.join(f'<td>{cell(value, longest)}</td>' for value in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
