"""EXCEPT and INTERSECT, keyed by the columns of whole rows."""

from __future__ import annotations

from odfpy.engine.spark.incremental.operators.planner import Planner
from odfpy.engine.spark.incremental.properties.keys import united_key
from odfpy.engine.spark.incremental.properties.plan_info import PlanInfo, StateRequirement, TimeColumn
from odfpy.engine.spark.plan.catalyst import Node, children, column_id, columns, operator_name
from odfpy.engine.spark.plan.times import LeastOf


def set_operation(planner: Planner, plan: Node) -> PlanInfo:
    """Return the properties of EXCEPT or INTERSECT, with or without ALL."""
    parts = [planner.recomputable(planner.info_of(child)) for child in children(plan)]
    parts = [info if info.stateless_plan is None else planner.stateful_input(info, info.columns) for info in parts]
    outputs = tuple(columns(plan))
    keys = []
    times = {}
    for at, column in enumerate(outputs):
        key = united_key(parts, at, column)
        if key is not None:
            keys.append(key)
        part_times = [info.times.get(column_id(info.columns[at])) for info in parts]
        watermarks = [time.watermark for time in part_times if time is not None and not time.windows]
        if len(watermarks) == len(parts):
            times[column_id(column)] = TimeColumn(LeastOf(tuple(watermarks)))
    word = operator_name(plan).upper()
    requirement = StateRequirement("set operation", f"{word} compares whole rows", "the rows of both sides")
    return PlanInfo(
        outputs,
        build=lambda inputs_at: plan.withNewChildren(planner.catalyst.seq([info.built(inputs_at) for info in parts])),
        keys=tuple(keys),
        stateful_inputs=tuple(stateful_input for info in parts for stateful_input in info.stateful_inputs),
        times=times,
        unique=None if plan.isAll() else frozenset(column_id(column) for column in outputs),
        requirements=(*(requirement for info in parts for requirement in info.requirements), requirement),
    )
