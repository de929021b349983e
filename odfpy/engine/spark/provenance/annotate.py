"""Annotates each row of a plan with the identifiers of its input rows, operator by operator.

A set of input rows is correct if these rows alone reproduce the row, and if no row can be removed from the set without
losing it (why-provenance, ADR 0024). So a row of GROUP BY is derived from all rows of its group, one of a join from its
two partners, and one of DISTINCT from all equal rows. A row that exists because another is missing (NOT EXISTS, EXCEPT,
no partner) is derived from itself alone, since no removal makes it disappear.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from odfpy.engine.spark.plan.catalyst import (
    Catalyst,
    Node,
    children,
    columns,
    expressions_of,
    items,
    operator_name,
    selected,
    subtree,
)
from odfpy.engine.spark.plan.session_windows import fenced_sessions, is_session
from odfpy.engine.spark.provenance.identifiers import Identifiers, is_leaf
from odfpy.engine.spark.provenance.joins import join, set_operation
from odfpy.engine.spark.provenance.windows import after_offset, window
from odfpy.errors import InternalError

_AS_BELOW: Final = frozenset(("Filter", "Generate", "Sort", "GlobalLimit", "LocalLimit", "RepartitionByExpression"))
"""Operators whose rows are each derived from one row below; LIMIT drops others, and removing more of these changes
nothing."""

_NAMES_ONLY: Final = frozenset(("SubqueryAlias", "View", "ResolvedHint", "expressions.PipeOperator"))


class Annotator:
    """An annotator of the plans of one session with identifiers of input rows.

    Attributes:
        has_sessions: whether a session window has occurred.
        own_rows: whether a row of a window function is derived only from its own row below, whatever it reads.
    """

    def __init__(self, catalyst: Catalyst, *, own_rows: bool = False) -> None:
        self.catalyst = catalyst
        self.own_rows = own_rows
        self.ids = Identifiers(catalyst)
        self.has_sessions = False

    def annotate(self, plan: Node) -> Node:
        """Return the rows of a plan over leaves, with one more column.

        Returns:
            A plan with the same columns under the same identities, and the identifiers.
        """
        if is_leaf(plan):
            below = plan.child()
            return self.ids.with_ids(selected(plan), self.ids.of(below), below)
        name = operator_name(plan)
        if name in _NAMES_ONLY:
            return self.annotate(plan.child())
        if name in _AS_BELOW:
            return self._as_below(plan)
        match name:
            case "Project":
                below = self._beside_subqueries(plan, self.annotate(plan.child()))
                return self.ids.with_ids(selected(plan), self.ids.of(below), below)
            case "Expand":
                return self._expand(plan)
            case "Union":
                return self._union(plan)
            case "Aggregate":
                return self._aggregate(items(plan.groupingExpressions()), items(plan.aggregateExpressions()), plan)
            case "Distinct":
                return self._aggregate(columns(plan), columns(plan), plan)
            case "Window" if self.own_rows:
                return self._as_below(plan)
            case "Window":
                return window(self.ids, plan, self.annotate(plan.child()))
            case "Offset":
                return after_offset(self.ids, plan, self.annotate(plan.child()))
            case "Join":
                return self._of_two(plan, partial(join, self.ids))
            case "Except" | "Intersect":
                return self._of_two(plan, partial(set_operation, self.ids))
        if not children(plan):
            return self.ids.with_ids(columns(plan), self.ids.none, plan)
        raise InternalError(f"{name} is not an operator that rows are traced through")

    def _as_below(self, plan: Node) -> Node:
        below = self._beside_subqueries(plan, self.annotate(plan.child()))
        above = plan.withNewChildren(self.catalyst.seq([below]))
        return self.ids.with_ids(columns(plan), self.ids.of(below), above)

    def _beside_subqueries(self, plan: Node, below: Node) -> Node:
        """The rows with identifiers, also those of the rows that subqueries in the expressions of a plan read."""
        subqueries = [
            node
            for expression in expressions_of(plan)
            for name, node in subtree(expression)
            if name == "ScalarSubquery"
        ]
        for node in subqueries:
            inner = self.annotate(node.plan())
            known = self.ids.named(self.ids.of(inner))
            joined = self.ids.build.outer_join(below, self.catalyst.project([known], inner))
            sets = [self.ids.of(below), known.toAttribute().withNullability(True)]
            shown = [column for column in columns(below) if column.name() != sets[0].name()]
            below = self.ids.with_ids(shown, self.ids.together(sets), joined)
        return below

    def _expand(self, plan: Node) -> Node:
        below = self.annotate(plan.child())
        known = self.ids.of(below)
        copies = [[*items(copy), known] for copy in items(plan.projections())]
        return self.catalyst.expand(copies, [*columns(plan), known], below)

    def _union(self, plan: Node) -> Node:
        parts = [(columns(child), self.annotate(child)) for child in children(plan)]
        return self.catalyst.union([self.ids.with_ids(own, self.ids.of(part), part) for own, part in parts])

    def _aggregate(self, groupings: list[Node], outputs: list[Node], plan: Node) -> Node:
        below = self.annotate(plan.child())
        collected = self.ids.named(self.ids.collected(self.ids.of(below)))
        aggregate = self.catalyst.aggregate(groupings, [*outputs, collected], below)
        if not any(map(is_session, groupings)):
            return aggregate
        self.has_sessions = True
        return fenced_sessions(self.catalyst, aggregate)

    def _of_two(self, plan: Node, combine: Callable[[Node, Node, Node], Node]) -> Node:
        left, right = (self.annotate(child) for child in children(plan))
        return combine(plan, left, right)
