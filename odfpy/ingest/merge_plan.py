"""The plan of a merge: the roles of the input's columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from odfpy.chain.sources import MergeSnapshot, MergeStrategy
from odfpy.data.vocabulary import DatasetVocabulary, OperationType
from odfpy.errors import IngestError
from odfpy.ingest.merge import Merge, MergeShape, StateNeed, merge_of
from odfpy.ingest.normalize import NormalizedRows, primary_key
from odfpy.state.comparable import comparable
from odfpy.values import dataclass


@dataclass(frozen=True, slots=True)
class MergePlan:
    """Roles of columns; see `odfpy.ingest.merge.base`."""

    merge: Merge
    shape: MergeShape
    keys: tuple[str, ...]
    values: tuple[str, ...]
    event_time: str

    @classmethod
    def of(cls, names: Sequence[str], strategy: MergeStrategy, vocabulary: DatasetVocabulary) -> MergePlan:
        """Return the plan for rows with the given columns, including event time.

        Args:
            names: names of the columns, in order.
            strategy: the merge strategy.
            vocabulary: names of the system columns.
        """
        merge, keys = merge_of(strategy), primary_key(strategy)
        compared: Sequence[str] = ()
        if merge.needs_state is StateNeed.CURRENT_ROWS:
            chosen = strategy.compare_columns if isinstance(strategy, MergeSnapshot) else None
            compared = [name for name in names if name not in keys and name in (chosen or [name])]
        values = tuple(name for name in compared if name != vocabulary.event_time_column)
        shape = MergeShape(len(keys), len(values), compares_event_time=vocabulary.event_time_column in compared)
        return cls(merge, shape, keys, values, vocabulary.event_time_column)

    @property
    def not_values(self) -> tuple[str, ...]:
        """The columns that are not values: key and event time."""
        return (*self.keys, self.event_time)

    @property
    def from_input(self) -> tuple[int, ...]:
        """The operations of the result that correspond to rows of the input.

        Retractions of a snapshot are for missing rows, those of an upsert stream for input rows.
        """
        if self.merge.needs_state is not StateNeed.CURRENT_ROWS:
            return tuple(int(operation) for operation in OperationType)
        return (0, 1, 3) if self.merge.takes_operations else (0, 3)


def relation(rows: NormalizedRows, plan: MergePlan, first: int = 0) -> pa.Table:
    """Return the relation `new` of a merge.

    Args:
        rows: the new rows.
        plan: the roles of the columns.
        first: position of the first row in the input.
    """
    columns = {
        "pos": pa.arange(first, first + rows.columns.num_rows),
        "t": rows.columns.column(plan.event_time),
    }
    if plan.shape.compares_event_time:
        columns["given"] = rows.event_time_given
    if rows.operations is not None:
        columns["op"] = rows.operations
    roles = (*plan.shape.key_columns, *plan.shape.value_columns)
    for role, name in zip(roles, (*plan.keys, *plan.values), strict=True):
        columns[role] = comparable(rows.columns.column(name))
    return pa.table(columns)


def repeated_key(values: Mapping[str, Any], keys: int, first: int) -> IngestError:
    """Return the error for a snapshot that has a key more than once.

    Args:
        values: key columns of the first repeated key, by name.
        keys: number of repeated keys.
        first: position of the first row with the key.
    """
    key = ", ".join(f"{name} = {value!r}" for name, value in values.items())
    more = f", and {keys - 1} other keys, too" if keys > 1 else ""
    return IngestError(
        f"The new state contains the primary key {key} more than once, first in row {first + 1}{more}",
        hint="A snapshot has each key once: choose a primary key that is unique, or remove repetitions in the "
        "preprocessing query.",
    )
