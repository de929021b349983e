"""UpsertStream: the last row of a key replaces its current row."""

# ruff: noqa: S608  (SQL is made of roles and quoted names)

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
class UpsertStreamMerge:
    """The last row of each key decides: `op` 1 retracts it, any other value upserts it.

    Rows that change nothing, and retractions of keys that do not exist, are dropped.
    """

    needs_state: StateNeed = StateNeed.CURRENT_ROWS
    takes_operations: bool = True

    def sql(self, shape: MergeShape) -> str:
        """Return the last row of each key beside its current state, if they differ."""
        keys = ", ".join(shape.key_columns)
        return changes_to_operations(
            shape,
            f"CASE WHEN new.op = 1 THEN {RETRACT} WHEN state.pos IS NULL THEN {APPEND} ELSE {CORRECT} END",
            f"FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY {keys} ORDER BY pos DESC) AS age FROM new) AS new\n"
            f"LEFT JOIN state ON {equal_keys(shape, 'state', 'new')}\n"
            f"WHERE (new.age = 1) AND (CASE\n"
            f"  WHEN new.op = 1 THEN state.pos IS NOT NULL\n"
            f"  ELSE (state.pos IS NULL) OR {is_changed(shape)} END)",
        )

    def order(self, shape: MergeShape) -> tuple[str, ...]:
        """Order by key, then operation."""
        return order_by_key(shape)
