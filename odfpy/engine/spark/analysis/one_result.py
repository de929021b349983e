"""Aggregates with several correct results, rewritten so that they always give the same one.

    first(k) ... GROUP BY k                  max(k): all rows of the group have the same
    collect_list(v), to be used as a set     sort_array(collect_list(v))
    lower(name) ... GROUP BY name            the same of the least of the texts that are equal by their collation

The result of an aggregate is compared with that of an earlier pull, so it must not be another correct result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from odfpy.engine.spark.analysis.arbitrary import leaves_open
from odfpy.engine.spark.analysis.order import is_sortable
from odfpy.engine.spark.analysis.unordered import CALL, COLLECTED, is_known_in_group
from odfpy.engine.spark.plan.builder import Builder
from odfpy.engine.spark.plan.catalyst import Node, children, expression_name, items

Renew = Callable[[Node, Node | None], Node | None]
"""Given an expression and its parent, returns a replacement; None to continue with its parts."""


def with_one_result(build: Builder, node: Node) -> Node:
    """Return an `Aggregate` with the same columns and a single possible result, as described above.

    Args:
        build: makes nodes.
        node: the operator, in which `odfpy.engine.spark.analysis.arbitrary` finds nothing to refuse.
    """
    groupings, outputs = items(node.groupingExpressions()), items(node.aggregateExpressions())
    collated = [grouping for grouping in groupings if "COLLATE" in grouping.dataType().sql()]

    def renew(part: Node, parent: Node | None) -> Node | None:
        if expression_name(part) == CALL:
            return _call(build, part, parent, groupings)
        if any(part.semanticEquals(expression) for expression in collated):
            return _least_text(build, part)
        return None

    renewed = [_renewed(build, output, None, renew) for output in outputs]
    if all(new is old for new, old in zip(renewed, outputs, strict=True)):
        return node
    named = [
        new if new is old or expression_name(new) == "Alias" else build.catalyst.alias(new, old.name(), old.exprId())
        for new, old in zip(renewed, outputs, strict=True)
    ]
    return build.catalyst.aggregate(groupings, named, node.child())


def _renewed(build: Builder, part: Node, parent: Node | None, renew: Renew) -> Node:
    if (other := renew(part, parent)) is not None:
        return other
    before = children(part)
    after = [_renewed(build, child, part, renew) for child in before]
    if all(new is old for new, old in zip(after, before, strict=True)):
        return part
    return part.withNewChildren(build.catalyst.seq(after))


def _call(build: Builder, call: Node, parent: Node | None, groupings: Sequence[Node]) -> Node:
    function = call.aggregateFunction()
    if is_known_in_group(call, groupings):
        greatest = build.expression("aggregate.Max", children(function)[0])
        return call.withNewChildren(build.catalyst.seq([greatest, *children(call)[1:]]))
    if expression_name(function) in COLLECTED and leaves_open(parent) and is_sortable(function):
        return build.expression("SortArray", call, build.catalyst.boolean(True))
    return call


def _least_text(build: Builder, grouping: Node) -> Node:
    """Return the least text of a group by its bytes, with the collation that it is grouped by."""
    least = build.aggregate(build.expression("aggregate.Min", build.cast(grouping, "string")))
    return build.cast_to(least, grouping.dataType())
