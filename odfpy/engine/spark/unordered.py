"""What depends on an order of rows that a query does not say, found in the operators of its analyzed plan."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from odfpy.engine.spark.catalyst import Node, children, columns, expression_name, find_column, items
from odfpy.engine.spark.failures import ORDER_THE_WINDOW
from odfpy.engine.spark.functions import OF_ORDER
from odfpy.engine.spark.operators import Operator
from odfpy.engine.spark.order import may_hide

_CALL: Final = "aggregate.AggregateExpression"
_COLLECTED: Final = ("aggregate.CollectList", "aggregate.CollectSet")
_ORDER_OF_NO_USE: Final = ("SortArray", "Size", "ArraySize", "ArrayMin", "ArrayMax")
_GIVE_VALUES: Final = ("aggregate.Min", "aggregate.Max", "aggregate.Mode", *_COLLECTED)
_ONE_OF_EQUAL: Final = ("Distinct", "Deduplicate", "Intersect", "Except")
_NAMES: Final = re.compile("#\\d+L?|'")


@dataclass(frozen=True, slots=True)
class Unordered:
    """A place in a query that is not a function of its rows alone.

    Attributes:
        node: the expression or operator.
        reason: rest of a sentence that begins with its text.
        hint: what to write instead.
    """

    node: Node
    reason: str
    hint: str


def unordered(operator: Operator) -> Iterator[Unordered]:
    """All such places in one operator."""
    node = operator.node
    if operator.name == "Aggregate":
        for column in items(node.aggregateExpressions()):
            yield from _in_group(column, None)
        for grouping in items(node.groupingExpressions()):
            yield from _ambiguous(grouping, grouping)
    elif operator.name == "Window":
        for column in items(node.windowExpressions()):
            yield from _in_window(column.child())
    elif operator.name in _ONE_OF_EQUAL:
        for column in columns(node):
            yield from _ambiguous(column, node)


def _in_group(expression: Node, parent: Node | None) -> Iterator[Unordered]:
    if expression_name(expression) != _CALL:
        for child in children(expression):
            yield from _in_group(child, expression)
        return
    function = expression.aggregateFunction()
    name = expression_name(function)
    if name in OF_ORDER and not _is_sorted(function, parent):
        yield Unordered(expression, "depends on the order of the rows in a group", OF_ORDER[name])
    elif name in _GIVE_VALUES:
        yield from _ambiguous(children(function)[0], expression)


def _is_sorted(function: Node, parent: Node | None) -> bool:
    """Whether the order of rows makes no difference to the result in the end."""
    name = expression_name(function)
    if name == "aggregate.Mode":
        return bool(function.reverseOpt().isDefined())
    if name == "aggregate.ListAgg":
        return _orders_by_itself(function)
    if name not in _COLLECTED or parent is None:
        return False
    used = expression_name(parent)
    return used in _ORDER_OF_NO_USE or (used == "ArraySort" and _has_plain_order(parent))


def _orders_by_itself(function: Node) -> bool:
    """Whether rows that are equal in the keys of WITHIN GROUP have the same value."""
    keys = [key.child() for key in items(function.orderExpressions()) if not may_hide(key.child().dataType())]
    plain = [key for key in keys if expression_name(key) == "AttributeReference"]
    value = function.child()
    if any(key.semanticEquals(value) for key in keys):
        return True
    read = value.references().toSeq()
    return bool(plain) and all(find_column(plain, column) is not None for column in items(read))


def _has_plain_order(sort: Node) -> bool:
    """Whether `array_sort` compares the values themselves, and not by a function of the query."""
    default = sort.function().toString()
    plain = (
        "lambdafunction(if ((isnull(lambda left) AND isnull(lambda right))) 0 else if (isnull(lambda left)) 1 "
        "else if (isnull(lambda right)) -1 else if ((lambda left < lambda right)) -1 "
        "else if ((lambda left > lambda right)) 1 else 0, lambda left, lambda right, false)"
    )
    return _NAMES.sub("", default) == plain


def _in_window(window: Node) -> Iterator[Unordered]:
    """A function over a window that has no ORDER BY, though it needs one."""
    specification = window.windowSpec()
    if not specification.orderSpec().isEmpty():
        return
    function, frame = window.windowFunction(), specification.frameSpecification()
    name = expression_name(function.aggregateFunction()) if expression_name(function) == _CALL else None
    counts = frame.frameType().toString() == "RowFrame" and not (
        expression_name(frame.lower()) == "UnboundedPreceding"
        and expression_name(frame.upper()) == "UnboundedFollowing"
    )
    if name is None or name in OF_ORDER or counts:
        reason = "depends on the order of the rows, and its window has none"
        yield Unordered(window, reason, ORDER_THE_WINDOW)
    elif name in _GIVE_VALUES:
        yield from _ambiguous(children(function.aggregateFunction())[0], window)


def _ambiguous(value: Node, node: Node) -> Iterator[Unordered]:
    """Text of a collation, by which different texts are equal: any of them may stand for all."""
    if "COLLATE" in value.dataType().sql():
        yield Unordered(
            node,
            "takes one of several texts that are equal by their collation, which may be any",
            "Use lower(...) of the text, or the text COLLATE UTF8_BINARY.",
        )
