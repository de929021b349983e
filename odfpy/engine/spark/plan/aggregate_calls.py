"""Calls of aggregate functions in an `Aggregate` operator, and their replacement."""

from __future__ import annotations

from collections.abc import Mapping

from odfpy.engine.spark.plan.builder import Builder
from odfpy.engine.spark.plan.catalyst import Node, expression_name, items, subtree


def call_id(call: Node) -> str:
    """Return the identity of a call of an aggregate function."""
    return str(call.resultId().toString())


def different_calls(node: Node) -> list[Node]:
    """Return the distinct calls of aggregate functions in an operator."""
    parts = (part for column in items(node.aggregateExpressions()) for _, part in subtree(column) if is_call(part))
    return list({call_id(part): part for part in parts}.values())


def columns_with(
    build: Builder, node: Node, results: Mapping[str, Node], groupings: list[Node], groups: list[Node]
) -> list[Node]:
    """Return the columns of an `Aggregate` with calls and grouping expressions replaced.

    Args:
        build: makes expressions.
        node: the `Aggregate` operator.
        results: replacements of calls, by id of the call.
        groupings: the grouping expressions.
        groups: the columns that hold their values.
    """

    def replacement(part: Node) -> Node | None:
        if is_call(part):
            return results.get(call_id(part), part)
        return next(
            (column for given, column in zip(groupings, groups, strict=True) if part.semanticEquals(given)), None
        )

    renewed = []
    for column in items(node.aggregateExpressions()):
        changed = build.substitute(column, replacement)
        renewed.append(
            changed
            if changed is column or expression_name(column) == "Alias"
            else build.catalyst.alias(changed, column.name(), column.exprId())
        )
    return renewed


def is_call(expression: Node) -> bool:
    """Return whether an expression is a call of an aggregate function."""
    return expression_name(expression) == "aggregate.AggregateExpression"
