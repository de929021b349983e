"""Rows of a source, and how a plan comes to read them."""

from __future__ import annotations

from dataclasses import dataclass

from odfpy.engine.spark.analysis.order import may_hide
from odfpy.engine.spark.classes.base import RESERVED_PREFIX
from odfpy.engine.spark.incremental.state.changes import same_nulls
from odfpy.engine.spark.plan.builder import Builder
from odfpy.engine.spark.plan.catalyst import Catalyst, Node, columns, items


@dataclass(frozen=True, slots=True)
class SourceRows:
    """Rows of a source.

    Attributes:
        plan: its columns as queries see them, of an input also the system time; then offset and operation type.
        only_appends: whether all of them are known to be appended.
        count: how many there are.
        least_time: no row has an event time before it, in microseconds; None when that is not known.
    """

    plan: Node
    only_appends: bool
    count: int
    least_time: int | None = None


def leaf_over(catalyst: Catalyst, leaf: Node, rows: SourceRows | None) -> Node:
    """A source over other rows: columns and marks keep their identities.

    Numbers come in one form (0.0 for -0.0), since that is what a group of equal rows has, and no query may see whether
    rows have been grouped on their way.

    Args:
        catalyst: the session.
        leaf: the projection that stands for the source in a plan.
        rows: what to read, None for no rows.
    """
    named = [(str(column.name()), column) for column in items(leaf.projectList())]
    data = [column for name, column in named if not name.startswith(RESERVED_PREFIX)]
    source = next(column for name, column in named if name == "__odf_input")
    plan = rows.plan if rows is not None else catalyst.empty_like(data)
    found = columns(plan)
    build = Builder(catalyst)
    selected = []
    for below, column in zip(found, data, strict=False):
        same = same_nulls(catalyst, below, column)
        selected.append(
            same.withNewChildren(catalyst.seq([build.one_form(same.child())])) if may_hide(below.dataType()) else same
        )
    marks = [
        source,
        catalyst.alias(found[-2], "__odf_offset"),
        catalyst.alias(found[-1], "__odf_op"),
    ]
    return catalyst.project(selected + marks, plan)
