"""Tables for notebooks, as HTML. Whatever comes from data is escaped: names of columns are data, too."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any, Final

MAX_CHARACTERS: Final = 120


def cell(value: Any, longest: int = MAX_CHARACTERS) -> str:
    """Return a plain value, cut if it has more letters than that."""
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
        hints: the text on each column when the mouse is over its name.
        longest: letters of a value that are shown.
    """
    titles = [f' title="{escape(hint)}"' for hint in hints] or [""] * len(header)
    head = "".join(f"<th{title}>{cell(name)}</th>" for name, title in zip(header, titles, strict=True))
    body = "".join(f"<tr>{''.join(f'<td>{cell(value, longest)}</td>' for value in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
