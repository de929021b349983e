"""Limits on the text of a query, checked in one pass before a parser reads it, which might be unable to stop.

Parsers and planners are recursive; text with deep nesting takes them minutes or breaks them. Levels are brackets, CASE,
and consecutive operators: `a + b + c` is `(a + b) + c` to a parser.
"""

from __future__ import annotations

import re
from dataclasses import field
from typing import Final

from odfpy.errors import QueryTooDeep, QueryTooLong
from odfpy.values import dataclass


@dataclass(frozen=True, slots=True)
class TextLimits:
    """Limits on the text of a query.

    Attributes:
        characters: characters.
        tokens: words, constants and signs.
        depth: brackets in each other and operators in a row, on the way to what is deepest.
    """

    characters: int
    tokens: int
    depth: int


OWN: Final = TextLimits(characters=4 << 20, tokens=500_000, depth=10_000)
"""Limits for a query on one's own machine, or in one's own workspace."""

OF_STRANGERS: Final = TextLimits(characters=64 << 10, tokens=20_000, depth=1_000)
"""Of a query that comes over the network."""

_TOKEN: Final = re.compile(
    r"""
    \s+ | --[^\n]* | /\*.*?(?:\*/|\Z)
    | (?P<open> [(\[{] )
    | (?P<close> [)\]}] )
    | (?P<end> [,;] )
    | (?P<word> [^\W\d][\w.]* )
    | (?P<constant> \d[\w.]* | '(?:[^'\\]|\\.|'')*'? | "(?:[^"\\]|\\.|"")*"? | `[^`]*`? )
    | (?P<operator> ::|->>|->|=>|<=>|<=|>=|<>|!=|==|\|\||&& | . )
    """,
    re.VERBOSE | re.DOTALL,
)
_OPERATORS: Final = frozenset("and between collate div ilike in is like not or rlike similar xor".split())  # noqa: SIM905
_CLAUSES: Final = frozenset(
    "else from group having lateral limit on order qualify select then using values when where window with".split()  # noqa: SIM905
)
_COMBINING: Final = frozenset("except intersect join minus union".split())  # noqa: SIM905
_CASE, _SUBSCRIPT = "case", "["
_OF_SUBSCRIPTS: Final = 10
"""A thousand subscripts in a row take the parser five seconds."""


@dataclass(slots=True)
class _Level:
    """The content of one pair of brackets, as far as it has been read.

    Attributes:
        opened: what has opened it.
        operators: those in a row.
        below: the depth of the deepest brackets among them.
        combined: queries and tables that have been combined.
        deepest: the greatest depth of what has been in a row before.
    """

    opened: str = ""
    operators: int = 0
    below: int = 0
    combined: int = 0
    deepest: int = field(default=0)

    def end_row(self) -> None:
        """End a row: what comes next is beside what has been, not around it."""
        self.deepest = max(self.deepest, self.operators + self.below)
        self.operators = self.below = 0

    @property
    def depth(self) -> int:
        return max(self.deepest, self.operators + self.below) + self.combined


def check_text(text: str, limits: TextLimits = OWN) -> None:
    """Check that a text is not too much for those who parse and plan it; takes a time that grows with its length.

    Raises:
        QueryTooLong: it has too many characters or tokens.
        QueryTooDeep: it is nested too deeply, or has too many operators in a row.
    """
    if len(text) > limits.characters:
        raise QueryTooLong(
            f"The query has {len(text):,} characters, and may have {limits.characters:,}",
            hint="Put long parts, such as lists of values, into a dataset, and join it.",
        )
    levels = [_Level()]
    tokens = 0
    for found in _TOKEN.finditer(text):
        kind = found.lastgroup
        if kind is None:
            continue
        tokens += 1
        if tokens > limits.tokens:
            raise QueryTooLong(
                f"The query has more than {limits.tokens:,} words and signs",
                hint="Put long parts, such as lists of values, into a dataset, and join it.",
            )
        _take(levels, kind, found.group())
        if len(levels) > limits.depth + 1 or levels[-1].operators > limits.depth:
            break
    while len(levels) > 1:  # of a text that ends too early
        _close(levels)
    if levels[0].depth > limits.depth:
        raise QueryTooDeep(
            f"The query nests brackets and operators more than {limits.depth:,} deep",
            hint="Write it in several steps, or with fewer operators in a row: IN (...) instead of many OR.",
        )


def _take(levels: list[_Level], kind: str, token: str) -> None:
    level = levels[-1]
    word = token.lower() if kind == "word" else ""
    if kind == "open" or word == _CASE:
        level.operators += _OF_SUBSCRIPTS if token == _SUBSCRIPT else 0
        levels.append(_Level(word or token))
    elif kind == "close" or (word == "end" and level.opened == _CASE):
        if len(levels) > 1:
            _close(levels)
    elif kind == "end" or word in _CLAUSES:
        level.end_row()
    elif word in _COMBINING:
        level.end_row()
        level.combined += 1
    elif kind == "operator" or word in _OPERATORS:
        level.operators += 1


def _close(levels: list[_Level]) -> None:
    inner = levels.pop()
    levels[-1].below = max(levels[-1].below, inner.depth + 1)
