"""EXCEPT and INTERSECT: rows of two sides are compared as a whole."""

from __future__ import annotations

from odfpy.engine.spark.incremental.operators.planner import Walk
from odfpy.engine.spark.incremental.properties.keys import united_key
from odfpy.engine.spark.incremental.properties.plan_info import Part, TimeColumn, Trait
from odfpy.engine.spark.plan.catalyst import Node, children, column_id, columns, operator_name
from odfpy.engine.spark.plan.times import Least


def set_operation(walk: Walk, plan: Node) -> Part:
    """What is known of EXCEPT or INTERSECT, with or without ALL."""
    parts = [walk.whole(walk.part(child)) for child in children(plan)]
    parts = [part if part.free is None else walk.gate(part, part.columns) for part in parts]
    outputs = tuple(columns(plan))
    keys = []
    times = {}
    for at, column in enumerate(outputs):
        key = united_key(parts, at, column)
        if key is not None:
            keys.append(key)
        found = [part.times.get(column_id(part.columns[at])) for part in parts]
        known = [time.watermark for time in found if time is not None and not time.windows]
        if len(known) == len(parts):
            times[column_id(column)] = TimeColumn(Least(tuple(known)))
    word = operator_name(plan).upper()
    trait = Trait("set operation", f"{word} compares whole rows", "the rows of both sides")
    return Part(
        outputs,
        build=lambda moment: plan.withNewChildren(walk.catalyst.seq([part.built(moment) for part in parts])),
        keys=tuple(keys),
        gates=tuple(gate for part in parts for gate in part.gates),
        times=times,
        unique=None if plan.isAll() else frozenset(column_id(column) for column in outputs),
        traits=(*(trait for part in parts for trait in part.traits), trait),
    )
