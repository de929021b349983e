"""Column usage: which columns of a query its result depends on, apart from comparisons in join conditions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from odfpy.engine.spark.batch.conditions import compared_by_between, parts_of
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

_COMPARISONS = ("GreaterThan", "GreaterThanOrEqual", "LessThan", "LessThanOrEqual")
_WHOLE_ROWS = ("Distinct", "Except", "Intersect")


class Uses:
    """The columns that a query uses.

    Attributes:
        shown: ids of columns that the result, or the presence of rows in it, depends on.
        compared: how often a join compares a column directly, by id; such a comparison selects pairs, but does not show
            the column.
    """

    def __init__(self, plan: Node) -> None:
        self.shown: set[int] = set()
        self.compared: Counter[int] = Counter()
        self._definitions: dict[int, Node] = {}
        plans = list(nested_queries(plan))
        self._nodes = [operator.node for query in plans for operator in operators(query)]
        for node in self._nodes:
            if operator_name(node) == "WithCTE":
                self._definitions |= {item.id(): item.child() for item in items(node.cteDefs())}
        for query in plans:
            self.shown |= {column_id(column) for column in columns(query)}
        for condition in self._conditions():
            self._look_at(condition)
        self._follow()

    def _conditions(self) -> Iterator[Node]:
        """Yield the conditions of joins, including a WHERE directly above an inner join."""
        for node in self._nodes:
            if operator_name(node) == "Join" and node.condition().isDefined():
                yield node.condition().get()
            elif is_where_above_inner_join(node):
                yield node.condition()

    def _look_at(self, condition: Node) -> None:
        for part in parts_of(condition):
            name = expression_name(part)
            if name == "Between":
                sides: Iterable[Node] = compared_by_between(part)
            elif name in _COMPARISONS:
                sides = children(part)
            else:
                self.shown |= _read([part])
                continue
            for side in sides:
                if expression_name(side) == "AttributeReference":
                    self.compared[column_id(side)] += 1
                else:
                    self.shown |= _read([side])

    def _follow(self) -> None:
        """Follow columns down to those that they are computed from, until a fixpoint is reached."""
        before = -1
        while before != len(self.shown):
            before = len(self.shown)
            for node in self._nodes:
                self.shown |= self._made_of(node)

    def _made_of(self, node: Node) -> set[int]:
        name = operator_name(node)
        if name == "Join" or is_where_above_inner_join(node):
            return set()
        if name in _WHOLE_ROWS:
            return {column_id(column) for child in children(node) for column in columns(child)}
        match name:
            case "Project":
                return _read(column for column in selected(node) if column_id(column) in self.shown)
            case "Aggregate":
                outputs = [item for item in items(node.aggregateExpressions()) if column_id(item) in self.shown]
                return _read([*outputs, *items(node.groupingExpressions())])
            case "Union":
                return {below for child in children(node) for below in self._same(node, child)}
            case "CTERelationRef":
                return self._same(node, self._definitions[node.cteId()])
        return _read(expressions_of(node))

    def _same(self, node: Node, child: Node) -> set[int]:
        """Return the columns of a child that correspond, by position, to shown columns of a node."""
        pairs = zip(columns(node), columns(child), strict=True)
        return {column_id(below) for above, below in pairs if column_id(above) in self.shown}


def is_where_above_inner_join(node: Node) -> bool:
    """Return whether a node is a WHERE directly above an inner join, so that it may be part of the join condition."""
    return operator_name(node) == "Filter" and is_inner(node.child())


def is_inner(node: Node) -> bool:
    """Return whether a node is an inner join."""
    return operator_name(node) == "Join" and str(node.joinType().toString()) in ("Inner", "Cross")


def _read(expressions: Iterable[Node]) -> set[int]:
    return {column_id(column) for expression in expressions for column in columns_read(expression)}
