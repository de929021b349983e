"""Expressions of fragments: trees of columns, constants and calls, each with its type.

Everything received is parsed into these (`json_form`, `reading`), and everything executed is written from these
(`writing`). So nothing outside of the grammar can get through, however it was written. Trees share common
subexpressions; their size counts each occurrence, as their text will.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import pyarrow as pa

from odfpy.federation.sql.errors import InvalidFragment

MAX_NODES: Final = 20_000
MAX_DEPTH: Final = 100
"""Maximum depth of received expressions; derived ones may be half as deep again."""
AGGREGATES: Final = frozenset(("count_all", "count", "sum", "min", "max"))


@dataclass(frozen=True, slots=True)
class Column:
    """A reference to a column by its exact name.

    Attributes:
        name: name of the column.
        dtype: plain type; `UNKNOWN` for a column of another relay.
        table: the name of its table in the SQL for a source; None in fragments.
    """

    name: str
    dtype: pa.DataType
    table: str | None = None


@dataclass(frozen=True, slots=True)
class Constant:
    """A constant.

    Attributes:
        value: None, bool, int, Decimal, float, str, date or datetime.
        dtype: plain type; `UNKNOWN` for NULL alone.
    """

    value: Any
    dtype: pa.DataType

    def __post_init__(self) -> None:
        if isinstance(self.value, float) and math.isnan(self.value):
            object.__setattr__(self, "value", math.nan)  # always the same NaN object: others are not equal


@dataclass(frozen=True, slots=True)
class Call:
    """A call of an operator or function (`operators`).

    Attributes:
        operator: name of the operator or function.
        arguments: arguments in order.
        dtype: type of the result.
        size: nodes of the tree.
        depth: levels of the tree.
    """

    operator: str
    arguments: tuple[Expression, ...]
    dtype: pa.DataType
    size: int = field(init=False, compare=False, repr=False, default=0)
    depth: int = field(init=False, compare=False, repr=False, default=0)

    def __post_init__(self) -> None:
        size = 1 + sum(size_of(argument) for argument in self.arguments)
        depth = 1 + max((depth_of(argument) for argument in self.arguments), default=0)
        if size > MAX_NODES:
            raise InvalidFragment(f"An expression has more than {MAX_NODES:,} parts")
        if depth > MAX_DEPTH * 3 // 2:
            raise InvalidFragment(f"An expression is nested more than {MAX_DEPTH} deep")
        object.__setattr__(self, "size", size)
        object.__setattr__(self, "depth", depth)


Expression: TypeAlias = Column | Constant | Call


def size_of(expression: Expression) -> int:
    """Return the number of nodes of a tree."""
    return expression.size if isinstance(expression, Call) else 1


def depth_of(expression: Expression) -> int:
    """Return the depth of a tree."""
    return expression.depth if isinstance(expression, Call) else 1


def walk(expression: Expression) -> Iterator[Expression]:
    """Yield all distinct nodes of a tree, outer ones first."""
    seen: set[int] = set()
    waiting = [expression]
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        yield node
        if isinstance(node, Call):
            waiting.extend(reversed(node.arguments))


def columns_in(expression: Expression) -> set[str]:
    """Return the names of the columns in a tree."""
    return {node.name for node in walk(expression) if isinstance(node, Column)}


def has_aggregate(expression: Expression) -> bool:
    """Return whether a tree contains an aggregate."""
    return any(isinstance(node, Call) and node.operator in AGGREGATES for node in walk(expression))


def rebuilt(
    expression: Expression,
    column: Callable[[Column], Expression],
    call: Callable[[Call, tuple[Expression, ...]], Expression],
) -> Expression:
    """Rebuild a tree from its leaves; shared subexpressions are rebuilt once.

    Args:
        expression: the tree.
        column: returns the replacement of a column.
        call: returns the replacement of a call, given its new arguments.
    """
    rebuilt_by_id: dict[int, Expression] = {}

    def of(node: Expression) -> Expression:
        result = rebuilt_by_id.get(id(node))
        if result is None:
            if isinstance(node, Column):
                result = column(node)
            elif isinstance(node, Call):
                result = call(node, tuple(of(argument) for argument in node.arguments))
            else:
                result = node
            rebuilt_by_id[id(node)] = result
        return result

    return of(expression)
