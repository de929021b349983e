"""Classification of steps: which ones work row by row, and what the others contain (ADR 0013, "Steps")."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from odfpy.dataset.transform import TransformSql
from odfpy.engine.spark.analysis.analysis import check_step, each_step
from odfpy.engine.spark.plan.catalyst import Catalyst
from odfpy.engine.spark.plan.operators import ROW_OPERATORS, obstacle, with_subqueries
from odfpy.engine.spark.plan.step import Step


@dataclass(frozen=True, slots=True)
class ClassifiedStep:
    """A step with its class: whether it works row by row, and the reason."""

    step: Step
    is_row_by_row: bool
    reason: str


def classify_transform(catalyst: Catalyst, transform: TransformSql, inputs: Sequence[str]) -> list[ClassifiedStep]:
    """Analyze and classify all steps of a transform; each sees the inputs and the steps before it.

    Args:
        catalyst: a session in which the inputs have been named.
        transform: the queries.
        inputs: names of the inputs.

    Raises:
        InvalidQuery: a query does not parse, or uses an unknown name.
        NondeterministicQuery: a query's result would not be a function of its inputs.
    """

    def visit(step: Step, *, is_last: bool) -> ClassifiedStep:
        check_step(catalyst, step, is_last=is_last)
        return _classify(step)

    return each_step(catalyst, transform, inputs, visit)


def row_by_row_reason(step: Step) -> str | None:
    """Return in words why a step works row by row, or None when it does not."""
    if any(operator.name not in ROW_OPERATORS or operator.subquery is not None for operator in step.operators):
        return None
    words = {"Filter": "filter", "Union": "UNION ALL", "Generate": "explode"}
    names = {operator.name for operator in step.operators}
    used = ["projection", *(word for name, word in words.items() if name in names)]
    return "every result row comes from one input row: " + ", ".join(used)


def _classify(step: Step) -> ClassifiedStep:
    reason = row_by_row_reason(step)
    if reason is not None:
        return ClassifiedStep(step, True, reason)
    obstacles = (what for operator in with_subqueries(step.plan) if (what := obstacle(operator)) is not None)
    return ClassifiedStep(step, False, next(obstacles).what)
