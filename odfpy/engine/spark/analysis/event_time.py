"""Watermark of a row-by-row result, from the lineage of its event time (ADR 0013, "Watermark out").

A watermark promises that no row at or before it comes later. It passes through a query where the event time does:
unchanged, or as a never decreasing function of the input's event time. Where the event time is computed in another way,
the watermark does not advance.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from odfpy.data.timestamp import Timestamp
from odfpy.engine.spark.plan.catalyst import Catalyst
from odfpy.engine.spark.plan.lineage import ColumnOrigin
from odfpy.engine.spark.plan.monotone import NEVER_DECREASING, never_decreases
from odfpy.engine.spark.plan.time_values import evaluate
from odfpy.engine.spark.plan.times import MILLISECOND, see_advance
from odfpy.engine.spark.row_by_row.carried import Branch
from odfpy.engine.spark.rows.tables import Table
from odfpy.engine.watermark import least_watermark, watermark_at

_PASSES: Final = NEVER_DECREASING.keys() - {"TimestampAdd"}
"""The functions that passed a watermark when row-by-row datasets were begun: their chains must replay the same."""


def watermark_passes(
    catalyst: Catalyst, origins: Sequence[ColumnOrigin], branches: Sequence[Branch], tables: Sequence[Table]
) -> bool:
    """Return whether the watermarks of the inputs bound the event times of the result.

    Args:
        catalyst: access to Catalyst.
        origins: the origins of the event time of the result.
        branches: the branches of the plan.
        tables: the inputs, in declared order.
    """
    return bool(origins) and all(_is_monotone(catalyst, origin, branches, tables) for origin in origins)


def output_watermark(
    catalyst: Catalyst,
    origins: Sequence[ColumnOrigin],
    branches: Sequence[Branch],
    tables: Sequence[Table],
    inputs: Sequence[Timestamp | None],
    before: Sequence[Timestamp | None] = (),
) -> Timestamp | None:
    """Return the watermark of the result, or None when it does not advance.

    Args:
        catalyst: the session.
        origins: the origins of its event time.
        branches: the branches of the plan.
        tables: the inputs, in declared order.
        inputs: the latest watermark of each input.
        before: the watermarks of the previous pull.
    """
    if least_watermark(inputs) is None or not watermark_passes(catalyst, origins, branches, tables):
        return None
    used = {branches[branch].input for branch in (origin.branch for origin in origins) if branch is not None}
    unused = [watermark for at, watermark in enumerate(inputs) if at not in used]
    passed = []
    for origin in origins:
        at = _input_of(origin, branches)
        passed.append(_watermark_after(catalyst, origin, inputs[at]))
        if origin.steps and before and before[at] is not None:
            see_advance(_micros(_watermark_after(catalyst, origin, before[at])), _micros(passed[-1]))
    return least_watermark([*unused, *passed])


def _micros(watermark: Timestamp | None) -> int | None:
    return None if watermark is None else watermark.millis * MILLISECOND


def _input_of(origin: ColumnOrigin, branches: Sequence[Branch]) -> int:
    return branches[origin.branch or 0].input


def _is_monotone(catalyst: Catalyst, origin: ColumnOrigin, branches: Sequence[Branch], tables: Sequence[Table]) -> bool:
    if origin.branch is None or origin.column != tables[_input_of(origin, branches)].vocab.event_time_column:
        return False
    return all(never_decreases(catalyst, step.expression.child(), _PASSES) for step in origin.steps)


def _watermark_after(catalyst: Catalyst, origin: ColumnOrigin, watermark: Timestamp | None) -> Timestamp | None:
    """Return the watermark after the expressions that the event time passes through.

    They may map later times to the same result, as `date_trunc` does; so it is just before the mapped watermark.
    """
    if watermark is None or not origin.steps:
        return watermark
    micros = _micros(watermark)
    for step in origin.steps:
        if micros is not None:
            micros = evaluate(catalyst, step.expression.child(), step.reads, micros)
    return watermark_at(None if micros is None else micros // MILLISECOND - 1)
