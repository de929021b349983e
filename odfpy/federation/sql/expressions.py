"""Expressions of fragments: trees of columns, constants and calls, each with its type.

Whatever comes from others is read into these (`json_form`, `reading`), and what is run is written from these
(`writing`). So nothing that the grammar does not have can come through, however it was written. Trees share what they
have in common; their size counts it each time, as their text will.
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
"""Levels of what others send; what is made of it here may have half as many more."""
AGGREGATES: Final = frozenset(("count_all", "count", "sum", "min", "max"))


@dataclass(frozen=True, slots=True)
class Column:
    """A column, exactly by its name.

    Attributes:
        name: of the column.
        dtype: plain type; `UNKNOWN` for a column of somebody else.
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
            object.__setattr__(self, "value", math.nan)  # one and the same: two others are not equal


@dataclass(frozen=True, slots=True)
class Call:
    """An operator or function with its arguments (`operators`).

    Attributes:
        operator: its name.
        arguments: in order.
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
        size = 1 + sum(size_of(one) for one in self.arguments)
        depth = 1 + max((depth_of(one) for one in self.arguments), default=0)
        if size > MAX_NODES:
            raise InvalidFragment(f"An expression has more than {MAX_NODES:,} parts")
        if depth > MAX_DEPTH * 3 // 2:
            raise InvalidFragment(f"An expression is nested more than {MAX_DEPTH} deep")
        object.__setattr__(self, "size", size)
        object.__setattr__(self, "depth", depth)


Expression: TypeAlias = Column | Constant | Call


def size_of(expression: Expression) -> int:
    """Nodes of a tree."""
    return expression.size if isinstance(expression, Call) else 1


def depth_of(expression: Expression) -> int:
    """Levels of a tree."""
    return expression.depth if isinstance(expression, Call) else 1


def walk(expression: Expression) -> Iterator[Expression]:
    """Yield all different nodes of a tree, the outer ones first."""
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
    """Names of the columns in a tree."""
    return {node.name for node in walk(expression) if isinstance(node, Column)}


def has_aggregate(expression: Expression) -> bool:
    """Return whether anything in a tree is an aggregate."""
    return any(isinstance(node, Call) and node.operator in AGGREGATES for node in walk(expression))


def rebuilt(
    expression: Expression,
    column: Callable[[Column], Expression],
    call: Callable[[Call, tuple[Expression, ...]], Expression],
) -> Expression:
    """A tree made anew from its leaves; what is shared is made once.

    Args:
        expression: the tree.
        column: gives what takes the place of a column.
        call: gives what takes the place of a call, from its new arguments.
    """
    made: dict[int, Expression] = {}

    def of(node: Expression) -> Expression:
        found = made.get(id(node))
        if found is None:
            if isinstance(node, Column):
                found = column(node)
            elif isinstance(node, Call):
                found = call(node, tuple(of(one) for one in node.arguments))
            else:
                found = node
            made[id(node)] = found
        return found

    return of(expression)
