"""The plans that Spark runs, recorded while they run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from pyspark.sql.classic.dataframe import DataFrame

from odfpy.engine.spark.plan.catalyst import items
from odfpy.engine.spark.process.calls import Calls
from odfpy.engine.spark.rows import write

_LOOPS = ("BroadcastNestedLoopJoinExec", "CartesianProductExec")
_EQUAL = ("EqualTo", "EqualNullSafe")


@contextmanager
def plans_run() -> Iterator[list[Any]]:
    """Yield a list of the physical plans that are fetched within the block."""
    plans: list[Any] = []

    def seen(run: Any) -> Any:
        def looked_at(*arguments: Any) -> Any:
            (frame,) = (one for one in arguments if isinstance(one, DataFrame))
            plans.append(frame._jdf.queryExecution().executedPlan())
            return run(*arguments)

        return looked_at

    with (
        patch.object(write, "_messages", seen(write._messages)),
        patch.object(Calls, "rows", seen(Calls.rows)),
        patch.object(Calls, "in_memory", seen(Calls.in_memory)),
        patch.object(DataFrame, "collect", seen(DataFrame.collect)),
        patch.object(DataFrame, "isEmpty", seen(DataFrame.isEmpty)),
        patch.object(DataFrame, "count", seen(DataFrame.count)),
    ):
        yield plans


def windows_over_everything(plan: Any) -> list[str]:
    """Return the windows of a plan that have no partition, so that one task sorts all rows."""
    found = [node for name, node in _operators(plan) if name == "WindowExec"]
    return [node.simpleStringWithNodeId() for node in found if node.partitionSpec().isEmpty()]


def needless_loops(plan: Any) -> list[str]:
    """Return the joins of a plan that compare every row with every other one, despite an equality condition."""
    found = [node for name, node in _operators(plan) if name in _LOOPS]
    conditions = [node.condition().get() for node in found if node.condition().isDefined()]
    return [condition.sql() for condition in conditions if _has_equality(condition)]


def _operators(plan: Any) -> Iterator[tuple[str, Any]]:
    name = plan.getClass().getSimpleName()
    yield name, plan
    below = plan.executedPlan() if name == "AdaptiveSparkPlanExec" else None
    for child in [below] if below is not None else items(plan.children()):
        yield from _operators(child)


def _has_equality(condition: Any) -> bool:
    """Return whether all matching rows are equal in something; alternatives are not."""
    name = condition.getClass().getSimpleName()
    if name == "And":
        return any(_has_equality(part) for part in items(condition.children()))
    return name in _EQUAL and all(not part.references().isEmpty() for part in items(condition.children()))
