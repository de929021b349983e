"""Snapshot: the input is the full new state; its differences to the current state are the events."""

from __future__ import annotations

from odfpy.ingest.merge.base import (
    APPEND,
    CORRECT,
    RETRACT,
    MergeShape,
    StateNeed,
    changes_to_operations,
    equal_keys,
    is_changed,
    order_by_key,
)
from odfpy.values import dataclass


@dataclass(frozen=True, slots=True)
class SnapshotMerge:
    """New keys are +A, missing keys are -R, changed rows are -C +C. Each key occurs once in `new`."""

    needs_state: StateNeed = StateNeed.CURRENT_ROWS
    takes_operations: bool = False

    def sql(self, shape: MergeShape) -> str:
        """Return the full outer join of both states, where they differ."""
        return changes_to_operations(
            shape,
            f"CASE WHEN state.pos IS NULL THEN {APPEND} WHEN new.pos IS NULL THEN {RETRACT} ELSE {CORRECT} END",
            f"FROM state FULL OUTER JOIN new ON {equal_keys(shape, 'state', 'new')}\n"
            f"WHERE (state.pos IS NULL) OR (new.pos IS NULL) OR {is_changed(shape)}",
        )

    def order(self, shape: MergeShape) -> tuple[str, ...]:
        """Order by key, then operation."""
        return order_by_key(shape)
