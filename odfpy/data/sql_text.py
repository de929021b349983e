"""Limits on the text of a query, checked in one pass before it is parsed, since a parser may take unlimited time.

Parsers and planners are recursive; deeply nested text takes them minutes or crashes them. Levels are brackets, CASE,
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
        characters: maximum number of characters.
        tokens: maximum number of words, constants and signs.
        depth: maximum depth of nested brackets and consecutive operators.
    """

    characters: int
    tokens: int
    depth: int


OWN: Final = TextLimits(characters=4 << 20, tokens=500_000, depth=10_000)
"""Limits for queries on the user's machine or in the user's workspace."""

OF_STRANGERS: Final = TextLimits(characters=64 << 10, tokens=20_000, depth=1_000)
"""Limits for queries from the network."""

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
"""A thousand consecutive subscripts take the parser five seconds."""


@dataclass(slots=True)
class _Level:
    """The content of a pair of brackets that has been read so far.

    Attributes:
        opened: the token that opened it.
        operators: number of consecutive operators.
        below: depth of the deepest brackets among them.
        combined: number of queries and tables that have been combined.
        deepest: maximum depth of previous rows of operators.
    """

    opened: str = ""
    operators: int = 0
    below: int = 0
    combined: int = 0
    deepest: int = field(default=0)

    def end_row(self) -> None:
        """End a row of operators: the next tokens are beside it, not around it."""
        self.deepest = max(self.deepest, self.operators + self.below)
        self.operators = self.below = 0

    @property
    def depth(self) -> int:
        return max(self.deepest, self.operators + self.below) + self.combined


def check_text(text: str, limits: TextLimits = OWN) -> None:
    """Check that a text can be parsed and planned with limited resources, in time linear in its length.

    Raises:
        QueryTooLong: the text has too many characters or tokens.
        QueryTooDeep: the text is nested too deeply, or has too many consecutive operators.
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
    while len(levels) > 1:  # if the text ends within brackets
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
