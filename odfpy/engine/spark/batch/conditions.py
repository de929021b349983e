"""Conditions taken apart: conjuncts, and the comparisons that they make."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from odfpy.engine.spark.plan.catalyst import Node, children, column_id, columns_read, expression_name, items, subtree

QUERIES: Final = frozenset(("ScalarSubquery", "Exists", "ListQuery", "InSubquery", "LateralSubquery"))
"""Expressions that contain a query of their own."""


@dataclass(frozen=True, slots=True)
class NotAfter:
    """The fact that one expression is not greater than another."""

    smaller: Node
    greater: Node


def parts_of(condition: Node) -> Iterator[Node]:
    """Yield the conjuncts of a condition, all of which have to hold."""
    if expression_name(condition) == "And":
        for child in children(condition):
            yield from parts_of(child)
    else:
        yield condition


def not_after(condition: Node) -> list[NotAfter]:
    """Return what a condition implies about which of two expressions is not greater."""
    match expression_name(condition):
        case "LessThan" | "LessThanOrEqual":
            return [NotAfter(*children(condition))]
        case "GreaterThan" | "GreaterThanOrEqual":
            greater, smaller = children(condition)
            return [NotAfter(smaller, greater)]
        case "EqualTo":
            one, other = children(condition)
            return [NotAfter(one, other), NotAfter(other, one)]
        case "Between":
            value, low, high = compared_by_between(condition)
            return [NotAfter(low, value), NotAfter(value, high)]
    return []


def compared_by_between(condition: Node) -> tuple[Node, Node, Node]:
    """Return the value and the bounds of a BETWEEN, from the two comparisons that Spark replaces it by."""
    pair, shared = condition.replacement(), None
    if expression_name(pair) == "With":  # a value that is computed once
        shared, pair = items(pair.defs())[0].child(), pair.child()
    (value, low), (_, high) = (children(comparison) for comparison in children(pair))
    return value if shared is None else shared, low, high


def reads_only(expression: Node, columns: Iterable[Node]) -> bool:
    """Return whether an expression reads some columns, all of which are among the given ones."""
    read = {column_id(column) for column in columns_read(expression)}
    return bool(read) and read <= {column_id(column) for column in columns}


def has_query(expression: Node) -> bool:
    """Return whether an expression contains a query."""
    return any(name in QUERIES for name, _ in subtree(expression))
