"""A part of a query that keeps only closed rows, and what the rules of its operators share.

The rules are in `odfpy.engine.spark.batch.closing`, those of joins in `odfpy.engine.spark.batch.joins`.
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
"""The column that tells which table a plan reads, by number."""


class NotComparable(Exception):
    """The batch cannot tell what an output should amount to; the text says why."""


@dataclass(frozen=True, slots=True)
class ClosedPlan:
    """A part of a plan that keeps only rows that later input can no longer change (closed rows).

    Attributes:
        plan: the part.
        columns: its output.
        times: what is known of columns, by id.
        validity: columns that say when rows of a temporal table are valid, as long as they pass row by row.
        lineage: how its rows are made; unless an operator knows better, of several rows at once.
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
    """A walk through the plan of one query, from its inputs up, as the rule of one operator sees it."""

    def __init__(self, catalyst: Catalyst) -> None:
        """Begin a walk in a session."""
        self.catalyst = catalyst
        self._plan: Node = None

    @abstractmethod
    def part(self, plan: Node) -> ClosedPlan:
        """Return what is closed of a part of the plan.

        Raises:
            NotComparable: it has an operator of which no rule says what it waits for.
        """

    @cached_property
    def uses(self) -> Uses:
        """Return what the query does with columns."""
        return Uses(self._plan)

    def above(self, plan: Node, *below: ClosedPlan) -> Node:
        """An operator over other plans."""
        return plan.withNewChildren(self.catalyst.seq([one.plan for one in below]))

    def where(self, conditions: Sequence[Node], plan: Node, *, any_of: bool = False) -> Node:
        """A plan where all conditions hold, or any of them.

        Args:
            conditions: the conditions.
            plan: the plan.
            any_of: whether one of them is enough.
        """
        word = "Or" if any_of else "And"
        return self.catalyst.filter(reduce(lambda a, b: self.catalyst.expression(word, a, b), conditions), plan)
