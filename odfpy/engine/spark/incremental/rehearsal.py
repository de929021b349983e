"""Rehearsal of a later pull when a query is added: Spark analyzes its plans over empty inputs, and does not run them.

Some limits of a query only show once the engine has built its own plans around it: rows that have to be sorted but
contain a column that has no order, or results that cannot be compared. The author should learn of them when the query
is added, not in the second month.
"""

from __future__ import annotations

from dataclasses import dataclass

from odfpy.engine.spark.incremental.properties.plan_info import Fragment, Groups, StatefulInput
from odfpy.engine.spark.incremental.state.changes import no_rows, wide_weight
from odfpy.engine.spark.incremental.state.difference import by_position, difference, in_order
from odfpy.engine.spark.incremental.state.versions import differing
from odfpy.engine.spark.plan.catalyst import Catalyst, Node
from odfpy.engine.spark.plan.times import Clock


def rehearse(catalyst: Catalyst, fragment: Fragment, clock: Clock) -> None:
    """Build what a pull of a fragment emits after rows have been retracted.

    Args:
        catalyst: the session.
        fragment: the fragment.
        clock: the clock, with all watermarks unknown.

    Raises:
        UnsupportedQuery, Py4JJavaError, PySparkException: it cannot be built.
    """
    info = fragment.info
    result = by_position(catalyst, info.columns, info.built(_NoRows(catalyst, clock)))
    in_order(catalyst, difference(catalyst, result, result), None, None)
    for stateful_input in info.stateful_inputs:
        if stateful_input.looked_up is not None and stateful_input.looked_up.valid is not None:
            none = no_rows(catalyst, stateful_input.columns)
            weighted = catalyst.project([*stateful_input.columns, wide_weight(catalyst, catalyst.integer(1))], none)
            differing(catalyst, stateful_input.columns, weighted, stateful_input.looked_up.valid)


@dataclass(frozen=True, slots=True)
class _NoRows:
    """Stateful inputs without rows, of which nothing is known."""

    catalyst: Catalyst
    clock: Clock

    def rows(self, stateful_input: StatefulInput) -> Node:
        """Return an empty plan with the columns of a stateful input."""
        return no_rows(self.catalyst, stateful_input.columns)

    def groups(self, stateful_input: StatefulInput) -> Groups:
        """Return empty partial aggregates of a stateful input that has them."""
        if stateful_input.groups is None:
            raise TypeError("rows of this stateful input are not groups")
        by_value = not stateful_input.groups.is_linear
        partials = stateful_input.groups.of_rows(self.rows(stateful_input), by_value=by_value)
        return Groups(stateful_input.groups.with_group_columns(partials), by_value)

    def is_append_only(self, stateful_input: StatefulInput) -> bool:
        """Return False for logs: they are planned with retractions, since they will not stay append-only."""
        return stateful_input.log is None
