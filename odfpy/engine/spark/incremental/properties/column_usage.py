"""Column usage: which columns of a query influence its result, beyond being passed on and then ignored."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from odfpy.engine.spark.incremental.properties.comparisons import between, conjuncts_of, ordered_pairs
from odfpy.engine.spark.incremental.properties.keys import renames
from odfpy.engine.spark.plan.catalyst import (
    Node,
    children,
    column_id,
    columns,
    columns_read,
    expression_name,
    expressions_of,
    items,
    operator_name,
    selected,
)
from odfpy.engine.spark.plan.operators import nested_queries, operators

_COMPARISONS: Final = ("GreaterThan", "GreaterThanOrEqual", "LessThan", "LessThanOrEqual")


@dataclass(frozen=True, slots=True)
class Uses:
    """The columns that a query uses.

    Attributes:
        used: ids of columns that the result, or the presence of a row in it, depends on.
        compared: for each column, how often a join compares it directly, by id; such a comparison does not count as
            use.
        limits: the greatest value of a window function with which a row passes a filter, by id of its column.
    """

    used: frozenset[int]
    compared: Mapping[int, int]
    limits: Mapping[int, int]


def uses_of(plan: Node) -> Uses:
    """Return how an analyzed query uses its columns."""
    plans = list(nested_queries(plan))
    nodes = [operator.node for query in plans for operator in operators(query)]
    definitions = {
        item.id(): item.child() for node in nodes if operator_name(node) == "WithCTE" for item in items(node.cteDefs())
    }
    used = {column_id(column) for query in plans for column in columns(query)}
    compared: Counter[int] = Counter()
    for node in nodes:
        if operator_name(node) == "Join" and node.condition().isDefined():
            bare, others = _condition(node.condition().get())
            compared.update(bare)
            used |= others
    before = -1
    while len(used) != before:
        before = len(used)
        for node in nodes:
            used |= _needed(node, used, definitions)
    return Uses(frozenset(used), compared, {key: limit for query in plans for key, limit in _limits(query, {})})


def _limits(plan: Node, limits: Mapping[int, int]) -> Iterator[tuple[int, int]]:
    """Yield columns of window functions with their greatest values, if only a filter directly above reads them."""
    below: dict[int, int] = {}
    match operator_name(plan):
        case "SubqueryAlias" | "View" | "expressions.PipeOperator":
            below = dict(limits)
        case "Project":
            same = renames(selected(plan))
            below = {same.get(key, key): limit for key, limit in limits.items()}
        case "Filter":
            below = dict(limits)
            for conjunct in conjuncts_of(plan.condition()):
                for smaller, greater, strict in ordered_pairs(conjunct):
                    if expression_name(smaller) == "AttributeReference" and greater.foldable():
                        limit = greater.eval(None)
                        if isinstance(limit, int):
                            key = column_id(smaller)
                            below[key] = min(limit - strict, below.get(key, limit))
        case "Window":
            functions = {column_id(item) for item in items(plan.windowExpressions())}
            yield from ((key, limit) for key, limit in limits.items() if key in functions)
    for child in children(plan):
        yield from _limits(child, below)


def _needed(node: Node, used: set[int], definitions: Mapping[int, Node]) -> set[int]:
    """Return the columns that an operator reads from below when some of its own columns are used."""
    match operator_name(node):
        case "Join":
            return set()
        case "Project":
            return _read(column for column in selected(node) if column_id(column) in used)
        case "Aggregate":
            outputs = (item for item in items(node.aggregateExpressions()) if column_id(item) in used)
            return _read(outputs) | _read(items(node.groupingExpressions()))
        case "Union":
            wanted = [at for at, column in enumerate(columns(node)) if column_id(column) in used]
            return {column_id(columns(child)[at]) for child in children(node) for at in wanted}
        case "Distinct" | "Except" | "Intersect" | "Deduplicate":
            return {column_id(column) for child in children(node) for column in columns(child)}
        case "CTERelationRef":
            pairs = zip(columns(definitions[node.cteId()]), columns(node), strict=True)
            return {column_id(inner) for inner, outer in pairs if column_id(outer) in used}
    return _read(expressions_of(node))


def _read(expressions: Iterable[Node]) -> set[int]:
    return {column_id(column) for expression in expressions for column in columns_read(expression)}


def _condition(condition: Node) -> tuple[list[int], set[int]]:
    """Return the columns that a condition compares directly, and those that it reads in other ways."""
    compared: list[int] = []
    others: set[int] = set()
    for conjunct in conjuncts_of(condition):
        is_between = expression_name(conjunct) == "Between"
        if expression_name(conjunct) not in _COMPARISONS and not is_between:
            others |= _read([conjunct])
            continue
        for side in between(conjunct) if is_between else children(conjunct):
            if expression_name(side) == "AttributeReference":
                compared.append(column_id(side))
            else:
                others |= _read([side])
    return compared, others
