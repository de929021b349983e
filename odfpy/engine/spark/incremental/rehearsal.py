"""A later pull, rehearsed when a query is added: its plans over no rows, which Spark analyzes and does not run.

Some of what a query cannot do is only known once the engine has built its own plans around it: rows that would have to
be put into an order and have a column that has none, results that cannot be compared. Nobody should hear of that in the
second month.
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
    """Build what a pull of a fragment emits after rows have been taken back.

    Args:
        catalyst: the session.
        fragment: the fragment.
        clock: watermarks that are not known.

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
    """The rows of stateful inputs while there are none, and nothing is known of them."""

    catalyst: Catalyst
    clock: Clock

    def rows(self, stateful_input: StatefulInput) -> Node:
        """The rows of a stateful input."""
        return no_rows(self.catalyst, stateful_input.columns)

    def groups(self, stateful_input: StatefulInput) -> Groups:
        """The partial results of a stateful input that has them."""
        if stateful_input.groups is None:
            raise TypeError("rows of this stateful input are not groups")
        by_value = not stateful_input.groups.is_linear
        made = stateful_input.groups.of_rows(self.rows(stateful_input), by_value=by_value)
        return Groups(stateful_input.groups.with_group_columns(made), by_value)

    def is_append_only(self, stateful_input: StatefulInput) -> bool:
        """Return whether all rows of a log that there ever were are known to be appended, which will not stay so."""
        return stateful_input.log is None
