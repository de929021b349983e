"""Rows of a source, and the substitution of a source in a plan by them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from odfpy.data.vocabulary import OperationType
from odfpy.engine.spark.analysis.normal_form import has_forms
from odfpy.engine.spark.incremental.state.changes import net_rows, repeated, same_nulls, weight_of
from odfpy.engine.spark.plan.builder import Builder
from odfpy.engine.spark.plan.catalyst import Catalyst, Node, columns, selected, type_of
from odfpy.engine.spark.plan.step import CARRIED_INPUT, CARRIED_OFFSET, CARRIED_OPERATION, RESERVED_PREFIX
from odfpy.engine.spark.plan.templates import Templates
from odfpy.engine.spark.plan.types import struct_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_TEMPLATES: Final = Templates()


@dataclass(frozen=True, slots=True)
class SourceRows:
    """Rows of a source, in the form in which plans read them.

    Attributes:
        plan: its columns as queries see them; of an input also the system time; then offset and operation type.
        is_append_only: whether all of them are known to be appended.
        count: the number of rows.
        least_time: a lower bound of their event times, in microseconds; None when it is not known.
    """

    plan: Node
    is_append_only: bool
    count: int
    least_time: int | None = None


def no_source_rows(catalyst: Catalyst, wanted: Sequence[Node]) -> Node:
    """Return an empty relation: columns with the types of some columns, then an offset and an operation type."""
    from pyspark.sql.types import IntegerType, LongType

    fields = [(f"c{at}", type_of(column)) for at, column in enumerate(wanted)]
    return catalyst.empty(struct_of([*fields, (CARRIED_OFFSET, LongType()), (CARRIED_OPERATION, IntegerType())]))


def net_source_rows(catalyst: Catalyst, leaf: Node, rows: SourceRows) -> SourceRows:
    """Return the rows of a source with retracted rows cancelled out, so that nothing is computed from those.

    An expression may fail for a row that was wrong, although its correction is among the rows, too. The rows that
    remain have no offset, and are either appended or retracted.

    Args:
        catalyst: the session.
        leaf: the projection that stands for the source in a plan.
        rows: the rows.
    """
    if rows.is_append_only:
        return rows
    found = columns(rows.plan)
    data = found[: sum(not column.name().startswith(RESERVED_PREFIX) for column in selected(leaf))]
    weighted = catalyst.project([*data, weight_of(catalyst, found[-1])], rows.plan)
    net = Builder(catalyst).fence(net_rows(catalyst, weighted))  # or filters of the query would move below it
    return replace(rows, plan=_TEMPLATES.over(catalyst, net, "with operations", _with_operations))


def _with_operations(net: DataFrame) -> DataFrame:
    from pyspark.sql import functions

    *data, weight = net.columns
    kind = functions.when(functions.col(weight) > 0, int(OperationType.APPEND)).otherwise(int(OperationType.RETRACT))
    offset = functions.lit(0).cast("bigint")
    return repeated(net).select(*data, offset.alias(CARRIED_OFFSET), kind.alias(CARRIED_OPERATION))


def leaf_over(catalyst: Catalyst, leaf: Node, rows: SourceRows | None) -> Node:
    """Return a source of a plan over other rows: its columns and marks keep their identities.

    Values are normalized (0.0 for -0.0): grouping equal rows does the same, and no query may see whether rows have been
    grouped on the way.

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
        made.append(same.withNewChildren(catalyst.seq([build.one_form(same.child())])) if has_forms(column) else same)
    marks = [
        source,
        catalyst.alias(found[-2], CARRIED_OFFSET),
        catalyst.alias(found[-1], CARRIED_OPERATION),
    ]
    return catalyst.project(made + marks, plan)
