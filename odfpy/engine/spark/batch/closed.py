"""Closed plans: parts of a query restricted to closed rows, and what the rules of all operators share.

Rows are closed when later input can no longer change them. The rules are in `odfpy.engine.spark.batch.closing`, those
of joins in `odfpy.engine.spark.batch.joins`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, reduce
from typing import Final

from odfpy.engine.spark.batch.time_bounds import ColumnTimes, RowLineage, ValidityColumn
from odfpy.engine.spark.batch.uses import Uses
from odfpy.engine.spark.plan.catalyst import Catalyst, Node, column_id

TABLE: Final = "__odf_table"
"""The column that identifies, by number, the table that a plan reads."""


class NotComparable(Exception):
    """Signals that the batch cannot compute what an output should be; the text tells why."""


@dataclass(frozen=True, slots=True)
class ClosedPlan:
    """A plan restricted to closed rows, those that later input can no longer change.

    Attributes:
        plan: the plan.
        columns: its output.
        times: the time bounds of columns, by id.
        validity: columns that tell when rows of a temporal table are valid, as long as they pass row by row.
        lineage: where its rows come from; from several rows at once, unless an operator knows better.
    """

    plan: Node
    columns: tuple[Node, ...]
    times: Mapping[int, ColumnTimes] = field(default_factory=dict)
    validity: Mapping[int, ValidityColumn] = field(default_factory=dict)
    lineage: RowLineage = RowLineage.TOGETHER

    def time_at(self, position: int) -> ColumnTimes | None:
        """Return the properties of the column at a position."""
        return self.times.get(column_id(self.columns[position]))


class PlanWalk(ABC):
    """A walk through the plan of one query, from its inputs up; the interface that the rules of operators use."""

    def __init__(self, catalyst: Catalyst) -> None:
        """Begin a walk in a session."""
        self.catalyst = catalyst
        self._plan: Node = None

    @abstractmethod
    def part(self, plan: Node) -> ClosedPlan:
        """Return the closed rows of a part of the plan.

        Raises:
            NotComparable: no rule tells what one of its operators waits for.
        """

    @cached_property
    def uses(self) -> Uses:
        """Return how the query uses its columns."""
        return Uses(self._plan)

    def above(self, plan: Node, *below: ClosedPlan) -> Node:
        """Return an operator over other plans."""
        return plan.withNewChildren(self.catalyst.seq([child.plan for child in below]))

    def where(self, conditions: Sequence[Node], plan: Node, *, any_of: bool = False) -> Node:
        """Return a plan with a filter by all conditions, or by any of them.

        Args:
            conditions: the conditions.
            plan: the plan.
            any_of: whether one true condition is enough.
        """
        word = "Or" if any_of else "And"
        return self.catalyst.filter(reduce(lambda a, b: self.catalyst.expression(word, a, b), conditions), plan)
