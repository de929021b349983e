"""Row conditions: the SQL that grants may use, validated when the grant is made, with one meaning in every engine.

Only constructs with the same meaning in every engine: columns, constants, comparisons, `AND OR NOT`, `IN`, `BETWEEN`,
`LIKE`, `IS NULL`, arithmetic, casts, and `recipient('attribute')`, which stands for an attribute of the caller. No
function reads a clock, a file or a random number, and there are no subqueries.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import Any, Final

from odfpy.data.sql_text import OWN, check_text
from odfpy.errors import InvalidQuery, did_you_mean
from odfpy.sharing.errors import InvalidCondition

_ATTRIBUTE: Final = "recipient"
_MAX_LENGTH: Final = 10_000
_MAX_KEPT: Final = 256  # conditions: each request for a table or a file needs those of its caller
_BEFORE: Final = "SELECT 1 WHERE "
_HINT: Final = (
    "Columns, constants, = <> < <= > >=, AND OR NOT, IN, BETWEEN, LIKE, IS NULL, + - * /, CAST, lower, upper, coalesce,"
    " and recipient('attribute')."
)


def check_condition(text: str, columns: Collection[str] | None = None) -> str:
    """Validate a condition, and return it unchanged.

    Args:
        text: the condition.
        columns: columns of the table, None if they are unknown.

    Raises:
        InvalidCondition: the condition is invalid; the message has the reason.
    """
    tree = _tree(text)
    if columns is not None:
        from sqlglot import exp

        known = {name.lower() for name in columns}
        for column in tree.find_all(exp.Column):
            if column.name.lower() not in known:
                raise InvalidCondition(
                    f"The table has no column {column.name!r}, which the condition names: {text}",
                    hint=did_you_mean(column.name, list(columns), otherwise=f"It has {', '.join(columns)}."),
                )
    return text


def condition_sql(text: str, attributes: Mapping[str, str]) -> str:
    """Return the condition for one recipient, in DuckDB's SQL.

    An attribute that the recipient lacks is NULL, so that no value equals it.

    Args:
        text: a validated condition.
        attributes: attributes of the recipient.

    Raises:
        InvalidCondition: the condition is invalid.
    """
    return _condition_sql(text, frozenset(attributes.items()))


@lru_cache(_MAX_KEPT)
def _condition_sql(text: str, attributes: frozenset[tuple[str, str]]) -> str:
    from sqlglot import exp

    values = dict(attributes)

    def filled(node: Any) -> Any:
        if not _is_attribute(node):
            return node
        value = values.get(node.expressions[0].this)
        return exp.null() if value is None else exp.Literal.string(value)

    return str(_tree(text).transform(filled).sql("duckdb", identify=True, comments=False))


@lru_cache(_MAX_KEPT)
def columns_of(text: str) -> frozenset[str]:
    """Return the names of the columns in a condition, as spelled there."""
    from sqlglot import exp

    return frozenset(column.name for column in _tree(text).find_all(exp.Column))


def _tree(text: str) -> Any:
    from sqlglot import exp, parse
    from sqlglot.errors import SqlglotError

    if len(text) > _MAX_LENGTH:
        raise InvalidCondition(f"A condition on rows has at most {_MAX_LENGTH} characters", hint=_HINT)
    try:
        check_text(text, OWN)
        found = parse(f"{_BEFORE}{text}", dialect="duckdb")
    except (SqlglotError, InvalidQuery, RecursionError) as error:
        raise InvalidCondition(f"Not a condition on rows{_why(error)}: {text}", hint=_HINT) from error
    if len(found) != 1 or not isinstance(found[0], exp.Select):
        raise InvalidCondition(f"Not a condition on rows: {text}", hint=_HINT)
    where = found[0].args.pop("where", None)
    if where is None or any(found[0].args.get(part) for part in found[0].args if part not in ("expressions", "kind")):
        raise InvalidCondition(f"Not a condition on rows: {text}", hint=_HINT)
    tree = where.this
    allowed = _allowed()
    for node in tree.walk():
        if _is_attribute(node):
            continue
        if not isinstance(node, allowed) or (isinstance(node, exp.Column) and node.table):
            raise InvalidCondition(f"A condition on rows has no {node.sql('duckdb')}: {text}", hint=_HINT)
    return tree


def _why(error: Exception) -> str:
    """Return the parser's error message with its position; empty if it has none."""
    from sqlglot.errors import ParseError, TokenError

    if isinstance(error, TokenError):
        return " (a quote has no end, perhaps)"
    if not isinstance(error, ParseError) or not error.errors:
        return ""
    first = error.errors[0]
    what = str(first.get("description") or "")
    if not what or what.startswith("Required keyword"):  # such a message names classes of the parser
        what = "something is missing"
    is_within = first.get("line", 1) > 1 or (first.get("col") or 0) > len(_BEFORE)
    near = f" near `{first['highlight']}`" if is_within and first.get("highlight") else ""
    return f" ({what[0].lower()}{what[1:]}{near})"


def _is_attribute(node: Any) -> bool:
    from sqlglot import exp

    return (
        isinstance(node, exp.Anonymous)
        and str(node.this).lower() == _ATTRIBUTE
        and len(node.expressions) == 1
        and isinstance(node.expressions[0], exp.Literal)
        and node.expressions[0].is_string
    )


def _allowed() -> tuple[type[Any], ...]:
    from sqlglot import exp

    return (
        exp.Column, exp.Identifier, exp.Literal, exp.Boolean, exp.Null, exp.Paren,
        exp.And, exp.Or, exp.Not, exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE,
        exp.In, exp.Between, exp.Like, exp.Is, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Neg,
        exp.Cast, exp.DataType, exp.DataTypeParam, exp.Lower, exp.Upper, exp.Coalesce,
    )  # fmt: skip
