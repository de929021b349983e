"""The difference that a fragment emits: its result after a pull less that before, in its final order.

Rows are ordered by event time, then by the columns by which a row is known, then by all columns; where one row takes
the place of another with the same key, `-C` stands right before its `+C` (ADR 0013, "Order and floats").
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from odfpy.data.vocabulary import OperationType
from odfpy.engine.spark.incremental.state.changes import WEIGHT
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
_TIMES: Final = "__odf_times"


_TEMPLATES: Final = Templates()


def by_position(catalyst: Catalyst, wanted: Sequence[Node], plan: Node) -> Node:
    """Columns of a plan, called `c0`, `c1`...

    Args:
        catalyst: access to Catalyst.
        wanted: the columns.
        plan: the plan.
    """
    return catalyst.project([catalyst.alias(column, f"c{at}") for at, column in enumerate(wanted)], plan)


def difference(catalyst: Catalyst, before: Node | None, after: Node) -> Node:
    """The net of two results, with a weight, which is never 0; without weights, all rows are new.

    Args:
        catalyst: access to Catalyst.
        before: the result before, columns `c0`, `c1`...; None for no rows.
        after: the result after.
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
    # As multisets, not joined by a key: results may lack one, and may have a row several times. What has not changed
    # cancels out, so that it does no harm to look at too many keys.
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
    """The rows to emit in their order, each with its operation type.

    Args:
        catalyst: access to Catalyst.
        changed: what `difference` gives.
        event_time: name of the column by which rows are sorted first.
        key: columns by which a row is known among all others of the result, or None.
        with_offsets: whether a last column, `OFFSET`, has the position of a row.
    """
    purpose = "order", event_time, None if key is None else tuple(key), is_gathered(catalyst.spark), with_offsets
    ordered = partial(_with_offsets if with_offsets else _in_order, event_time=event_time, key=key)
    return catalyst.dataframe(_TEMPLATES.over(catalyst, changed, purpose, ordered))


def _with_offsets(changed: DataFrame, event_time: str | None, key: Sequence[str] | None) -> DataFrame:
    from pyspark.sql import functions

    # Consecutive only within one partition, as here. Halves of a pair are known by that later.
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
        rows = _each(rows.withColumn(OPERATION, plain))
        order = [*_sort_keys(rows, names, event_time), functions.col(OPERATION)]
    else:
        same = Window.partitionBy(*key) if key else Window.partitionBy(functions.lit(0))
        # Keys of inputs are what others have promised: rows that break one are not lost, and no pairs.
        gained, lost = (
            functions.sum(functions.greatest(sign * weight, functions.lit(0))).over(same) for sign in (1, -1)
        )
        rows = _each(rows.withColumn(_PAIR, (gained == 1) & (lost == 1)))
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
            # Both halves of a pair stand at the time of the new row: by times of their own, they would come apart.
            time = functions.col(event_time)
            rows = rows.withColumn(
                _TIME, functions.coalesce(functions.max(functions.when(weight > 0, time)).over(same), time)
            )
            order = [functions.col(_TIME)]
        # The weight before the other columns: -1 sorts first, so `-C` stands right before its `+C`.
        order += [*_sort_keys(rows, key, None), weight, *_sort_keys(rows, names, None)]
    # Offsets are positions in this order, so that all rows have to pass one task. A sort by ranges would sample, and
    # give other partitions each time.
    whole = rows.coalesce(1) if is_gathered(rows.sparkSession) else rows.repartition(1)
    return whole.sortWithinPartitions(*order).select(*names, OPERATION)


def _each(rows: DataFrame) -> DataFrame:
    """Each row as often as its weight says."""
    from pyspark.sql import functions

    times = functions.sequence(functions.lit(1), functions.abs(functions.col(WEIGHT)))
    return rows.withColumn(_TIMES, functions.explode(times))


def _sort_keys(rows: DataFrame, names: Sequence[str], first: str | None) -> list[Column]:
    from pyspark.sql import functions

    keys = [functions.col(first)] if first is not None else []
    return keys + [sortable(rows, name) for name in dict.fromkeys(names) if name != first]
