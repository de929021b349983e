"""Names of datasets in a query."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import TYPE_CHECKING

from odfpy.query.counts import counted

if TYPE_CHECKING:
    from sqlglot import exp

    from odfpy.query.dialects import Dialect


@dataclass(frozen=True, slots=True)
class NamedTable:
    """A name in a query.

    Attributes:
        text: the name, including dots.
        start: offset in the text.
        end: end offset, exclusive; 0 if it is unknown.
        is_sure: whether the query is invalid if there is no such dataset.
    """

    text: str
    start: int = 0
    end: int = 0
    is_sure: bool = False


def named_tables(query: str, dialect: str) -> list[NamedTable]:
    """Return the names of the tables in a query, each once, in order of appearance.

    Names that the query itself defines (`WITH`) may be included. A text that sqlglot does not parse may still be valid
    (for example `GROUP BY window(...)` for Spark): then the result contains all names in positions of tables. Errors in
    the text are left to the engine.
    """
    import sqlglot
    from sqlglot import exp
    from sqlglot.errors import ParseError, SqlglotError

    try:
        statements = sqlglot.parse(query, dialect=dialect)
    except (ParseError, RecursionError):
        return [NamedTable(name) for name in _names_in_place_of_tables(query, dialect)]
    except SqlglotError:
        return []
    trees = [statement for statement in statements if statement]
    defined = {cte.alias.lower() for tree in trees for cte in tree.find_all(exp.CTE)}
    is_query = all(isinstance(tree, exp.Query) for tree in trees)
    names: dict[str, NamedTable] = {}
    for tree in trees:
        for table in tree.find_all(exp.Table):
            named = _name_of(table, defined, is_query=is_query)
            names.setdefault(named.text, named)
    return list(names.values())


def _name_of(table: exp.Table, defined: set[str], *, is_query: bool) -> NamedTable:
    from sqlglot import exp

    parts = table.parts
    name = ".".join(part.name for part in parts)
    is_sure = is_query and all(isinstance(part, exp.Identifier) for part in parts) and name.lower() not in defined
    first, last = parts[0].meta, parts[-1].meta
    return NamedTable(name, first.get("start", 0), last.get("end", -1) + 1, is_sure and bool(name))


def _names_in_place_of_tables(query: str, dialect: str) -> list[str]:
    """Return the names after FROM, JOIN or a comma, whatever they refer to."""
    from sqlglot import TokenType, tokenize

    tokens = tokenize(query, dialect=dialect)
    names: dict[str, None] = {}
    for at, token in enumerate(tokens[:-1], start=1):
        if token.token_type in {TokenType.FROM, TokenType.JOIN, TokenType.COMMA}:
            parts = [tokens[at].text]
            for dot, part in zip(tokens[at + 1 :: 2], tokens[at + 2 :: 2], strict=False):
                if dot.token_type is not TokenType.DOT:
                    break
                parts.append(part.text)
            names[".".join(parts)] = None
    return list(names)


def split_statements(text: str, dialect: Dialect, *, in_place: bool = False) -> list[str]:
    """Return the statements of a text, split at semicolons outside of quotes and comments, without empty ones.

    Args:
        text: the statements.
        dialect: dialect of the text. A backslash before a quote is an escape in Spark, but not in DataFusion.
        in_place: precede each statement by as many empty lines as before, so that positions in it stay valid.
    """
    only = text.rstrip().removesuffix(";").rstrip()
    if counted(only):
        return [only if in_place else only.strip()]
    from sqlglot import TokenType
    from sqlglot.errors import TokenError

    try:
        tokens = dialect.tokens(text)
    except TokenError:
        return [text]
    ends = [token.start for token in tokens if token.token_type is TokenType.SEMICOLON]
    begun = [token.start for token in tokens if token.token_type is not TokenType.SEMICOLON]
    found = []
    for start, end in zip([0, *(end + 1 for end in ends)], [*ends, len(text)], strict=True):
        if bisect_left(begun, start) < bisect_left(begun, end):  # not only a comment
            before = "\n" * text.count("\n", 0, start) + " " * (start - text.rfind("\n", 0, start) - 1)
            found.append(before + text[start:end].rstrip() if in_place else text[start:end].strip())
    return found
