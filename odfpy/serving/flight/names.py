"""The single catalog and schema, their removal from queries of tools, and the SQL dialect of a connection."""

from __future__ import annotations

from typing import Final

from odfpy.query.dialects import dialect_named

CATALOG: Final = "odf"
DB_SCHEMA: Final = "odf"
DEFAULT_DIALECT: Final = "datafusion"


def without_catalog(text: str, dialect: str) -> str:
    """Blank out `"odf"."odf".` or `odf.` before a quoted name in a query, so that positions stay the same.

    Unquoted names are left unchanged: a dataset may be called `odf.something`.
    """
    from sqlglot.errors import TokenError

    if CATALOG not in text.lower():
        return text
    try:
        tokens = dialect_named(dialect).tokens(text)
    except TokenError:
        return text  # the engine reports the error
    kinds = [token.token_type.name for token in tokens]
    is_prefix = [
        kind in ("VAR", "IDENTIFIER") and token.text.lower() == CATALOG and kinds[at + 1 : at + 2] == ["DOT"]
        for at, (kind, token) in enumerate(zip(kinds, tokens, strict=True))
    ]
    at = 0
    while at < len(tokens):
        end = at
        while end < min(at + 4, len(tokens)) and is_prefix[end]:
            end += 2
        if end > at and kinds[end : end + 1] == ["IDENTIFIER"] and kinds[at - 1 : at] != ["DOT"]:
            start, stop = tokens[at].start, tokens[end - 1].end + 1
            text = text[:start] + " " * (stop - start) + text[stop:]
        at = max(end, at + 1)
    return text
