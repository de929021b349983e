"""Order dependence: which functions depend on the order of rows, and a total order of rows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from odfpy.engine.spark.plan.builder import Builder
from odfpy.engine.spark.plan.catalyst import Node, children, columns, expression_name
from odfpy.engine.spark.plan.lineage import find_column
from odfpy.engine.spark.plan.step import RESERVED_PREFIX
from odfpy.errors import UnsupportedQuery

PEERS: Final = frozenset(("Rank", "DenseRank", "PercentRank", "CumeDist"))
"""Window functions that give equal results to rows that are equal in order."""

_ANY_ORDER: Final = frozenset(
    """
    Count CountIf RegrCount BoolAnd BoolOr BitAndAgg BitOrAgg BitXorAgg BitmapAndAgg BitmapConstructAgg BitmapOrAgg
    """.split()  # noqa: SIM905
)
"""Functions of a multiset of values of any type."""

_PERCENTILES: Final = frozenset("Median Percentile PercentileCont PercentileDisc".split())  # noqa: SIM905
_BY_VALUE: Final = _PERCENTILES | {"Min", "Max"}
"""Functions of a multiset, provided that equal values are identical."""

_COLLECTED: Final = frozenset("CollectList CollectSet ListAgg".split())  # noqa: SIM905
"""Functions whose result a query can sort itself."""

_NOT_THE_SAME: Final = re.compile(r"\b(DOUBLE|FLOAT|COLLATE)\b")
_WITHOUT_ORDER: Final = ("MAP<", "VARIANT", "VOID", "INTERVAL", "GEOGRAPHY", "GEOMETRY")
_SHORT: Final = ("byte", "short", "tinyint", "smallint")
_SAFE_PRECISION: Final = 28
"""Sums of decimals have ten more digits than their arguments, up to 38: so ten billion of them do not overflow."""


def may_hide(data_type: Node) -> bool:
    """Return whether values of a type may sort as equal and yet differ, as 0.0 and -0.0, or upper and lower case."""
    return _NOT_THE_SAME.search(data_type.sql()) is not None


def is_sortable(expression: Node) -> bool:
    """Return whether the values of an expression have an order, also those in arrays."""
    return not any(word in str(expression.dataType().sql()) for word in _WITHOUT_ORDER)


def depends_on_order(function: Node) -> bool:
    """Return whether an aggregate function may have another result, or fail, when its rows come in another order.

    Sums of floating point numbers are rounded at every step, and others may overflow in between.

    Args:
        function: the function as Spark runs it, see `Builder.replacement`.
    """
    name = _name_of(function)
    if name in _BY_VALUE:
        return any(may_hide(child.dataType()) for child in children(function))
    return name in _COLLECTED or adds_up(function)


def adds_up(function: Node) -> bool:
    """Return whether an aggregate function accumulates step by step, so that the order of its rows matters."""
    name = _name_of(function)
    if name in {"Sum", "Average"}:
        return not _is_exact(children(function)[0].dataType(), mean=name == "Average")
    return name not in _ANY_ORDER | _BY_VALUE | _COLLECTED


def takes_values(function: Node) -> bool:
    """Return whether an aggregate returns some of its argument values, of which equal ones should be identical."""
    return _name_of(function) in _BY_VALUE | _COLLECTED


def is_percentile(function: Node) -> bool:
    """Return whether an aggregate function, as written in the query, is a median or percentile."""
    return _name_of(function) in _PERCENTILES


def _name_of(function: Node) -> str:
    return expression_name(function).removeprefix("aggregate.")


def _is_exact(data_type: Node, *, mean: bool) -> bool:
    """Return whether sums are exact and cannot overflow. Those for a mean of integers are DOUBLE."""
    name = data_type.typeName()
    if name.startswith("decimal"):
        return bool(data_type.precision() <= _SAFE_PRECISION)
    return name in _SHORT or (name in {"integer", "int"} and not mean)


def total_order(build: Builder, child: Node, known: Iterable[Node], given: Iterable[Node] = ()) -> list[Node]:
    """Return sort keys that distinguish all rows of a plan unless they are identical: the given keys, then all columns.

    Columns follow in the order of the schema, ascending, nulls first, texts by their bytes. The engine's own columns
    are not part of a row.

    Args:
        build: makes the keys.
        child: the plan.
        known: the sort keys of the query.
        given: columns that are equal in all rows to be compared.

    Raises:
        UnsupportedQuery: a column cannot be sorted, so that the order of rows is undefined.
    """
    keys = list(known)
    own = [column for column in columns(child) if not column.name().startswith(RESERVED_PREFIX)]
    fixed = [*given, *(key.child() for key in keys)]
    plain = [column_keys for column_keys in fixed if expression_name(column_keys) == "AttributeReference"]
    seen: list[Node] = []
    for column in own:
        if find_column(seen, column) is None:
            seen.append(column)
            column_keys = _keys_of(build, column, known=find_column(plain, column) is not None)
            keys += [key for key in column_keys if not any(key.semanticEquals(other) for other in keys)]
    return keys


def _keys_of(build: Builder, column: Node, *, known: bool) -> Iterator[Node]:
    key = build.ascending(column)
    if not key.checkInputDataTypes().isSuccess():
        raise UnsupportedQuery(
            f"`{column.name()}` has the type {column.dataType().sql()}, which has no order; so it is not known which "
            "of the rows that are equal in all else comes first",
            hint="Omit the column from the ordered rows, or use map_entries(...) or to_json(...) of it.",
        )
    if not known:
        yield key
    if may_hide(column.dataType()):
        text = build.cast(column, "string")
        if column.dataType().typeName() in {"double", "float"}:
            text = build.only_if(build.expression("EqualTo", column, build.zero(column.dataType())), text)
        yield build.ascending(text)
