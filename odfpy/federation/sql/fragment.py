"""Fragments: subqueries about one entity, which travel from relay to relay and are rewritten in each one's schema.

Whether a fragment comes from a query or from a peer, it consists of `expressions`; so the result of `parse` can be
written as SQL safely, whatever its sender.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from odfpy.federation.sql.columns import Columns, Types, columns_of
from odfpy.federation.sql.errors import InvalidFragment
from odfpy.federation.sql.expressions import (
    AGGREGATES,
    Call,
    Column,
    Expression,
    columns_in,
    has_aggregate,
    size_of,
)
from odfpy.federation.sql.json_form import from_json, name_from_json
from odfpy.federation.sql.json_form import to_json as expression_to_json
from odfpy.federation.sql.types import UNKNOWN, kind_of, type_from_json, type_to_json
from odfpy.federation.sql.writing import FRAGMENT

MAX_OUTPUTS: Final = 5_000
MAX_NODES: Final = 100_000
MAX_ROWS: Final = (1 << 63) - 1
_KEYS: Final = frozenset(("entity", "outputs", "where", "grouped", "groups", "order", "limit", "distinct"))


@dataclass(frozen=True, slots=True)
class Output:
    """An output column of a fragment.

    Attributes:
        name: name of the column.
        expression: the expression that computes it.
        dtype: its type in the client's schema; None for that of the expression.
    """

    name: str
    expression: Expression
    dtype: pa.DataType | None = None

    def __post_init__(self) -> None:
        if self.dtype in (None, UNKNOWN):
            known = self.expression.dtype
            object.__setattr__(self, "dtype", None if known == UNKNOWN else known)

    @property
    def type(self) -> pa.DataType:
        """Return the type of the column."""
        return self.expression.dtype if self.dtype is None else self.dtype


@dataclass(frozen=True, slots=True)
class Order:
    """An element of ORDER BY.

    Attributes:
        expression: the sort key.
        descending: whether the greatest value comes first.
        nulls_first: whether NULL comes first.
    """

    expression: Expression
    descending: bool = False
    nulls_first: bool = False


@dataclass(frozen=True, slots=True)
class Fragment:
    """A subquery about one entity: the unit that is sent to relays.

    Attributes:
        entity: name of the entity.
        outputs: output columns, with distinct names; at least one.
        where: condition on rows, None for all rows.
        is_grouped: whether rows are aggregated: each output is then one of `groups`, or an aggregate.
        groups: GROUP BY expressions; if empty, all rows form one group.
        order: ORDER BY elements, which only matter together with a limit.
        limit: maximum number of rows from each source; all sources together may return more.
        is_distinct: whether duplicates are removed.
    """

    entity: str
    outputs: tuple[Output, ...]
    where: Expression | None = None
    is_grouped: bool = False
    groups: tuple[Expression, ...] = ()
    order: tuple[Order, ...] = ()
    limit: int | None = None
    is_distinct: bool = False

    def __post_init__(self) -> None:
        _check(self)

    @property
    def schema(self) -> pa.Schema:
        """The schema of the rows, which is the same from any source."""
        return pa.schema([pa.field(output.name, output.type) for output in self.outputs])

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """Return all expressions."""
        where = () if self.where is None else (self.where,)
        ordered = (order.expression for order in self.order)
        return (*(output.expression for output in self.outputs), *where, *self.groups, *ordered)

    @property
    def columns(self) -> set[str]:
        """Return the names of the entity's columns that it needs."""
        return set().union(*(columns_in(expression) for expression in self.expressions))

    def to_json(self) -> dict[str, Any]:
        """Return the fragment for `json.dumps`."""
        outputs = [
            {
                "name": output.name,
                "expression": expression_to_json(output.expression),
                "type": type_to_json(output.type),
            }
            for output in self.outputs
        ]
        document: dict[str, Any] = {"entity": self.entity, "outputs": outputs}
        if self.where is not None:
            document["where"] = expression_to_json(self.where)
        if self.is_grouped:
            document |= {"grouped": True, "groups": [expression_to_json(group) for group in self.groups]}
        if self.order:
            document["order"] = [
                {
                    "expression": expression_to_json(order.expression),
                    "descending": order.descending,
                    "nulls_first": order.nulls_first,
                }
                for order in self.order
            ]
        if self.limit is not None:
            document["limit"] = self.limit
        if self.is_distinct:
            document["distinct"] = True
        return document

    @classmethod
    def parse(cls, json: Any, columns: Types | None = None) -> Fragment:
        """Parse a received fragment.

        Args:
            json: result of `json.loads`.
            columns: names and types of the entity's columns; None for a fragment in the schema of another relay, which
                will parse it again.

        Raises:
            InvalidFragment: it is not in the grammar, uses columns that the entity lacks, or is too large.
        """
        return _Parser(columns_of(columns)).fragment(json)


class _Parser:
    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self._room = MAX_NODES

    def fragment(self, json: Any) -> Fragment:
        document = _object(json, _KEYS)
        where = document.get("where")
        limit = document.get("limit")
        if limit is not None and (type(limit) is not int or not 0 <= limit <= MAX_ROWS):
            raise InvalidFragment("The limit of a fragment is a number of rows")
        return Fragment(
            entity=name_from_json(document.get("entity")),
            outputs=tuple(self._output(item) for item in _list(document.get("outputs"))),
            where=None if where is None else self._expression(where),
            is_grouped=_flag(document.get("grouped")),
            groups=tuple(self._expression(item) for item in _list(document.get("groups", []))),
            order=tuple(self._order(item) for item in _list(document.get("order", []))),
            limit=limit,
            is_distinct=_flag(document.get("distinct")),
        )

    def _output(self, json: Any) -> Output:
        document = _object(json, {"name", "expression", "type"})
        dtype = document.get("type")
        expression = self._expression(document.get("expression"))
        return Output(
            name_from_json(document.get("name")), expression, None if dtype is None else type_from_json(dtype)
        )

    def _order(self, json: Any) -> Order:
        document = _object(json, {"expression", "descending", "nulls_first"})
        flags = _flag(document.get("descending")), _flag(document.get("nulls_first"))
        return Order(self._expression(document.get("expression")), *flags)

    def _expression(self, json: Any) -> Expression:
        expression = from_json(json, self._columns)
        self._room -= size_of(expression)
        if self._room < 0:
            raise InvalidFragment(f"A fragment has more than {MAX_NODES:,} parts")
        return expression


