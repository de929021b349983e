"""Positions in the text of a query, as shown in error messages."""

from __future__ import annotations

import re
from typing import Final

from odfpy.data.sql_text import check_text
from odfpy.dataset.transform import TransformSql
from odfpy.errors import InvalidQuery, did_you_mean
from odfpy.values import dataclass

_MAX_CARETS = 40
_MIN_LENGTH: Final = 4
MAX_LEVELS: Final = 500
"""How deep a query may nest: engines go over plans by recursion, for which a thread has a stack of one size."""

_BRACKETS: Final = re.compile(
    r"""'(?:[^'\\]|\\.)*(?:'|\Z)|"(?:[^"\\]|\\.)*(?:"|\Z)|`[^`]*(?:`|\Z)|--[^\n]*|/\*.*?(?:\*/|\Z)|[()\[\]]"""
    r"""|\b(?:case|end)\b|\b(?:array|map|struct)\s*<|>""",
    re.DOTALL | re.IGNORECASE,
)
_OPEN: Final = ("(", "[", "case")
_CLOSED: Final = (")", "]", "end")
_MAX_LINE_LENGTH: Final = 300
"""Maximum characters of a line shown around the position."""
_KEYWORDS: Final = frozenset(
    """SELECT FROM WHERE GROUP ORDER HAVING LIMIT OFFSET JOIN INNER LEFT RIGHT OUTER UNION INTERSECT EXCEPT DISTINCT
    WITH BETWEEN EXISTS VALUES PARTITION CASE WHEN THEN ELSE LIKE NULL""".split()  # noqa: SIM905
)


@dataclass(frozen=True, slots=True)
class SourceText:
    """The text of one query.

    Attributes:
        text: as the author wrote it.
        label: which query of several it is, for example "step 2 (`shouted`)", or None when there is only one.
    """

    text: str
    label: str | None = None

    def at(self, start: int, end: int | None = None) -> str:
        """Line, column and the line itself with carets below.

        Args:
            start: position of the first character, from 0.
            end: position after the last character.
        """
        start = min(max(start, 0), len(self.text))
        line = self.text.count("\n", 0, start)
        begin = self.text.rfind("\n", 0, start) + 1
        return self._render(line, start - begin, (end or start + 1) - start)

    def at_line(self, line: int, column: int) -> str:
        """Return the same for a line, from 1, and a column, from 0."""
        return self._render(line - 1, column, 1)

    def position(self, line: int, column: int) -> int:
        """Return where a line, from 1, and a column, from 0, are in the text."""
        return sum(len(earlier_line) + 1 for earlier_line in self.text.split("\n")[: line - 1]) + column

    def misspelt_before(self, at: int) -> str | None:
        """A hint where a syntax error may be of a keyword that is misspelt, at some position or just before it."""
        words = [match.group() for match in re.finditer(r"\w+", self.text) if match.start() <= at]
        for word in words[:-3:-1]:
            if word.upper() not in _KEYWORDS and len(word) >= _MIN_LENGTH:
                hint = did_you_mean(word, _KEYWORDS)
                if hint is not None:
                    return hint
        return None

    def whole(self) -> str:
        """Return only the label, for errors without a position; empty if there is only one query."""
        return f" (in {self.label})" if self.label else ""

    def _render(self, line: int, column: int, width: int) -> str:
        lines = self.text.split("\n")
        shown = lines[line] if line < len(lines) else ""
        where = f"line {line + 1}, column {column + 1}" + (f" of {self.label}" if self.label else "")
        carets = "^" * max(1, min(width, len(shown) - column, _MAX_CARETS))
        if len(shown) > _MAX_LINE_LENGTH:
            start = max(0, column - _MAX_LINE_LENGTH // 3)
            shown, column = shown[start : start + _MAX_LINE_LENGTH], column - start
        gap = "".join("\t" if char == "\t" else " " for char in shown[:column])
        return f" ({where})\n    {shown}\n    {gap}{carets}"


def check_levels(text: str) -> None:
    """Reject a query with too deeply nested brackets, which would keep a parser busy for very long.

    Raises:
        InvalidQuery: the brackets are nested too deeply.
    """
    level = types = 0
    for token in _BRACKETS.finditer(text):
        word = token.group().lower()
        if word in _CLOSED:
            level = max(0, level - 1)
        elif word in _OPEN:
            level += 1
        elif word.endswith("<"):
            types += 1
        elif word == ">":  # or it compares
            types = max(0, types - 1)
        if level + types > MAX_LEVELS:
            raise too_deep()


def too_deep() -> InvalidQuery:
    """Return the error that a query nests too deeply."""
    return InvalidQuery(
        f"The query nests too deeply: {MAX_LEVELS} levels are the most",
        hint="Write it in several steps or queries of WITH; IN (...) and concat_ws(...) take many values at once.",
    )


def step_texts(transform: TransformSql) -> list[SourceText]:
    """Return the queries of a transform, each labelled with its step where there are several.

    Raises:
        QueryTooLong, QueryTooDeep: the text is too large to process.
    """
    steps = transform.steps
    for step in steps:
        check_text(step.query)
    if len(steps) == 1:
        return [SourceText(steps[0].query)]
    labels = (f"step {at} (`{step.alias}`)" if step.alias else f"step {at}" for at, step in enumerate(steps, start=1))
    return [SourceText(step.query, label) for step, label in zip(steps, labels, strict=True)]
