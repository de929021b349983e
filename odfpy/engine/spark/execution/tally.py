"""Counts for the summary of a pull: new rows that came late, and entries that were ignored because of it."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from odfpy.engine.contract import TransformRequest
from odfpy.engine.lateness.policy import Late
from odfpy.engine.lateness.slices import late_tally
from odfpy.engine.spark.execution.stateful import Stateful
from odfpy.engine.spark.incremental.state.correctable import Correctable, has_windows
from odfpy.engine.spark.incremental.state.source_rows import leaf_over
from odfpy.engine.spark.incremental.streams import streams_of
from odfpy.engine.spark.plan.catalyst import Node, columns
from odfpy.engine.spark.plan.step import CARRIED_INPUT, CARRIED_OFFSET
from odfpy.engine.spark.row_by_row.carry import carry

if TYPE_CHECKING:
    from odfpy.engine.spark.execution.prepare import PreparedTransform


def tally(ready: PreparedTransform | Stateful, request: TransformRequest) -> tuple[int, int]:
    """Return the number of late new rows, and of changelog entries that were ignored because they came (too) late.

    Args:
        ready: the transform.
        request: the request, with the new rows.
    """
    late = [late_tally(source) for source in request.query_inputs]
    pairs = zip(late, ready.late.inputs, strict=True)
    ignored = sum(table.entries for table, kind in pairs if kind is Late.IGNORED)
    if isinstance(ready, Stateful):
        ignored += _too_late(ready, request)
    return sum(table.rows for table in late), ignored


def _too_late(ready: Stateful, request: TransformRequest) -> int:
    """Return the number of entries that came too late for a window."""
    catalyst, sources = ready.catalyst, request.query_inputs
    limit = Correctable.of(catalyst, ready.late, sources, ready.scratch)
    if limit is None:
        return 0
    new = [stream.new() for stream in streams_of(catalyst, sources, ready.late, ready.scratch)]
    plans = []
    for stateful_input in (
        stateful_input for fragment in ready.steps.fragments for stateful_input in fragment.info.stateful_inputs
    ):
        if not has_windows(stateful_input, len(sources)):
            continue
        delta = carry(catalyst, stateful_input.plan, lambda number, leaf: leaf_over(catalyst, leaf, new[number]))
        plan = limit.dropped(stateful_input, delta)
        if plan is not None:
            by_name: dict[str, Node] = {
                column.name(): column for column in columns(plan)[len(stateful_input.columns) :]
            }
            marks = [by_name[CARRIED_INPUT], by_name[CARRIED_OFFSET]]
            plans.append(catalyst.dataframe(catalyst.project(marks, plan)))
    return reduce(lambda left, right: left.union(right), plans).distinct().count() if plans else 0
