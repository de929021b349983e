"""Range filters: the least and greatest value of wanted rows, by which a scan skips most other rows (like zone maps).

The semi-join with the wanted rows has the same effect, but comparing with two constants takes a tenth of the time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from odfpy.engine.spark.incremental.properties.comparisons import conjuncts_of, ordered_pairs
from odfpy.engine.spark.plan.builder import Builder
from odfpy.engine.spark.plan.catalyst import Catalyst, Node, column_id, columns, columns_read, type_of
from odfpy.engine.spark.plan.time_values import is_time
from odfpy.engine.spark.rows.write import table_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True)
class Range:
    """The least and the greatest wanted value; times and dates in microseconds. None for no bound."""

    least: int | None = None
    greatest: int | None = None


def range_of(values: pa.ChunkedArray) -> Range | None:
    """Return the range of some values; None if their type has no order that all engines agree on, or if one is NULL.

    Args:
        values: the values.
    """
    if values.null_count or not len(values) or not _has_ranges(values.type):
        return None
    bounds = pc.min_max(_as_numbers(values))
    return Range(bounds["min"].as_py(), bounds["max"].as_py())


def within(catalyst: Catalyst, plan: Node, ranges: Sequence[tuple[Node, Range]]) -> Node:
    """Return the rows of a plan for which some values are in ranges; rows with NULL in their place are left out.

    Args:
        catalyst: the session.
        plan: the rows.
        ranges: expressions over its columns, each with its range.
    """
    for value, limits in ranges:
        for name, limit in (("GreaterThanOrEqual", limits.least), ("LessThanOrEqual", limits.greatest)):
            if limit is not None:
                plan = catalyst.filter(catalyst.expression(name, value, _constant(catalyst, limit, value)), plan)
    return plan


def of_partners(catalyst: Catalyst, rows: Node, partners: Node, condition: Node) -> list[tuple[Node, Range]]:
    """Return the ranges that the values of a row must be in to have a partner.

    Args:
        catalyst: the session.
        rows: the rows.
        partners: the other rows, which are read once.
        condition: the join condition, an expression over the columns of both.
    """
    compared = list(_comparisons(condition, _ids(rows), _ids(partners)))
    if not compared:
        return []
    read = [catalyst.alias(comparison.partner, f"p{at}") for at, comparison in enumerate(compared)]
    few = catalyst.dataframe(catalyst.coalesced(catalyst.project(read, partners)))
    extremes = table_of(_extremes(few, compared))
    limits = [_as_numbers(extremes.column(at))[0].as_py() for at in range(len(compared))]
    return [
        (comparison.value, Range(least=limit) if comparison.is_least else Range(greatest=limit))
        for comparison, limit in zip(compared, limits, strict=True)
    ]


@dataclass(frozen=True, slots=True)
class _Comparison:
    """A comparison between a row and its partner.

    Attributes:
        value: the value of the row.
        partner: the value of the partner.
        is_least: whether the value of the row may not be less; otherwise it may not be greater.
    """

    value: Node
    partner: Node
    is_least: bool


def _comparisons(condition: Node, rows: frozenset[int], partners: frozenset[int]) -> Iterator[_Comparison]:
    for conjunct in conjuncts_of(condition):
        for smaller, greater, _ in ordered_pairs(conjunct):
            if not _is_plain(smaller) or type_of(smaller) != type_of(greater):
                continue
            if _is_over(greater, rows) and _is_over(smaller, partners):
                yield _Comparison(greater, smaller, is_least=True)
            elif _is_over(smaller, rows) and _is_over(greater, partners):
                yield _Comparison(smaller, greater, is_least=False)


def _extremes(rows: DataFrame, compared: Sequence[_Comparison]) -> DataFrame:
    from pyspark.sql import functions

    return rows.agg(
        *(
            (functions.min if comparison.is_least else functions.max)(name).alias(name)
            for name, comparison in zip(rows.columns, compared, strict=True)
        )
    )


def _ids(plan: Node) -> frozenset[int]:
    return frozenset(column_id(column) for column in columns(plan))


def _is_over(expression: Node, ids: frozenset[int]) -> bool:
    read = {column_id(column) for column in columns_read(expression)}
    return bool(read) and read <= ids


# --- Types whose values have ranges ----------------------------------------------------------------------------------

_DAY: Final = 86_400_000_000
_KINDS: Final = ("byte", "short", "integer", "long", "date", "timestamp", "timestamp_ntz")
"""Spark types with one order of values, and one representation of each value."""


def _is_plain(expression: Node) -> bool:
    return type_of(expression).typeName() in _KINDS


def _has_ranges(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_timestamp(kind) or pa.types.is_date32(kind))


def _as_numbers(values: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_date32(values.type):
        return pc.multiply(values.cast(pa.int32()).cast(pa.int64()), _DAY)
    return values.cast(pa.int64())


def _constant(catalyst: Catalyst, value: int, like: Node) -> Node:
    if is_time(like):
        return catalyst.time(value, like)
    build = Builder(catalyst)
    return build.cast_to(build.number(value), like.dataType())
