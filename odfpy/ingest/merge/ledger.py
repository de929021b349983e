"""Ledger: rows whose key has not been seen before are new events."""

# ruff: noqa: S608  (SQL is made of roles and quoted names)

from __future__ import annotations

from odfpy.ingest.merge.append import AppendMerge
from odfpy.ingest.merge.base import MergeShape, StateNeed, equal_keys
from odfpy.values import dataclass


@dataclass(frozen=True, slots=True)
class LedgerMerge(AppendMerge):
    """Keeps rows with unseen keys as +A, in order of event time.

    A key that occurs twice in one batch is kept twice: rows are only compared with history.
    """

    needs_state: StateNeed = StateNeed.SEEN_KEYS

    def sql(self, shape: MergeShape) -> str:
        """Return the query for rows of `new` whose key is not in `state`."""
        every_row = AppendMerge.sql(self, shape)
        return f"{every_row}\nWHERE NOT EXISTS (SELECT 1 FROM state WHERE {equal_keys(shape, 'state', 'new')})"
