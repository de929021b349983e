"""SQL in documents, parsed: transformations over `{v}`, the SQL of data sources and of remote mappings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from odfpy.data.sql_text import OWN, check_text
from odfpy.errors import InvalidQuery, InvalidValue

if TYPE_CHECKING:
    from sqlglot import exp

DIALECT: Final = "duckdb"
"""The dialect of transformations and of the SQL of remote mappings."""

VALUE: Final = "__odf_value"
"""The column that represents `{v}` in a parsed transformation."""

_MAX_LENGTH: Final = 10_000
_OF_VALUE: Final = "An expression over {v}, such as `{v} / 100` or `upper({v})`."
_OF_SOURCE: Final = "Write the name of a table, or one SELECT."
_OF_REMOTE: Final = "Write `SELECT *, expression AS name FROM remote_entity`."


def transformation(text: str) -> exp.Expr:
    """Parse a transformation into a tree in which the column `VALUE` stands for `{v}`.

    Args:
        text: an SQL expression; quoted text is left as it is.

    Raises:
        InvalidValue: it is invalid, or refers to anything but `{v}`.
    """
    from sqlglot import exp

    tree = _parsed(f"SELECT {_with_value(text)}", DIALECT, f"Not a transformation: {text}", _OF_VALUE)
    if not isinstance(tree, exp.Select) or len(tree.expressions) != 1 or _parts(tree) != {"expressions"}:
        raise InvalidValue(f"Not a transformation: {text}", hint=_OF_VALUE)
    expression: exp.Expr = tree.expressions[0].unalias()
    if isinstance(tree.expressions[0], exp.Alias):
        raise InvalidValue(f"A transformation gives no name: {text}", hint=_OF_VALUE)
    _check_scalar(expression, text)
    for column in expression.find_all(exp.Column):
        if column.name != VALUE or column.table:
            raise InvalidValue(f"A transformation knows {{v}} only, not {column.sql(DIALECT)}: {text}", hint=_OF_VALUE)
    return expression


def is_name(text: str, dialect: str) -> bool:
    """Return whether the SQL of a source is only the name of a table; the name may have dots."""
    from sqlglot import exp, parse_one
    from sqlglot.errors import SqlglotError

    try:
        table = parse_one(text, into=exp.Table, dialect=dialect)
    except (SqlglotError, RecursionError):
        return False
    parts = {name for name, value in table.args.items() if value}
    return (
        isinstance(table, exp.Table) and parts <= {"this", "db", "catalog"} and isinstance(table.this, exp.Identifier)
    )


def check_source_sql(text: str, dialect: str) -> str:
    """Return the SQL of a data source if it is a name or one SELECT.

    Args:
        text: the SQL.
        dialect: dialect of the source, by sqlglot's name.

    Raises:
        InvalidValue: it is neither.
    """
    from sqlglot import exp

    if is_name(text, dialect):
        return text
    tree = _parsed(text, dialect, f"Not the SQL of a data source: {text}", _OF_SOURCE)
    changing = (exp.DML, exp.DDL, exp.Command, exp.Into, exp.Lock, exp.Set, exp.Pragma, exp.Attach, exp.Use, exp.Copy)
    if not isinstance(tree, exp.Query) or any(
        isinstance(node, changing) and not isinstance(node, exp.Query) for node in tree.walk()
    ):
        raise InvalidValue(f"The SQL of a data source only reads: {text}", hint=_OF_SOURCE)
    return text


def remote_expressions(sql: str | None, remote_entity: str) -> dict[str, exp.Expr] | None:
    """Return the expressions that the SQL of a remote mapping names; None without SQL: all columns are the peer's.

    Args:
        sql: a SELECT from the remote entity.
        remote_entity: name of the remote entity.

    Returns:
        Expressions by name; the key `*`, if present, means that all of the peer's own columns are available, too.

    Raises:
        InvalidValue: it is more than columns and expressions of the one entity.
    """
    from sqlglot import exp

    if sql is None:
        return None
    wrong = f"Not the SQL of a remote mapping: {sql}"
    tree = _parsed(sql, DIALECT, wrong, _OF_REMOTE)
    if not isinstance(tree, exp.Select) or not _parts(tree) <= {"expressions", "from_", "from"}:
        raise InvalidValue(wrong, hint=_OF_REMOTE)
    tables = list(tree.find_all(exp.Table))
    if len(tables) != 1 or tables[0].name.lower() != remote_entity.lower() or tables[0].db or tables[0].alias:
        raise InvalidValue(f"A remote mapping reads its remote entity, {remote_entity}, alone: {sql}", hint=_OF_REMOTE)
    by_name: dict[str, exp.Expr] = {}
    for expression in tree.expressions:
        if isinstance(expression, exp.Star) and not any(expression.args.values()):
            by_name["*"] = expression
            continue
        if not expression.alias_or_name:
            raise InvalidValue(f"Without a name: {expression.sql(DIALECT)}, in {sql}", hint=_OF_REMOTE)
        _check_scalar(expression.unalias(), sql)
        if expression.alias_or_name in by_name:
            raise InvalidValue(f"Twice: {expression.alias_or_name}, in {sql}", hint=_OF_REMOTE)
        by_name[expression.alias_or_name] = expression.unalias()
    return by_name


def _check_scalar(tree: Any, text: str) -> None:
    from sqlglot import exp

    wrong = (exp.Query, exp.AggFunc, exp.Window, exp.Star, exp.Placeholder, exp.Parameter, exp.Command, exp.Unnest)
    for node in tree.walk():
        if isinstance(node, wrong):
            raise InvalidValue(
                f"Not an expression over one row: {node.sql(DIALECT)}, in {text}",
                hint="Queries, aggregates and windows go into source_sql.",
            )


def _with_value(text: str) -> str:
    """Replace each `{v}` in a text by a column; braces inside quotes are not placeholders.

    Raises:
        InvalidValue: other braces.
    """
    from sqlglot import tokenize
    from sqlglot.errors import SqlglotError

    try:
        tokens = list(tokenize(text, dialect=DIALECT))
    except SqlglotError as error:
        raise InvalidValue(f"Not a transformation: {text}", hint=_OF_VALUE) from error
    parts, end, at = [], 0, 0
    while at < len(tokens):
        if [token.text for token in tokens[at : at + 3]] == ["{", "v", "}"]:
            parts += [text[end : tokens[at].start], f" {VALUE} "]
            end = tokens[at + 2].end + 1
            at += 3
        elif tokens[at].token_type.name in ("L_BRACE", "R_BRACE"):
            raise InvalidValue(f"Only {{v}} stands in braces: {text}", hint=_OF_VALUE)
        else:
            at += 1
    return "".join([*parts, text[end:]])


def _parsed(text: str, dialect: str, wrong: str, hint: str) -> Any:
    from sqlglot import parse
    from sqlglot.errors import SqlglotError

    if len(text) > _MAX_LENGTH:
        raise InvalidValue(f"SQL in a document has at most {_MAX_LENGTH} characters", hint=hint)
    try:
        check_text(text, OWN)
        statements = parse(text, dialect=dialect)
    except (SqlglotError, InvalidQuery, RecursionError) as error:
        raise InvalidValue(wrong, hint=hint) from error
    if len(statements) != 1 or statements[0] is None:
        raise InvalidValue(wrong, hint=hint)
    return statements[0]


def _parts(tree: Any) -> set[str]:
    return {name for name, value in tree.args.items() if value}