def _object(json: Any, keys: Collection[str]) -> Mapping[str, Any]:
    if not isinstance(json, dict) or not json.keys() <= set(keys):
        raise InvalidFragment(f"A part of a fragment is an object with {', '.join(sorted(keys))}, and nothing else")
    return json


def _list(json: Any) -> Sequence[Any]:
    if not isinstance(json, list) or len(json) > MAX_OUTPUTS:
        raise InvalidFragment(f"A part of a fragment is not a list, or has more than {MAX_OUTPUTS:,} elements")
    return json


def _flag(json: Any) -> bool:
    if json is not None and not isinstance(json, bool):
        raise InvalidFragment("A part of a fragment is neither true nor false")
    return bool(json)


# --- Grammar of fragments ---------------------------------------------------------------------------------------------


def _check(fragment: Fragment) -> None:
    names = [output.name for output in fragment.outputs]
    if len(set(names)) != len(names):
        raise InvalidFragment("Two columns of a fragment have the same name")
    if not 0 < len(names) <= MAX_OUTPUTS:
        raise InvalidFragment(f"A fragment has at least one column, and at most {MAX_OUTPUTS:,}")
    if sum(map(size_of, fragment.expressions)) > MAX_NODES:
        raise InvalidFragment(f"A fragment has more than {MAX_NODES:,} parts")
    if fragment.where is not None:
        if kind_of(fragment.where.dtype) not in ("bool", "unknown"):
            raise InvalidFragment("WHERE is a condition")
        if has_aggregate(fragment.where):
            raise InvalidFragment("WHERE has no aggregates")
    if any(has_aggregate(group) or kind_of(group.dtype) == "opaque" for group in fragment.groups):
        raise InvalidFragment("Rows are not grouped by aggregates, lists, structures or binary values")
    for order in fragment.order:
        if has_aggregate(order.expression) or kind_of(order.expression.dtype) == "opaque":
            raise InvalidFragment("Rows are not ordered by aggregates, lists, structures or binary values")
    _check_types(fragment)
    _check_groups(fragment)


def _check_types(fragment: Fragment) -> None:
    from odfpy.federation.sql.casting import cast

    for output in fragment.outputs:
        if output.type != UNKNOWN:
            cast(output.expression, output.type)  # raises if it can never have this type


def _check_groups(fragment: Fragment) -> None:
    aggregates = [_is_aggregate(output.expression) for output in fragment.outputs]
    if not fragment.is_grouped:
        if any(has_aggregate(output.expression) for output in fragment.outputs) or fragment.groups:
            raise InvalidFragment("A fragment with aggregates or groups is grouped")
        if fragment.is_distinct:
            of_outputs = {output.expression for output in fragment.outputs}
            if any(item.expression not in of_outputs for item in fragment.order):
                raise InvalidFragment("Rows that come once are ordered by what is in the answer")
            if any(kind_of(output.expression.dtype) == "opaque" for output in fragment.outputs):
                raise InvalidFragment("Lists, structures and binary values cannot be compared")
        return
    if fragment.is_distinct or fragment.order or fragment.limit is not None:
        raise InvalidFragment("Groups have no order, no limit, and come once by themselves")
    for is_aggregate, item in zip(aggregates, fragment.outputs, strict=True):
        if not is_aggregate and item.expression not in fragment.groups:
            raise InvalidFragment("An output of groups is what rows are grouped by, or an aggregate")


def _is_aggregate(expression: Expression) -> bool:
    """Return whether an expression is a single aggregate, perhaps cast to another type."""
    while isinstance(expression, Call) and expression.operator == "cast":
        expression = expression.arguments[0]
    return isinstance(expression, Call) and expression.operator in AGGREGATES


def explained(fragment: Fragment) -> str:
    """Return a fragment as readable SQL, on one line, for the result of EXPLAIN.

    Args:
        fragment: a fragment in any schema.
    """
    shown = [
        FRAGMENT.write(output.expression)
        + (
            ""
            if output.expression == Column(output.name, output.expression.dtype)
            else f" AS {FRAGMENT.quoted(output.name)}"
        )
        for output in fragment.outputs
    ]
    distinct = "DISTINCT " * fragment.is_distinct
    text = f"SELECT {distinct}{', '.join(shown)} FROM {FRAGMENT.quoted(fragment.entity)}"  # noqa: S608
    if fragment.where is not None:
        text += f" WHERE {FRAGMENT.write(fragment.where)}"
    if fragment.groups:
        text += f" GROUP BY {', '.join(map(FRAGMENT.write, fragment.groups))}"
    if fragment.order:
        ordered = (
            FRAGMENT.ordered(order.expression, descending=order.descending, nulls_first=order.nulls_first)
            for order in fragment.order
        )
        text += f" ORDER BY {', '.join(ordered)}"
    return text if fragment.limit is None else f"{text} LIMIT {fragment.limit}"
