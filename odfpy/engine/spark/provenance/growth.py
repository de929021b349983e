"""Growth: whether later input can only have added to what rows of a result are made of."""

from __future__ import annotations

from typing import Final

from odfpy.engine.spark.plan.operators import ROW_OPERATORS
from odfpy.engine.spark.provenance.inputs_at import TransformAt

_GROUPING: Final = frozenset(("Aggregate", "Distinct"))
_OTHERS: Final = ROW_OPERATORS | {"Expand"}


def only_adds(then: TransformAt) -> bool:
    """Return whether a row that is made of rows that were all there earlier was made of just these then.

    So it is where nothing is taken back, and a query row by row is grouped once. A group that has no newer rows was the
    same, and was given out as soon as it is now, since what it waits for is among the values that it is grouped by.
    (Of sessions that is not so, and of what is grouped twice neither: rows leave a group whose own values change. Where
    rows do not show by what they are grouped, another group may stand in the place of one that has changed.)
    """
    operators = [operator for step in then.ready.steps.steps for operator in step.step.operators]
    names = [operator.name for operator in operators]
    return (
        then.only_appended
        and not then.annotator.has_sessions
        and then.ready.steps.last.info.unique is not None
        and all(name in _OTHERS or name in _GROUPING for name in names)
        and sum(name in _GROUPING for name in names) == 1
        and all(operator.subquery is None for operator in operators)
        and len(then.ready.steps.fragments) == 1  # temporal tables are fragments, too
    )
