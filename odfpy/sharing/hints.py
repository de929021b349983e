"""Hints of clients: predicates that clients apply to rows, used here to skip files (Delta Sharing protocol).

A hint that is not understood excludes no file. For each subexpression it is determined whether it can be true for a
row of a file, and whether it can be false: for NULL, neither. So `not` simply swaps the two.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

from odfpy.data.timestamp import Timestamp
from odfpy.errors import OdfError

if TYPE_CHECKING:
    import pyarrow as pa

_MAX_DEPTH: Final = 100
_MAX_LENGTH: Final = 100_000
_ZONE: Final = re.compile(r"(Z|[+-]\d\d:?\d\d)$", re.ASCII)
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)


@dataclass(frozen=True, slots=True)
class PossibleOutcomes:
    """The values that a condition can have among the rows of a file."""

    true: bool = True
    false: bool = True


ANY: Final = PossibleOutcomes()
Hint = Callable[[Mapping[str, Any]], PossibleOutcomes]
"""A condition: returns its possible outcomes, given the statistics of a file."""


class _Unknown(Exception):
    """A part of a hint that is not understood."""


class _Kind(Enum):
    """The type of a constant in a hint."""

    NUMBER = "number"
    STRING = "string"
    DATE = "date"
    TIMESTAMP = "timestamp"


@dataclass(frozen=True, slots=True)
class _Constant:
    """A constant that a column is compared with."""

    text: str
    kind: _Kind


def hints_of(sql: Sequence[str] | None, tree: str | None, schema: pa.Schema) -> list[Hint]:
    """Parse the hints of a request; those that are not understood are dropped.

    Args:
        sql: `predicateHints`, predicates in SQL.
        tree: `jsonPredicateHints`, a predicate as a JSON tree.
        schema: the columns that the client sees.
    """
    found = []
    for text in sql or ():
        try:
            found.append(_of_sql(text, schema))
        except (_Unknown, OdfError, ValueError, RecursionError):
            continue
    if tree is not None and len(tree) <= _MAX_LENGTH:
        with suppress(_Unknown, OdfError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
            found.append(_of_tree(json.loads(tree), schema, 0))
    return found


def may_have_rows(hints: Sequence[Hint], statistics: Mapping[str, Any]) -> bool:
    """Return whether a file may contain rows for which all hints are true."""
    return all(hint(statistics).true for hint in hints)


# --- In JSON ---------------------------------------------------------------------------------------------------------

_COMPARISONS: Final = {
    "equal": "=",
    "lessThan": "<",
    "lessThanOrEqual": "<=",
    "greaterThan": ">",
    "greaterThanOrEqual": ">=",
}
_JSON_KINDS: Final = {
    **dict.fromkeys(("int", "long", "short", "byte"), _Kind.NUMBER),
    "string": _Kind.STRING,
    "date": _Kind.DATE,
    "timestamp": _Kind.TIMESTAMP,
}
_MIRRORED: Final = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def _of_tree(node: Any, schema: pa.Schema, depth: int) -> Hint:
    if depth > _MAX_DEPTH:
        raise _Unknown
    kind, children = node["op"], node.get("children") or []
    if kind == "not" and len(children) == 1:
        return _negated(_of_tree(children[0], schema, depth + 1))
    if kind in ("and", "or"):
        parts = [_of_tree(child, schema, depth + 1) for child in children]
        return _all_of(parts) if kind == "and" else _any_of(parts)
    if kind == "isNull" and len(children) == 1 and children[0]["op"] == "column":
        return _is_null(_column(children[0]["name"], schema))
    if kind in _COMPARISONS and len(children) == 2:
        left, right = children
        operator = _COMPARISONS[kind]
        if left["op"] == "literal" and right["op"] == "column":
            left, right, operator = right, left, _MIRRORED[operator]
        if left["op"] == "column" and right["op"] == "literal":
            constant = _Constant(str(right["value"]), _JSON_KINDS[right["valueType"]])
            return _compared(_column(left["name"], schema), operator, constant)
    raise _Unknown


# --- In SQL ----------------------------------------------------------------------------------------------------------


def _of_sql(text: str, schema: pa.Schema) -> Hint:
    from sqlglot import parse_one
    from sqlglot.errors import SqlglotError

    try:
        return _of_expression(parse_one(text, dialect="spark"), schema)
    except SqlglotError as error:
        raise _Unknown from error


def _of_expression(node: Any, schema: pa.Schema) -> Hint:
    from sqlglot import exp

    operators = {exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">="}
    node = node.unnest()
    if isinstance(node, (exp.And, exp.Or)):
        parts = [_of_expression(node.left, schema), _of_expression(node.right, schema)]
        return _all_of(parts) if isinstance(node, exp.And) else _any_of(parts)
    if isinstance(node, exp.Not):
        return _negated(_of_expression(node.this, schema))
    if isinstance(node, exp.Is) and isinstance(node.this, exp.Column) and isinstance(node.expression, exp.Null):
        return _is_null(_column_of(node.this, schema))
    operator = operators.get(type(node))
    if operator is not None:
        left, right = node.left.unnest(), node.right.unnest()
        if isinstance(right, exp.Column):
            left, right, operator = right, left, _MIRRORED[operator]
        if isinstance(left, exp.Column):
            return _compared(_column_of(left, schema), operator, _constant(right))
    raise _Unknown


def _column_of(node: Any, schema: pa.Schema) -> pa.Field:
    """Return the column that a name refers to.

    Spark writes a field of a struct, `info.age`, like a column of a table, `sales.age`.
    """
    first = node.parts[0].name.lower()
    if len(node.parts) > 1 and any(field.name.lower() == first for field in schema):
        raise _Unknown
    return _column(node.name, schema)


def _constant(node: Any) -> _Constant:
    from sqlglot import exp

    match node:
        case exp.Literal():
            return _Constant(str(node.this), _Kind.STRING if node.is_string else _Kind.NUMBER)
        case exp.Neg():
            inner = _constant(node.this)
            if inner.kind is _Kind.NUMBER:
                return _Constant(f"-{inner.text}", _Kind.NUMBER)
        case exp.Cast():  # such as DATE '2024-01-01' or 5L
            inner, to = _constant(node.this), node.to
            if inner.kind is _Kind.NUMBER and to.this in exp.DataType.SIGNED_INTEGER_TYPES:
                return inner
            if inner.kind is _Kind.STRING and to.this == exp.DataType.Type.DATE:
                return _Constant(inner.text, _Kind.DATE)
            if inner.kind is _Kind.STRING and to.this == exp.DataType.Type.TIMESTAMPTZ:
                return _Constant(inner.text, _Kind.TIMESTAMP)
    raise _Unknown


# --- Conditions ------------------------------------------------------------------------------------------------------


def _column(name: str, schema: pa.Schema) -> pa.Field:
    found = [field for field in schema if field.name.lower() == name.lower()]
    if len(found) != 1:
        raise _Unknown
    return found[0]


def _compared(field: pa.Field, operator: str, constant: _Constant) -> Hint:
    value = _value_of(constant, field.type)

    def hint(statistics: Mapping[str, Any]) -> PossibleOutcomes:
        if _nulls(field.name, statistics) == "all":
            return PossibleOutcomes(true=False, false=False)
        low, high = (statistics.get(bound, {}).get(field.name) for bound in ("minValues", "maxValues"))
        if low is None or high is None:
            return ANY
        low, high = _bound(field.type, low), _bound(field.type, high)
        return {
            "=": PossibleOutcomes(low <= value <= high, not low == value == high),
            "<>": PossibleOutcomes(not low == value == high, low <= value <= high),
            "<": PossibleOutcomes(low < value, high >= value),
            "<=": PossibleOutcomes(low <= value, high > value),
            ">": PossibleOutcomes(high > value, low <= value),
            ">=": PossibleOutcomes(high >= value, low < value),
        }[operator]

    return hint


def _is_null(field: pa.Field) -> Hint:
    def hint(statistics: Mapping[str, Any]) -> PossibleOutcomes:
        nulls = _nulls(field.name, statistics)
        return PossibleOutcomes(true=nulls != "none", false=nulls != "all")

    return hint


def _all_of(parts: Sequence[Hint]) -> Hint:
    def hint(statistics: Mapping[str, Any]) -> PossibleOutcomes:
        found = [part(statistics) for part in parts]
        return PossibleOutcomes(all(outcomes.true for outcomes in found), any(outcomes.false for outcomes in found))

    return hint


def _any_of(parts: Sequence[Hint]) -> Hint:
    def hint(statistics: Mapping[str, Any]) -> PossibleOutcomes:
        found = [part(statistics) for part in parts]
        return PossibleOutcomes(any(outcomes.true for outcomes in found), all(outcomes.false for outcomes in found))

    return hint


def _negated(part: Hint) -> Hint:
    def hint(statistics: Mapping[str, Any]) -> PossibleOutcomes:
        found = part(statistics)
        return PossibleOutcomes(true=found.false, false=found.true)

    return hint


def _nulls(name: str, statistics: Mapping[str, Any]) -> str | None:
    """Return whether all, none or some of a column's values are null; None if unknown."""
    nulls, rows = statistics.get("nullCount", {}).get(name), statistics.get("numRecords")
    if nulls is None or rows is None:
        return None
    return "all" if nulls == rows else "some" if nulls else "none"


