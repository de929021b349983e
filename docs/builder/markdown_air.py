"""Markdown as git hosts read it, for Python-Markdown, which wants more air around lists; docstrings, too."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from markdown import Markdown
from markdown.extensions import Extension
from markdown.preprocessors import Preprocessor

_ITEM = re.compile(r"( *)([-*+]|\d+\.) ")
_FENCE = re.compile(r" *(```|~~~)")
_CODE = 4  # so many spaces make code of a line, outside of lists
_AFTER_WHITESPACE_BEFORE_FENCES = 28


class Air(Extension):
    """Has lists begin after an empty line, and lists in lists be indented by four."""

    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802 - its name there
        """Register the step."""
        md.preprocessors.register(_Step(md), "air", _AFTER_WHITESPACE_BEFORE_FENCES)


class _Step(Preprocessor):
    def run(self, lines: list[str]) -> list[str]:
        return list(with_air(lines))


def with_air(lines: Iterable[str]) -> Iterator[str]:
    """Lines as Python-Markdown wants them."""
    in_code = in_list = False
    before = ""
    for line in lines:
        if _FENCE.match(line):
            in_code = not in_code
        item = None if in_code else _ITEM.match(line)
        if item and not in_list and len(item.group(1)) >= _CODE:
            item = None
        if item and not in_list and before.strip():
            yield ""
        yield f"{item.group(1)}{line}" if item else line
        if item:
            in_list = True
        elif not in_code and before == "" and not line.startswith(" "):
            in_list = False
        before = line
