"""Rows of a source, and their substitution for the source in a plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from odfpy.data.vocabulary import OperationType
from odfpy.engine.spark.analysis.normal_form import has_forms
from odfpy.engine.spark.incremental.state.changes import net_rows, repeated, weight_of, with_identity_of
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

    An expression may fail for a wrong row, although its correction is among the rows, too. The remaining rows have the
    offset 0, and are either appended or retracted.

    Args:
        catalyst: the session.
        leaf: the projection that stands for the source in a plan.
        rows: the rows.
    """
    if rows.is_append_only:
        return rows
    row_columns = columns(rows.plan)
    data = row_columns[: sum(not column.name().startswith(RESERVED_PREFIX) for column in selected(leaf))]
    weighted = catalyst.project([*data, weight_of(catalyst, row_columns[-1])], rows.plan)
    net = Builder(catalyst).fence(net_rows(catalyst, weighted))  # keeps filters of the query above it
    return replace(rows, plan=_TEMPLATES.over(catalyst, net, "with operations", _with_operations))


def _with_operations(net: DataFrame) -> DataFrame:
    from pyspark.sql import functions

    *data, weight = net.columns
    kind = functions.when(functions.col(weight) > 0, int(OperationType.APPEND)).otherwise(int(OperationType.RETRACT))
    offset = functions.lit(0).cast("bigint")
    return repeated(net).select(*data, offset.alias(CARRIED_OFFSET), kind.alias(CARRIED_OPERATION))


def leaf_over(catalyst: Catalyst, leaf: Node, rows: SourceRows | None) -> Node:
    """Return rows with the identities of the columns and marks of a source, so that plans over it can read them.

    Values are normalized (0.0 for -0.0), as grouping does: no query may see whether rows have been grouped before.

    Args:
        catalyst: the session.
        leaf: the projection that stands for the source in a plan.
        rows: the rows, None for no rows.
    """
    named = [(str(column.name()), column) for column in selected(leaf)]
    data = [column for name, column in named if not name.startswith(RESERVED_PREFIX)]
    source = next(column for name, column in named if name == CARRIED_INPUT)
    plan = rows.plan if rows is not None else no_source_rows(catalyst, data)
    row_columns = columns(plan)
    build = Builder(catalyst)
    data_columns = []
    for below, column in zip(row_columns, data, strict=False):
        renamed = with_identity_of(catalyst, below, column)
        data_columns.append(
            renamed.withNewChildren(catalyst.seq([build.one_form(renamed.child())])) if has_forms(column) else renamed
        )
    marks = [
        source,
        catalyst.alias(row_columns[-2], CARRIED_OFFSET),
        catalyst.alias(row_columns[-1], CARRIED_OPERATION),
    ]
    return catalyst.project(data_columns + marks, plan)
