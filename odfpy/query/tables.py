"""Which datasets a query reads."""

from __future__ import annotations


def table_names(query: str, dialect: str) -> list[str]:
    """Names of the tables in a query, each once, in the order they appear; dotted names in one piece.

    Names that the query itself defines (`WITH`) are among them. Text that sqlglot does not parse may be right all the
    same (`GROUP BY window(...)` is to Spark): then they are the names that stand where tables may. What is wrong with
    it is for the engine to say.
    """
    import sqlglot
    from sqlglot import exp
    from sqlglot.errors import ParseError, SqlglotError

    try:
        statements = sqlglot.parse(query, dialect=dialect)
    except ParseError:
        return _names_in_place_of_tables(query, dialect)
    except SqlglotError:
        return []
    names: dict[str, None] = {}
    for statement in statements:
        for table in statement.find_all(exp.Table) if statement else ():
            names[".".join(part.name for part in table.parts)] = None
    return list(names)


def _names_in_place_of_tables(query: str, dialect: str) -> list[str]:
    """Names after FROM, JOIN or a comma, whatever they are names of."""
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


def split_statements(text: str) -> list[str]:
    """The statements of a text, at semicolons outside of quotes and comments; empty ones are left out."""
    from sqlglot import TokenType
    from sqlglot.dialects.spark import Spark
    from sqlglot.errors import TokenError

    try:
        tokens = Spark().tokenize(text)
    except TokenError:
        return [text]
    statements = []
    start = 0
    for token in tokens:
        if token.token_type is TokenType.SEMICOLON:
            statements.append(text[start : token.start])
            start = token.end + 1
    statements.append(text[start:])
    return [statement.strip() for statement in statements if statement.strip()]
