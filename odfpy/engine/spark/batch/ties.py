"""Ties in ORDER BY: rows that are equal in it are ordered by all their columns, ascending, nulls first.

SQL leaves their order open. The engine defines it (docs/engine.md), and so does the batch where a result depends on it:
for LIMIT, and for window functions that count rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from odfpy.engine.spark.plan.builder import Builder
from odfpy.engine.spark.plan.catalyst import Catalyst, Node, children, columns, expression_name, items

_OF_PEERS: Final = ("Rank", "DenseRank", "PercentRank", "CumeDist")


def with_ties_in_limit(catalyst: Catalyst, sort: Node) -> Node:
    """Return a `Sort` in which only identical rows are equal."""
    build, order = Builder(catalyst), items(sort.order())
    return build.sort([*order, *_more(build, sort.child(), order)], sort.child())


def with_ties_in_window(catalyst: Catalyst, window: Node) -> Node:
    """Return a `Window` whose row-counting functions process rows in such a total order."""
    build = Builder(catalyst)
    partition, order = items(window.partitionSpec()), items(window.orderSpec())
    calls = items(window.windowExpressions())
    counting = [call for call in calls if _counts_rows(call.child())]
    if not counting:
        return window
    keys = [*order, *_more(build, window.child(), order)]
    below = build.window([_ordered(build, call, partition, keys) for call in counting], partition, keys, window.child())
    others = [call for call in calls if call not in counting]
    if others:
        below = build.window(others, partition, order, below)
    return catalyst.project(columns(window), below)


def _more(build: Builder, child: Node, order: Sequence[Node]) -> list[Node]:
    """Return sort keys for all other columns; collated texts that are equal are then ordered by their bytes."""
    keys: list[Node] = []
    for column in columns(child):
        if not _is_in(column, order):
            keys.append(build.ascending(column))
        if "COLLATE" in column.dataType().sql():
            keys.append(build.ascending(build.cast(column, "string")))
    return [key for key in keys if key.checkInputDataTypes().isSuccess()]


def _is_in(column: Node, order: Sequence[Node]) -> bool:
    return any(column.semanticEquals(key.child()) for key in order)


def _counts_rows(over: Node) -> bool:
    """Return whether the result of a window function depends on which of two equal rows comes first."""
    name, frame = expression_name(over.windowFunction()), over.windowSpec().frameSpecification()
    if name in _OF_PEERS:
        return False
    if name not in ("aggregate.AggregateExpression", "NthValue"):
        return True
    ends = [expression_name(end) for end in (frame.lower(), frame.upper())]
    if ends == ["UnboundedPreceding", "UnboundedFollowing"]:
        return name == "NthValue"
    return str(frame.frameType().toString()) == "RowFrame" or name == "NthValue"


def _ordered(build: Builder, call: Node, partition: Sequence[Node], keys: Sequence[Node]) -> Node:
    (over,) = children(call)
    renewed = build.over(over.windowFunction(), partition, keys, over.windowSpec().frameSpecification())
    return call.withNewChildren(build.catalyst.seq([renewed]))
