"""Calls whose result depends on an undefined order of rows, or on which of several equal rows is chosen."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from odfpy.engine.spark.analysis.order import may_hide
from odfpy.engine.spark.plan.catalyst import Node, children, columns, expression_name, items, subtree, type_of
from odfpy.engine.spark.plan.failures import ORDER_THE_WINDOW
from odfpy.engine.spark.plan.functions import OF_ORDER
from odfpy.engine.spark.plan.lineage import find_column
from odfpy.engine.spark.plan.storable_types import can_be_compared, has_map

CALL: Final = "aggregate.AggregateExpression"
COLLECTED: Final = frozenset(("aggregate.CollectList", "aggregate.CollectSet"))
"""Functions whose result is an array of all values, in the order of the rows."""

OF_ONE_ROW: Final = frozenset(("aggregate.First", "aggregate.Last", "aggregate.AnyValue"))
"""Functions that return the value of a single row."""

_GIVE_VALUES: Final = ("aggregate.Min", "aggregate.Max", "aggregate.Mode", *COLLECTED)
_BY_ANOTHER: Final = ("aggregate.MinBy", "aggregate.MaxBy", "aggregate.MaxMinByK")
_NAMES: Final = re.compile("#\\d+L?|'")


@dataclass(frozen=True, slots=True)
class Unordered:
    """A place in a query whose result is not a function of its rows alone.

    Attributes:
        node: the expression or operator.
        reason: the rest of a sentence that begins with its text.
        hint: what to write instead.
    """

    node: Node
    reason: str
    hint: str


def in_group(call: Node, groupings: Sequence[Node]) -> Unordered | None:
    """Return why an aggregate call is not a function of the rows of its group, or None when it is.

    Args:
        call: the call.
        groupings: expressions of GROUP BY.
    """
    function = call.aggregateFunction()
    name = expression_name(function)
    if name in OF_ORDER and not is_settled(function) and not is_known_in_group(call, groupings):
        return Unordered(call, "depends on the order of the rows in a group", OF_ORDER[name])
    return ambiguous(children(function)[0], call) if name in _GIVE_VALUES else None


def over_window(window: Node) -> Unordered | None:
    """Return why a function over a window without ORDER BY needs one, or None when it does not."""
    specification = window.windowSpec()
    if not specification.orderSpec().isEmpty():
        return None
    function, frame = window.windowFunction(), specification.frameSpecification()
    name = expression_name(function.aggregateFunction()) if expression_name(function) == CALL else None
    counts = frame.frameType().toString() == "RowFrame" and not (
        expression_name(frame.lower()) == "UnboundedPreceding"
        and expression_name(frame.upper()) == "UnboundedFollowing"
    )
    if name is None or counts or (name in OF_ORDER and not is_settled(function.aggregateFunction())):
        return Unordered(window, "depends on the order of the rows, but its window has none", ORDER_THE_WINDOW)
    return ambiguous(children(function.aggregateFunction())[0], window) if name in _GIVE_VALUES else None


def is_settled(function: Node) -> bool:
    """Return whether a function of the order of rows defines that order itself, as far as it matters."""
    name = expression_name(function)
    if name == "aggregate.Mode":
        return bool(function.reverseOpt().isDefined())
    if name == "aggregate.ListAgg":
        return _determines(function.child(), [key.child() for key in items(function.orderExpressions())])
    if name in _BY_ANOTHER:
        value, order = children(function)[:2]
        return _determines(value, _parts_of(order))
    return False


def is_known_in_group(call: Node, groupings: Sequence[Node]) -> bool:
    """Return whether a function returns the value of one row that is the same in all rows of the group.

    It is not the same where equal values may differ, as 0.0 and -0.0 do.
    """
    function = call.aggregateFunction()
    if expression_name(function) not in OF_ONE_ROW:
        return False
    value = children(function)[0]
    if has_map(type_of(value)) or not can_be_compared(value):  # maps have no maximum, which replaces the call
        return False
    return _is_made_of(value, groupings) and not any(may_hide(part.dataType()) for _, part in subtree(value))


def _is_made_of(value: Node, known: Sequence[Node]) -> bool:
    if any(value.semanticEquals(other) for other in known):
        return True
    below = children(value)
    if not below:
        return expression_name(value) == "Literal"
    return all(_is_made_of(child, known) for child in below)


def _determines(value: Node, keys: Sequence[Node]) -> bool:
    """Return whether rows that are equal in some keys have the same value."""
    exact = [key for key in keys if not may_hide(key.dataType())]
    if any(key.semanticEquals(value) for key in exact):
        return True
    plain = [key for key in exact if expression_name(key) == "AttributeReference"]
    read = value.references().toSeq()
    return bool(plain) and all(find_column(plain, column) is not None for column in items(read))


def _parts_of(order: Node) -> list[Node]:
    """Return the values that are compared: the fields of a struct constructed in place, or the value itself."""
    return items(order.valExprs()) if expression_name(order) == "CreateNamedStruct" else [order]


def has_plain_order(sort: Node) -> bool:
    """Return whether `array_sort` compares the values themselves, and not by a function of the query."""
    default = sort.function().toString()
    plain = (
        "lambdafunction(if ((isnull(lambda left) AND isnull(lambda right))) 0 else if (isnull(lambda left)) 1 "
        "else if (isnull(lambda right)) -1 else if ((lambda left < lambda right)) -1 "
        "else if ((lambda left > lambda right)) 1 else 0, lambda left, lambda right, false)"
    )
    return _NAMES.sub("", default) == plain


def of_equal_rows(operator: Node) -> Iterator[Unordered]:
    """Yield columns of DISTINCT, INTERSECT or EXCEPT for which one of several equal values may be chosen."""
    for column in columns(operator):
        if (reason := ambiguous(column, operator)) is not None:
            yield reason


def ambiguous(value: Node, node: Node) -> Unordered | None:
    """Return the problem with a collated text, which may represent several different texts; None for other values.

    Args:
        value: the value that is returned.
        node: the node that returns it.
    """
    if "COLLATE" not in value.dataType().sql():
        return None
    return Unordered(
        node,
        "returns any of several texts that are equal by their collation",
        "Use lower(...) of the text, or the text COLLATE UTF8_BINARY.",
    )
