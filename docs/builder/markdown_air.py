"""Markdown as git hosts read it, for Python-Markdown, which wants more air around lists."""

from __future__ import annotations

import re
from collections.abc import Iterator

_ITEM = re.compile(r"( *)([-*+]|\d+\.) ")
_FENCE = re.compile(r" *(```|~~~)")


def with_air(text: str) -> str:
    """Have lists begin after an empty line, and lists in lists indented by four."""
    return "\n".join(_lines(text))


def _lines(text: str) -> Iterator[str]:
    in_code = in_list = False
    before = ""
    for line in text.split("\n"):
        if _FENCE.match(line):
            in_code = not in_code
        item = None if in_code else _ITEM.match(line)
        if item and not in_list and before.strip():
            yield ""
        yield f"{item.group(1)}{line}" if item else line
        if item:
            in_list = True
        elif not in_code and before == "" and not line.startswith(" "):
            in_list = False
        before = line
