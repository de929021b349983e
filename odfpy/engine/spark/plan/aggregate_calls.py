"""Calls of aggregate functions in an `Aggregate` operator: which there are, and the operator with others for them."""

from __future__ import annotations

from collections.abc import Mapping

from odfpy.engine.spark.plan.builder import Builder
from odfpy.engine.spark.plan.catalyst import Node, expression_name, items, subtree


def call_id(call: Node) -> str:
    """Return what identifies a call of an aggregate function."""
    return str(call.resultId().toString())


def different_calls(node: Node) -> list[Node]:
    """The calls of aggregate functions in an operator, each once."""
    parts = (part for column in items(node.aggregateExpressions()) for _, part in subtree(column) if is_call(part))
    return list({call_id(part): part for part in parts}.values())


def columns_with(
    build: Builder, node: Node, results: Mapping[str, Node], groupings: list[Node], groups: list[Node]
) -> list[Node]:
    """The columns of an `Aggregate` with other expressions for some calls, by their ids, and for what it groups by.

    Args:
        build: makes expressions.
        node: an output expression of the aggregate.
        results: results of functions by their SQL.
        groupings: the grouping expressions.
        groups: the columns that hold their values.
    """

    def found(part: Node) -> Node | None:
        if is_call(part):
            return results.get(call_id(part), part)
        return next(
            (column for given, column in zip(groupings, groups, strict=True) if part.semanticEquals(given)), None
        )

    renewed = []
    for column in items(node.aggregateExpressions()):
        changed = build.substitute(column, found)
        renewed.append(
            changed
            if changed is column or expression_name(column) == "Alias"
            else build.catalyst.alias(changed, column.name(), column.exprId())
        )
    return renewed


def is_call(expression: Node) -> bool:
    """Return whether an expression is a call of an aggregate function."""
    return expression_name(expression) == "aggregate.AggregateExpression"
