"""Window functions with identifiers: a row is derived from the rows of its partition that its functions read.

The identifiers of a partition are collected once, in order; each row only has the positions of its first and last input
row. So the cost of a partition is proportional to its size, unless all of its rows are traced.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from odfpy.engine.spark.plan.builder import Builder
from odfpy.engine.spark.plan.catalyst import Node, columns, expression_name, items
from odfpy.engine.spark.provenance.identifiers import Identifiers

_UP_TO_HERE: Final = frozenset(("RowNumber", "Rank", "DenseRank"))
_NEIGHBOUR: Final = frozenset(("Lag", "Lead"))
_FARTHEST: Final = 1 << 30
"""More than the maximum number of rows whose identifiers are collected."""
_ONLY_ORDER: Final = "__odf_row"
"""A row number that the engine adds to keep rows in order (`odfpy.engine.spark.analysis.canonical`)."""


@dataclass(frozen=True, slots=True)
class _Places:
    """The range of positions in its partition that a row is derived from; expressions of type INT."""

    first: Node
    last: Node


class _Window:
    def __init__(self, ids: Identifiers, plan: Node, below: Node) -> None:
        self.ids = ids
        self.build: Builder = ids.build
        self.plan = plan
        self.below = below
        self.partition = items(plan.partitionSpec())
        self.order = items(plan.orderSpec())
        self.made: list[Node] = []
        call = self.build.aggregate(self.build.expression("aggregate.CollectList", ids.of(below)))
        self.all = self._beside(call, self.build.rows_until("UnboundedFollowing"))
        self.one = ids.catalyst.integer(1)
        self.count = self.build.expression("Size", self.all)

    def _beside(self, function: Node, frame: Node) -> Node:
        """Return a function over the same partitions as an additional column."""
        over = self.build.over(function, self.partition, self.order, frame)
        self.made.append(self.ids.catalyst.alias(over, "__odf_made"))
        return self.made[-1].toAttribute()

    def annotated(self) -> Node:
        functions = items(self.plan.windowExpressions())
        if not self.order:  # then all functions read whole partitions
            partitions = self.build.window([*functions, *self.made], self.partition, [], self.below)
            return self.ids.with_ids(columns(self.plan), self.build.expression("Flatten", self.all), partitions)
        self.place = self._beside(self.build.expression("RowNumber"), self.build.rows_until("CurrentRow"))
        places = [self._places(function.child()) for function in functions if function.name() != _ONLY_ORDER]
        plan = self.build.window([*functions, *self.made], self.partition, self.order, self.below)
        first = self._of("Least", [self.place, *(place.first for place in places)])
        last = self._of("Greatest", [self.place, *(place.last for place in places)])
        first = self._of("Greatest", [first, self.one])
        last = self._of("Least", [last, self.count])
        length = self._sum(self._less(last, first), self.one)
        identifiers = self.build.expression("Flatten", self.build.expression("Slice", self.all, first, length))
        return self.ids.with_ids(columns(self.plan), identifiers, plan)

    def _places(self, window: Node) -> _Places:
        function, frame = window.windowFunction(), window.windowSpec().frameSpecification()
        name = expression_name(function)
        if name in _UP_TO_HERE:
            return _Places(self.one, self.place)
        if name in _NEIGHBOUR and not function.ignoreNulls() and function.offset().foldable():
            other = self._beyond(function.offset())
            return _Places(other, other)
        if (
            name not in ("aggregate.AggregateExpression", "NthValue")
            or expression_name(frame) != "SpecifiedWindowFrame"
        ):
            return _Places(self.one, self.count)
        if frame.frameType().toString() == "RowFrame":
            return _Places(self._row(frame.lower(), self.one), self._row(frame.upper(), self.count))
        return self._range(frame)

    def _row(self, bound: Node, otherwise: Node) -> Node:
        """Return the position of a bound of ROWS; `otherwise` if there is none."""
        name = expression_name(bound)
        if name.startswith("Unbounded"):
            return otherwise
        return self.place if name == "CurrentRow" else self._beyond(bound)

    def _beyond(self, distance: Node) -> Node:
        """Return a position at a distance from that of a row, limited so that it cannot overflow."""
        number = max(-_FARTHEST, min(int(distance.eval(None)), _FARTHEST))
        return self._sum(self.place, self.ids.catalyst.integer(number))

    def _range(self, frame: Node) -> _Places:
        """Return the positions of a RANGE frame, by counting: peers are adjacent."""
        upper = frame.upper()
        if expression_name(upper) == "UnboundedFollowing":
            last = self.count
        else:
            begin = self.build.range_until(upper)
            last = self.build.cast(self._beside(self._counting(), begin), "int")
        inside = self.build.cast(self._beside(self._counting(), frame), "int")
        return _Places(self._sum(self._less(last, inside), self.one), last)

    def _counting(self) -> Node:
        return self.build.aggregate(self.build.expression("aggregate.Count", self.ids.catalyst.seq([self.one])))

    def _of(self, name: str, parts: list[Node]) -> Node:
        return parts[0] if len(parts) == 1 else self.build.expression(name, self.ids.catalyst.seq(parts))

    def _sum(self, left: Node, right: Node) -> Node:
        return self.build.expression("Add", left, right)

    def _less(self, left: Node, right: Node) -> Node:
        return self.build.expression("Subtract", left, right)


def window(ids: Identifiers, plan: Node, below: Node) -> Node:
    """Return a window operator over annotated rows.

    Args:
        ids: makes columns of identifiers.
        plan: the operator.
        below: annotated rows below.
    """
    return _Window(ids, plan, below).annotated()


def after_offset(ids: Identifiers, plan: Node, below: Node) -> Node:
    """Apply OFFSET to sorted, annotated rows: a row is also derived from those that precede it.

    Args:
        ids: the identifiers.
        plan: the OFFSET.
        below: the annotated plan below.
    """
    build, catalyst = ids.build, ids.catalyst
    order = items(below.order()) if expression_name(below).endswith("Sort") else []
    call = build.aggregate(build.expression("aggregate.CollectList", ids.of(below)))
    everything = catalyst.alias(build.over(call, [], order, build.rows_until("UnboundedFollowing")), "__odf_made")
    with_all = build.window([everything], [], order, below)
    identifiers = build.expression("Flatten", everything.toAttribute())
    marked = ids.with_ids(columns(plan), identifiers, build.sort(order, with_all) if order else with_all)
    above = plan.withNewChildren(catalyst.seq([marked]))
    return ids.with_ids(columns(plan), ids.of(marked), above)
