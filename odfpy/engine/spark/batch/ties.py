"""Rows that are equal in an ORDER BY follow each other by all their columns, ascending, nulls first.

SQL leaves open which of them comes first. The law of the engine says it (docs/engine.md); so does the batch, where a
result depends on it: for LIMIT, and for window functions that count rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from odfpy.engine.spark.plan.builder import Builder
from odfpy.engine.spark.plan.catalyst import Catalyst, Node, children, columns, expression_name, items

_OF_PEERS: Final = ("Rank", "DenseRank", "PercentRank", "CumeDist")


def with_ties_in_limit(catalyst: Catalyst, sort: Node) -> Node:
    """A `Sort` that no two rows are equal to, unless they are the same."""
    build, order = Builder(catalyst), items(sort.order())
    return build.sort([*order, *_more(build, sort.child(), order)], sort.child())


def with_ties_in_window(catalyst: Catalyst, window: Node) -> Node:
    """A `Window` of which the functions that count rows look at them in such an order."""
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
    """Sort keys of all columns that are none yet; texts that are equal by their collation follow by their bytes."""
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
    """Return whether it matters for a function which of two equal rows is first."""
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
