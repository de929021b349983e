"""Hints on late rows, which are for the Spark engine: to DataFusion they are comments, and would be passed over."""

from __future__ import annotations

import re
from typing import Final

from odfpy.engine.sql.source_text import SourceText
from odfpy.errors import UnsupportedQuery

_BEGIN: Final = "/*+"
_OURS: Final = re.compile(r"\b(late|correctable)\s*\(", re.IGNORECASE)


def check_no_late_hints(source: SourceText) -> None:
    """Refuse a query that says what becomes of late rows.

    Raises:
        UnsupportedQuery: it does.
    """
    if _BEGIN not in source.text:
        return
    from sqlglot import TokenError, TokenType, tokenize

    try:
        tokens = tokenize(source.text)
    except TokenError:
        return  # DataFusion says what is wrong
    for token in tokens:
        found = _OURS.search(token.text) if token.token_type is TokenType.HINT else None
        if found is not None:
            place = source.at(token.start, token.end + 1)
            raise UnsupportedQuery(
                f"The hint {found[1].upper()} is not for engine datafusion{place}",
                hint="Derive with `engine: spark`, or leave the hint out: late rows are passed on.",
            )
