"""Join conditions taken apart: their conjuncts, equalities between the two sides, and inequalities."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from odfpy.engine.spark.incremental.properties.plan_info import PlanInfo
from odfpy.engine.spark.plan.catalyst import Node, children, column_id, columns_read, expression_name, items


def conjuncts_of(condition: Node) -> Iterator[Node]:
    """Yield the conjuncts of a condition, all of which have to hold."""
    if expression_name(condition) == "And":
        for child in children(condition):
            yield from conjuncts_of(child)
    else:
        yield condition


def _sides_of(expression: Node, left: PlanInfo, right: PlanInfo) -> str:
    ids = {column_id(column) for column in columns_read(expression)}
    if not ids:
        return "none"
    if ids <= {column_id(column) for column in left.columns}:
        return "left"
    return "right" if ids <= {column_id(column) for column in right.columns} else "both"


def equal_pairs(conjuncts: Sequence[Node], left: PlanInfo, right: PlanInfo) -> list[tuple[Node, Node, bool]]:
    """Return pairs of a left and a right expression that have to be equal, each with whether NULL equals NULL in it.

    Args:
        conjuncts: the conjuncts of the condition.
        left: properties of the left side.
        right: properties of the right side.
    """
    pairs = []
    for conjunct in conjuncts:
        name = expression_name(conjunct)
        if name not in ("EqualTo", "EqualNullSafe"):
            continue
        is_null_safe = name == "EqualNullSafe"
        a, b = children(conjunct)
        match (_sides_of(a, left, right), _sides_of(b, left, right)):
            case ("left", "right"):
                pairs.append((a, b, is_null_safe))
            case ("right", "left"):
                pairs.append((b, a, is_null_safe))
    return pairs


def ordered_pairs(conjunct: Node) -> list[tuple[Node, Node, bool]]:
    """Return pairs (smaller, greater, strict) of expressions that a conjunct compares."""
    name = expression_name(conjunct)
    match name:
        case "GreaterThan" | "GreaterThanOrEqual":
            a, b = children(conjunct)
            return [(b, a, name == "GreaterThan")]
        case "LessThan" | "LessThanOrEqual":
            a, b = children(conjunct)
            return [(a, b, name == "LessThan")]
        case "EqualTo":
            a, b = children(conjunct)
            return [(a, b, False), (b, a, False)]
        case "Between":
            value, lower, upper = between(conjunct)
            return [(lower, value, False), (value, upper, False)]
    return []


def fixed_columns(condition: Node, row_numbers: Collection[int]) -> frozenset[int]:
    """Return the ids of columns that have the same value in all rows that pass a condition.

    Args:
        condition: the condition.
        row_numbers: ids of columns that count from 1, for which `<= 1` leaves a single value.
    """
    fixed = set()
    for conjunct in conjuncts_of(condition):
        if expression_name(conjunct) in ("EqualTo", "EqualNullSafe"):
            fixed |= {column_id(a) for a, b in _both_ways(conjunct) if b.foldable() and _is_column(a)}
        for smaller, greater, strict in ordered_pairs(conjunct):
            if _is_column(smaller) and column_id(smaller) in row_numbers and greater.foldable():
                limit = greater.eval(None)
                if limit is not None and limit <= (2 if strict else 1):
                    fixed.add(column_id(smaller))
    return frozenset(fixed)


def _both_ways(equality: Node) -> list[tuple[Node, Node]]:
    a, b = children(equality)
    return [(a, b), (b, a)]


def _is_column(expression: Node) -> bool:
    return expression_name(expression) == "AttributeReference"


def between(condition: Node) -> tuple[Node, Node, Node]:
    """Return the value and the bounds of a BETWEEN, from the comparisons that replace it.

    Spark updates only these comparisons when it changes a plan.
    """
    comparisons = condition.replacement()
    value = None
    if expression_name(comparisons) == "With":
        (definition,) = items(comparisons.defs())
        value, comparisons = definition.child(), comparisons.child()
    (first, lower), (_, upper) = (children(comparison) for comparison in children(comparisons))
    return first if value is None else value, lower, upper
