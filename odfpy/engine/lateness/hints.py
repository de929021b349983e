"""Refusal of hints on late rows in DataFusion queries: DataFusion would silently ignore them as comments."""

from __future__ import annotations

import re
from typing import Final

from odfpy.engine.sql.source_text import SourceText
from odfpy.errors import UnsupportedQuery

_BEGIN: Final = "/*+"
_OURS: Final = re.compile(r"\b(late|correctable)\s*\(", re.IGNORECASE)


def check_no_late_hints(source: SourceText) -> None:
    """Refuse a query with hints on late rows.

    Raises:
        UnsupportedQuery: it has such a hint.
    """
    if _BEGIN not in source.text:
        return
    from sqlglot import TokenError, TokenType, tokenize

    try:
        tokens = tokenize(source.text)
    except TokenError:
        return  # DataFusion reports the error
    for token in tokens:
        match = _OURS.search(token.text) if token.token_type is TokenType.HINT else None
        if match is not None:
            place = source.at(token.start, token.end + 1)
            raise UnsupportedQuery(
                f"The hint {match[1].upper()} is not for engine datafusion{place}",
                hint="Use `engine: spark`, or omit the hint: late rows are passed on.",
            )
