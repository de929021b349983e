"""Temporal tables for which the rows that began versions suffice to explain a row of the result.

Rows that ended a version, or preceded it, determine when another one is in force. Without them the version would be in
force for longer, and a row that looked it up at its time would still find it. So the row that began the version is the
only one of its key that is needed (ADR 0024), unless

- the result depends on the end: the query shows it, or shows versions that no row looks up, which wait for it;
- a cited row would find a version that was over at its time. A row that has found one finds no other; but one that has
  found none, and counts nevertheless, may do so where it is cited together with rows that have: in a group, or where
  one table is read twice.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from odfpy.engine.spark.incremental.operators.steps import Steps
from odfpy.engine.spark.incremental.properties.keys import sources_read
from odfpy.engine.spark.plan.operators import ROW_OPERATORS

_OF_ONE_ROW_EACH: Final = ROW_OPERATORS | {"Join"}
"""Operators whose rows are each derived from at most one row of every input."""


def cites_only_begun_versions(steps: Steps, source: int) -> bool:
    """Return whether a source is a temporal table for which only rows that began versions need to be cited.

    Args:
        steps: the transform.
        source: number of the source.
    """
    readers = [stateful_input for fragment in steps.fragments for stateful_input in fragment.info.stateful_inputs]
    plans = [reader.plan for reader in readers] + (
        [] if steps.last.info.stateless_plan is None else [steps.last.info.stateless_plan]
    )
    reads = Counter(number for plan in plans for number in sources_read(plan))
    lookups = [reader.looked_up for reader in readers if source in sources_read(reader.plan)]
    if len(lookups) != 1 or max(reads.values()) > 1:
        return False
    (lookup,) = lookups
    if lookup is None or lookup.uses_end:
        return False
    return not lookup.is_outer or _is_made_of_single_rows(steps)


def _is_made_of_single_rows(steps: Steps) -> bool:
    operators = [operator for step in steps.steps for operator in step.step.operators]
    return all(
        operator_below.name in _OF_ONE_ROW_EACH and operator_below.subquery is None for operator_below in operators
    )
