"""The changes that a fragment emits: its result after a pull minus its result before, in their final order.

Rows are ordered by event time, then by the columns that identify a row, then by all columns; where one row replaces
another with the same key, `-C` comes right before its `+C` (ADR 0013, "Order and floats").
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from odfpy.data.vocabulary import OperationType
from odfpy.engine.spark.incremental.state.changes import WEIGHT, repeated
from odfpy.engine.spark.plan.catalyst import Catalyst, Node, columns
from odfpy.engine.spark.plan.same_bytes import sortable, summed_by_row
from odfpy.engine.spark.plan.step import CARRIED_OFFSET, CARRIED_OPERATION
from odfpy.engine.spark.plan.templates import Templates
from odfpy.engine.spark.rows.parallelism import gather, is_gathered

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

OPERATION: Final = CARRIED_OPERATION
OFFSET: Final = CARRIED_OFFSET
_PAIR: Final = "__odf_pair"
_TIME: Final = "__odf_time"


_TEMPLATES: Final = Templates()


def by_position(catalyst: Catalyst, wanted: Sequence[Node], plan: Node) -> Node:
    """Return some columns of a plan, renamed to `c0`, `c1`...

    Args:
        catalyst: access to Catalyst.
        wanted: the columns.
        plan: the plan.
    """
    return catalyst.project([catalyst.alias(column, f"c{at}") for at, column in enumerate(wanted)], plan)


def difference(catalyst: Catalyst, before: Node | None, after: Node) -> Node:
    """Return the difference of two results, with a weight that is never 0; without weights, all rows are new.

    Args:
        catalyst: access to Catalyst.
        before: the earlier result, columns `c0`, `c1`...; None for no rows.
        after: the current result.
    """
    if before is None:
        return after
    signed = [
        catalyst.project([*columns(rows), catalyst.alias(catalyst.integer(sign), WEIGHT)], rows)
        for rows, sign in ((after, 1), (before, -1))
    ]
    return _TEMPLATES.over(catalyst, gather(catalyst, catalyst.union(signed)), "net", _net)


def _net(rows: DataFrame) -> DataFrame:
    from pyspark.sql import functions

    names = [name for name in rows.columns if name != WEIGHT]
    # As multisets, not by a join on a key: results may lack a key, and may have a row several times. Unchanged rows
    # cancel out, so that it does no harm to process too many keys.
    summed = summed_by_row(rows, names, {WEIGHT: functions.sum(WEIGHT).cast("int")})
    return summed.where(functions.col(WEIGHT) != 0)


def in_order(
    catalyst: Catalyst,
    changed: Node,
    event_time: str | None,
    key: Sequence[str] | None,
    *,
    with_offsets: bool = False,
) -> DataFrame:
    """Return the rows to emit in their final order, each with its operation type.

    Args:
        catalyst: access to Catalyst.
        changed: the result of `difference`.
        event_time: name of the column by which rows are sorted first.
        key: columns that identify a row of the result, or None.
        with_offsets: whether to add a last column, `OFFSET`, with the position of each row.
    """
    purpose = "order", event_time, None if key is None else tuple(key), is_gathered(catalyst.spark), with_offsets
    ordered = partial(_with_offsets if with_offsets else _in_order, event_time=event_time, key=key)
    return catalyst.dataframe(_TEMPLATES.over(catalyst, changed, purpose, ordered))


def _with_offsets(changed: DataFrame, event_time: str | None, key: Sequence[str] | None) -> DataFrame:
    from pyspark.sql import functions

    # Consecutive only within a single partition, which is the case here; pairs of corrections are later recognized by
    # it.
    return _in_order(changed, event_time, key).withColumn(OFFSET, functions.monotonically_increasing_id())


def _in_order(changed: DataFrame, event_time: str | None, key: Sequence[str] | None) -> DataFrame:
    from pyspark.sql import Window, functions

    names = [name for name in changed.columns if name != WEIGHT]
    weight = functions.col(WEIGHT)
    rows = changed
    if WEIGHT not in changed.columns:
        rows = rows.withColumn(OPERATION, functions.lit(int(OperationType.APPEND)))
        order = _sort_keys(rows, [*(key or ()), *names], event_time)
    elif key is None:
        plain = functions.when(weight > 0, int(OperationType.APPEND)).otherwise(int(OperationType.RETRACT))
        rows = repeated(rows.withColumn(OPERATION, plain))
        order = [*_sort_keys(rows, names, event_time), functions.col(OPERATION)]
    else:
        same = Window.partitionBy(*key) if key else Window.partitionBy(functions.lit(0))
        # Keys of inputs are promises of others: rows that violate one are not lost, but form no pairs.
        gained, lost = (
            functions.sum(functions.greatest(sign * weight, functions.lit(0))).over(same) for sign in (1, -1)
        )
        rows = repeated(rows.withColumn(_PAIR, (gained == 1) & (lost == 1)))
        pair = functions.col(_PAIR)
        operation = (
            functions.when(pair & (weight < 0), int(OperationType.CORRECT_FROM))
            .when(pair, int(OperationType.CORRECT_TO))
            .when(weight < 0, int(OperationType.RETRACT))
            .otherwise(int(OperationType.APPEND))
        )
        rows = rows.withColumn(OPERATION, operation)
        order = []
        if event_time is not None:
            # Sort both rows of a pair by the time of the new one: by their own times, they would be separated.
            time = functions.col(event_time)
            rows = rows.withColumn(
                _TIME, functions.coalesce(functions.max(functions.when(weight > 0, time)).over(same), time)
            )
            order = [functions.col(_TIME)]
        # The weight comes before the other columns: -1 sorts first, so `-C` stands right before its `+C`.
        order += [*_sort_keys(rows, key, None), weight, *_sort_keys(rows, names, None)]
    # Offsets are positions in this order, so all rows have to pass through one task. A range sort would sample the
    # rows, and partition them differently each time.
    in_one_partition = rows.coalesce(1) if is_gathered(rows.sparkSession) else rows.repartition(1)
    return in_one_partition.sortWithinPartitions(*order).select(*names, OPERATION)


def _sort_keys(rows: DataFrame, names: Sequence[str], first: str | None) -> list[Column]:
    from pyspark.sql import functions

    keys = [functions.col(first)] if first is not None else []
    return keys + [sortable(rows, name) for name in dict.fromkeys(names) if name != first]