def _value_of(constant: _Constant, kind: pa.DataType) -> Any:
    """Convert a constant to a value that compares like the column.

    Clients first cast both sides to a common type, by their own rules. So a constant of another type than the column is
    not understood; nor is a time without time zone, which depends on the client's session.
    """
    import pyarrow as pa

    if pa.types.is_integer(kind) and constant.kind is _Kind.NUMBER:
        return int(constant.text)
    if pa.types.is_string(kind) and constant.kind is _Kind.STRING:
        return constant.text
    if pa.types.is_date(kind) and constant.kind in (_Kind.STRING, _Kind.DATE) and _DATE.fullmatch(constant.text):
        return date.fromisoformat(constant.text)
    if pa.types.is_timestamp(kind) and constant.kind in (_Kind.STRING, _Kind.TIMESTAMP):
        written = constant.text.replace(" ", "T")
        if _ZONE.search(written):
            return Timestamp.parse(written).nanos
    raise _Unknown


def _bound(kind: pa.DataType, text: Any) -> Any:
    """Convert a bound in the statistics to a value that compares like the column."""
    import pyarrow as pa

    if pa.types.is_integer(kind):
        return int(text)
    if pa.types.is_date(kind):
        return date.fromisoformat(str(text)[:10])
    if pa.types.is_timestamp(kind):
        written = str(text).replace(" ", "T")
        return Timestamp.parse(written if _ZONE.search(written) else f"{written}Z").nanos
    return str(text)
