"""The local lane of a merge: its SQL in an in-process database.

Only columns for comparison and ordering enter the database. Its result contains the operation and the origin of each
row of the new slice. The rows themselves are then picked in Arrow, so that no value passes through another type system
(duckdb has no half floats, for example, and may return a -0.0 in a list as 0.0).
"""

# ruff: noqa: S608  (SQL is made of roles and quoted names)

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from odfpy.chain.sources import MergeAppend, MergeSnapshot, MergeStrategy
from odfpy.data.data_warning import DataWarning
from odfpy.data.schemas.fit import fit_table
from odfpy.data.vocabulary import DatasetVocabulary
from odfpy.ingest.ledger_conflicts import warn_conflicting_rows
from odfpy.ingest.merge import StateNeed
from odfpy.ingest.merge.base import APPEND, order_clause, repeated_keys
from odfpy.ingest.merge_plan import MergePlan, relation, repeated_key
from odfpy.ingest.normalize import NormalizedRows
from odfpy.ingest.order import time_order
from odfpy.ingest.write import OrderedRows
from odfpy.state.current import KeyedState, StateColumn
from odfpy.state.database import SharedDatabase
from odfpy.values import dataclass

if TYPE_CHECKING:
    import duckdb


@dataclass(frozen=True, slots=True)
class MergedRows:
    """The rows of the new slices, in the order of their offsets.

    Attributes:
        rows: operations, event time and data columns.
        used: number of input rows that had an effect.
        repeated: number of input rows whose key had occurred before in the input.
        warnings: warnings for the user.
    """

    rows: OrderedRows
    used: int
    repeated: int
    warnings: tuple[DataWarning, ...] = ()


def merge_locally(
    rows: NormalizedRows,
    strategy: MergeStrategy,
    state: KeyedState,
    vocabulary: DatasetVocabulary,
    *,
    shared: SharedDatabase,
) -> MergedRows:
    """Merge new rows with the current state.

    Args:
        rows: new rows, in the types of the dataset's schema.
        strategy: the merge strategy.
        state: the current state of the dataset.
        vocabulary: names of the system columns.
        shared: database for the lookups.

    Raises:
        IngestError: a snapshot has a key twice, or the merge failed.
        IntegrityError: the history of the dataset is damaged.
    """
    plan = MergePlan.of(rows.columns.column_names, strategy, vocabulary)
    if isinstance(strategy, MergeAppend):
        return _appended(rows, plan)
    with shared.session(state.check) as db:
        db.register("new", relation(rows, plan))
        repeated = _count_repeated(db, rows, strategy, plan)
        create_state(db, state, plan)
        result = db.sql(merged_places(plan)).to_arrow_table()
        operations = result.column("op").cast(pa.int32()).combine_chunks()
        positions = result.column("pos").cast(pa.int64()).combine_chunks()
        is_ledger = plan.merge.needs_state is StateNeed.SEEN_KEYS
        warnings = warn_conflicting_rows(db, rows.columns, plan, positions) if is_ledger else ()
    if plan.merge.needs_state is not StateNeed.CURRENT_ROWS:
        return MergedRows(OrderedRows(operations, rows.columns, positions), len(positions), repeated, warnings)
    used = pc.sum(pc.is_in(operations, value_set=pa.array(plan.from_input, pa.int32()))).as_py() or 0
    return MergedRows(_pick(rows.columns, state, operations, positions), used, repeated)


def _appended(rows: NormalizedRows, plan: MergePlan) -> MergedRows:
    """Return all rows by event time: without keys there are no lookups, and Arrow sorts faster than a database."""
    count = rows.columns.num_rows
    operations = pa.repeat(pa.scalar(APPEND, pa.int32()), count)
    positions = time_order(rows.columns.column(plan.event_time))
    return MergedRows(OrderedRows(operations, rows.columns, positions), count, 0)


def merged_places(plan: MergePlan) -> str:
    """Return the query for operations and positions of the merge's result, in the order of the new offsets."""
    return f"SELECT op, pos FROM ({plan.merge.sql(plan.shape)}) AS merged {order_clause(plan.merge, plan.shape)}"


def create_state(db: duckdb.DuckDBPyConnection, state: KeyedState, plan: MergePlan) -> None:
    """Create `state`, if the merge needs it, with the types of the existing `new`.

    Args:
        db: the connection of the merge.
        state: the keyed state of the dataset.
        plan: the roles of the columns.
    """
    new = db.sql("SELECT * FROM new")
    types = dict(zip(new.columns, map(str, new.types), strict=True))

    def columns(roles: Sequence[str], names: Sequence[str]) -> list[StateColumn]:
        return [StateColumn(role, name, types[role]) for role, name in zip(roles, names, strict=True)]

    keys = columns(plan.shape.key_columns, plan.keys)
    if plan.merge.needs_state is StateNeed.SEEN_KEYS:
        state.seen_keys(db, keys, among="new").create_view("state")
    elif plan.merge.needs_state is StateNeed.CURRENT_ROWS:
        times = columns(["t"], [plan.event_time]) if plan.shape.compares_event_time else []
        values = columns(plan.shape.value_columns, plan.values)
        # an upsert only needs the keys of the input, a snapshot all keys
        among = "new" if plan.merge.takes_operations else None
        state.current_rows(db, keys, [*times, *values], among=among).create_view("state")


def _count_repeated(
    db: duckdb.DuckDBPyConnection, rows: NormalizedRows, strategy: MergeStrategy, plan: MergePlan
) -> int:
    """Count rows whose key occurred before in the input, which a snapshot must not have."""
    if not plan.keys:
        return 0
    # Equal keys have equal hashes, and sorting hashes takes a third of the time of grouping by keys.
    hashes = db.sql(f"SELECT hash({', '.join(plan.shape.key_columns)}) AS key FROM new").to_arrow_table()
    ascending = np.sort(hashes.column("key").to_numpy())
    if not (ascending[1:] == ascending[:-1]).any():
        return 0
    query = f"SELECT COUNT(*), SUM(repeats - 1), MIN(first_pos) FROM ({repeated_keys(plan.shape)}) AS repeated"
    found = db.execute(query).fetchall()[0]
    if not found[0]:
        return 0
    keys, repeated, first = (int(number) for number in found)
    if isinstance(strategy, MergeSnapshot):
        values = {name: rows.columns.column(name)[first].as_py() for name in plan.keys}
        raise repeated_key(values, keys, first)
    return repeated


def _pick(new: pa.Table, state: KeyedState, operations: pa.Array, positions: pa.Array) -> OrderedRows:
    """Return the rows of the result: new rows for +A and +C, old rows for -R and -C."""
    is_old = pc.is_in(operations, value_set=pa.array([1, 2], pa.int32()))
    if not is_old.true_count:
        return OrderedRows(operations, new, positions)
    old = state.rows(positions.filter(is_old))
    # Old rows are placed behind the new ones, in the final order.
    behind = pc.add(pc.cumulative_sum(is_old.cast(pa.int64())), new.num_rows - 1)
    both = pa.concat_tables([new, fit_table(old, new.schema)])
    return OrderedRows(operations, both, pc.if_else(is_old, behind, positions))
