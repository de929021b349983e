"""ChangelogStream: the input already is a changelog."""

from __future__ import annotations

from odfpy.ingest.merge.base import MergeShape, StateNeed, order_by_key, select
from odfpy.values import dataclass


@dataclass(frozen=True, slots=True)
class ChangelogStreamMerge:
    """Keeps every row with its own operation, in order of key and operation."""

    needs_state: StateNeed = StateNeed.NOTHING
    takes_operations: bool = True

    def sql(self, shape: MergeShape) -> str:
        """Return the query that selects every row of `new`."""
        columns = ("op", "pos", *shape.key_columns, *shape.carried_columns)
        return f"SELECT\n  {select(f'new.{column}' for column in columns)}\nFROM new"

    def order(self, shape: MergeShape) -> tuple[str, ...]:
        """Order by key, then operation, then position in the input."""
        return order_by_key(shape)
