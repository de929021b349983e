"""Append: every row is a new event."""

from __future__ import annotations

from odfpy.ingest.merge.base import MergeShape, StateNeed, order_by_time, select
from odfpy.values import dataclass


@dataclass(frozen=True, slots=True)
class AppendMerge:
    """Keeps every row as +A, in order of event time."""

    needs_state: StateNeed = StateNeed.NOTHING
    takes_operations: bool = False

    def sql(self, shape: MergeShape) -> str:
        """Return the query that selects every row of `new`."""
        columns = ("0 AS op", *(f"new.{column}" for column in ("pos", "t", *shape.carried_columns)))
        return f"SELECT\n  {select(columns)}\nFROM new"

    def order(self, shape: MergeShape) -> tuple[str, ...]:  # noqa: ARG002  (others need the shape)
        """Order by event time, then position in the input."""
        return order_by_time()
