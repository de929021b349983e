"""The minimum and maximum of floating-point columns by group, which DataFusion 55 does not always compute correctly.

Its `min` and `max` start with the greatest and least number and compare by `<`. So a group of infinities returns one of
these numbers, and in a group with NaN the last row wins. They are correct without groups and over windows, and so are
`first_value` and `last_value` with an order; affected queries are rewritten to these.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from sqlglot.tokenizer_core import Token

_OPERATOR: Final = re.compile(r"\n\s*(?=[A-Z]\w*: )")
_WRONG: Final = re.compile(r"\s*Aggregate: groupBy=\[\[(?!\]\]).*\b(?:min|max)\(.*:Float", re.DOTALL)
"""A plan operator with its schema: it has groups, one of the functions, and a floating-point column."""

_INSTEAD: Final = {"max": ("last_value", "NULLS FIRST"), "min": ("first_value", "NULLS LAST")}


def are_wrong(plan: Any) -> bool:
    """Return whether a logical plan may find a wrong least or greatest fraction; some that do not are among these."""
    return any(map(_WRONG.match, _OPERATOR.split(plan.display_indent_schema())))


def with_own_extremes(query: str) -> str:
    """Return the query with other functions in the place of `min` and `max`, but for those over windows.

    Args:
        query: a query that DataFusion has planned.
    """
    from sqlglot import tokenize

    before = len(query)
    while True:  # from the last one on: none is within another that comes later
        tokens = tokenize(query, dialect="postgres")
        starts = [at for at in range(len(tokens) - 1) if _begins_call(tokens, at) and tokens[at].start < before]
        if not starts:
            return query
        at = starts[-1]
        before = tokens[at].start
        query = _changed(query, tokens, at)


def _begins_call(tokens: Sequence[Token], at: int) -> bool:
    from sqlglot import TokenType

    name, after = tokens[at], tokens[at + 1]
    if after.token_type is not TokenType.L_PAREN or (at and tokens[at - 1].token_type is TokenType.DOT):
        return False
    return name.text.lower() in _INSTEAD and name.token_type not in (TokenType.IDENTIFIER, TokenType.STRING)


def _changed(query: str, tokens: Sequence[Token], at: int) -> str:
    from sqlglot import TokenType

    opened = at + 1
    closed = _end_of(tokens, opened)
    following = closed + 1
    if following < len(tokens) and tokens[following].text.upper() == "FILTER":
        following = _end_of(tokens, following + 1) + 1
    if following < len(tokens) and tokens[following].token_type is TokenType.OVER:
        return query
    first = opened + 1 + (tokens[opened + 1].text.upper() in ("DISTINCT", "ALL"))
    argument = query[tokens[first].start : tokens[closed - 1].end + 1]
    function, nulls = _INSTEAD[tokens[at].text.lower()]
    call = f"{function}({argument} ORDER BY {argument} {nulls})"
    return query[: tokens[at].start] + call + query[tokens[closed].end + 1 :]


def _end_of(tokens: Sequence[Token], opened: int) -> int:
    """Return the position of the parenthesis that closes one."""
    from sqlglot import TokenType

    depth = 0
    for at in range(opened, len(tokens)):
        depth += {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1}.get(tokens[at].token_type, 0)
        if not depth:
            return at
    raise ValueError("A query that was planned closes what it opens")
