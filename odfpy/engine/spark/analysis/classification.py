"""Classification: the steps that are row by row, and what hinders the others (ADR 0013, "Steps")."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from odfpy.dataset.transform import TransformSql
from odfpy.engine.spark.analysis.analysis import check_step, each_step
from odfpy.engine.spark.classes import CLASSES
from odfpy.engine.spark.classes.base import QueryClass, Step
from odfpy.engine.spark.plan.catalyst import Catalyst
from odfpy.engine.spark.plan.operators import obstacle, with_subqueries


@dataclass(frozen=True, slots=True)
class ClassifiedStep:
    """A step, its class, and why it is of that class; without a class it is not row by row."""

    step: Step
    query_class: QueryClass | None
    reason: str


def classify_transform(catalyst: Catalyst, transform: TransformSql, inputs: Sequence[str]) -> list[ClassifiedStep]:
    """Analyze all steps of a transform; each sees the inputs and the steps before it.

    Args:
        catalyst: a session in which the inputs have been named.
        transform: the queries.
        inputs: names of the inputs.

    Raises:
        InvalidQuery: a query does not parse, or names what is not there.
        NondeterministicQuery: a query's result would not be a function of its inputs.
    """

    def look(step: Step, *, is_last: bool) -> ClassifiedStep:
        check_step(catalyst, step, is_last=is_last)
        return _classify(step)

    return each_step(catalyst, transform, inputs, look)


def _classify(step: Step) -> ClassifiedStep:
    for query_class in CLASSES:
        reason = query_class.classify(step)
        if reason is not None:
            return ClassifiedStep(step, query_class, reason)
    found = (what for operator in with_subqueries(step.plan) if (what := obstacle(operator)) is not None)
    return ClassifiedStep(step, None, next(found).what)
