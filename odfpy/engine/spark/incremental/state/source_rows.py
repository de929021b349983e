"""Rows of a source, and how a plan comes to read them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from odfpy.engine.spark.analysis.order import may_hide
from odfpy.engine.spark.incremental.state.changes import same_nulls
from odfpy.engine.spark.plan.builder import Builder
from odfpy.engine.spark.plan.catalyst import Catalyst, Node, asked_once, columns, selected, type_of
from odfpy.engine.spark.plan.step import CARRIED_INPUT, CARRIED_OFFSET, CARRIED_OPERATION, RESERVED_PREFIX
from odfpy.engine.spark.plan.types import struct_of


@dataclass(frozen=True, slots=True)
class SourceRows:
    """Rows of a source.

    Attributes:
        plan: its columns as queries see them, of an input also the system time; then offset and operation type.
        is_append_only: whether all of them are known to be appended.
        count: how many there are.
        least_time: no row has an event time before it, in microseconds; None when that is not known.
    """

    plan: Node
    is_append_only: bool
    count: int
    least_time: int | None = None


def no_source_rows(catalyst: Catalyst, wanted: Sequence[Node]) -> Node:
    """A relation without rows: columns of the types of others, then an offset and an operation type."""
    from pyspark.sql.types import IntegerType, LongType

    fields = [(f"c{at}", type_of(column)) for at, column in enumerate(wanted)]
    return catalyst.empty(struct_of([*fields, (CARRIED_OFFSET, LongType()), (CARRIED_OPERATION, IntegerType())]))


def leaf_over(catalyst: Catalyst, leaf: Node, rows: SourceRows | None) -> Node:
    """A source over other rows: columns and marks keep their identities.

    Numbers come in one form (0.0 for -0.0), since that is what a group of equal rows has, and no query may see whether
    rows have been grouped on their way.

    Args:
        catalyst: the session.
        leaf: the projection that stands for the source in a plan.
        rows: what to read, None for no rows.
    """
    named = [(str(column.name()), column) for column in selected(leaf)]
    data = [column for name, column in named if not name.startswith(RESERVED_PREFIX)]
    source = next(column for name, column in named if name == CARRIED_INPUT)
    plan = rows.plan if rows is not None else no_source_rows(catalyst, data)
    found = columns(plan)
    build = Builder(catalyst)
    made = []
    for below, column in zip(found, data, strict=False):
        same = same_nulls(catalyst, below, column)
        made.append(same.withNewChildren(catalyst.seq([build.one_form(same.child())])) if _may_hide(column) else same)
    marks = [
        source,
        catalyst.alias(found[-2], CARRIED_OFFSET),
        catalyst.alias(found[-1], CARRIED_OPERATION),
    ]
    return catalyst.project(made + marks, plan)


def _may_hide(column: Node) -> bool:
    return asked_once(column, "hides", lambda: may_hide(column.dataType()))
