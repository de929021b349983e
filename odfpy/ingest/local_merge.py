"""The local lane of a merge: its SQL in an in-process database.

Only what is compared or ordered by enters the database. The result says for each row of the new slice what it is and
where it comes from; the rows themselves are then picked in Arrow, so that no value passes through another type system
(duckdb has no half floats, for one, and a -0.0 in a list can come out of it as 0.0).
"""

# ruff: noqa: S608  (SQL is made of roles and quoted names)

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from odfpy.chain.sources import MergeAppend, MergeSnapshot, MergeStrategy
from odfpy.data.fit import fit_table
from odfpy.data.vocabulary import DatasetVocabulary
from odfpy.errors import IngestError
from odfpy.ingest.merge import Merge, MergeShape, StateNeed, merge_of
from odfpy.ingest.merge.base import APPEND, order_clause, repeated_keys
from odfpy.ingest.normalize import NormalizedRows, primary_key
from odfpy.ingest.order import time_order
from odfpy.ingest.write import OrderedRows
from odfpy.state.comparable import comparable
from odfpy.state.current import KeyedState, StateColumn
from odfpy.state.database import database


@dataclass(frozen=True, slots=True)
class MergedRows:
    """Rows of the new slices, in the order of their offsets.

    Attributes:
        rows: operations, event time and data columns.
        used: rows of the input that made a difference.
        repeated: rows of the input whose key had come before in it.
    """

    rows: OrderedRows
    used: int
    repeated: int


@dataclass(frozen=True, slots=True)
class _Plan:
    """Which columns have which role."""

    merge: Merge
    shape: MergeShape
    keys: tuple[str, ...]
    values: tuple[str, ...]
    event_time: str


def merge_locally(
    rows: NormalizedRows,
    strategy: MergeStrategy,
    state: KeyedState,
    vocabulary: DatasetVocabulary,
    *,
    threads: int | None = None,
    scratch: Path | None = None,
) -> MergedRows:
    """Merge new rows with the current state.

    Args:
        rows: new rows, in the types of the dataset's schema.
        strategy: how to merge.
        state: what the dataset knows.
        vocabulary: names of the system columns.
        threads: for the database, by default one for each processor; the result does not depend on it.
        scratch: folder for what does not fit into memory.

    Raises:
        IngestError: a snapshot has a key twice, or the merge failed.
        IntegrityError: the history of the dataset is damaged.
    """
    plan = _plan(rows, strategy, vocabulary)
    if isinstance(strategy, MergeAppend):
        return _appended(rows, plan)
    with database(threads=threads, scratch=scratch, diagnose=state.check) as db:
        db.register("new", _relation(rows, plan))
        repeated = _count_repeated(db, rows, strategy, plan)
        _create_state(db, state, plan)
        query = f"SELECT op, pos FROM ({plan.merge.sql(plan.shape)}) AS merged {order_clause(plan.merge, plan.shape)}"
        result = db.sql(query).to_arrow_table()
    operations = result.column("op").cast(pa.int32()).combine_chunks()
    positions = result.column("pos").cast(pa.int64()).combine_chunks()
    if plan.merge.needs_state is not StateNeed.CURRENT_ROWS:
        return MergedRows(OrderedRows(operations, rows.columns, positions), len(positions), repeated)
    # The retractions of a snapshot are of rows that did not come, those of an upsert stream of rows that did.
    from_input = pa.array([0, 1, 3] if plan.merge.takes_operations else [0, 3], pa.int32())
    used = pc.sum(pc.is_in(operations, value_set=from_input)).as_py() or 0
    return MergedRows(_pick(rows.columns, state, operations, positions), used, repeated)


def _appended(rows: NormalizedRows, plan: _Plan) -> MergedRows:
    """All rows by event time: without keys there is nothing to look up, and Arrow sorts faster than a database."""
    count = rows.columns.num_rows
    operations = pa.repeat(pa.scalar(APPEND, pa.int32()), count)
    positions = time_order(rows.columns.column(plan.event_time))
    return MergedRows(OrderedRows(operations, rows.columns, positions), count, 0)


def _plan(rows: NormalizedRows, strategy: MergeStrategy, vocabulary: DatasetVocabulary) -> _Plan:
    merge, keys = merge_of(strategy), primary_key(strategy)
    compared: Sequence[str] = ()
    if merge.needs_state is StateNeed.CURRENT_ROWS:
        chosen = strategy.compare_columns if isinstance(strategy, MergeSnapshot) else None
        compared = [name for name in rows.columns.column_names if name not in keys and name in (chosen or [name])]
    values = tuple(name for name in compared if name != vocabulary.event_time_column)
    shape = MergeShape(len(keys), len(values), compares_event_time=vocabulary.event_time_column in compared)
    return _Plan(merge, shape, keys, values, vocabulary.event_time_column)


def _relation(rows: NormalizedRows, plan: _Plan) -> pa.Table:
    """`new`, as the merge wants it."""
    columns = {"pos": pa.arange(0, rows.columns.num_rows), "t": rows.columns.column(plan.event_time)}
    if plan.shape.compares_event_time:
        columns["given"] = rows.event_time_given
    if rows.operations is not None:
        columns["op"] = rows.operations
    roles = (*plan.shape.key_columns, *plan.shape.value_columns)
    for role, name in zip(roles, (*plan.keys, *plan.values), strict=True):
        columns[role] = comparable(rows.columns.column(name))
    return pa.table(columns)


def _create_state(db: duckdb.DuckDBPyConnection, state: KeyedState, plan: _Plan) -> None:
    """`state`, if the merge wants it, in the types of `new`."""
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
        # An upsert only looks at the keys that come, a snapshot also at those that do not.
        among = "new" if plan.merge.takes_operations else None
        state.current_rows(db, keys, [*times, *values], among=among).create_view("state")


def _count_repeated(db: duckdb.DuckDBPyConnection, rows: NormalizedRows, strategy: MergeStrategy, plan: _Plan) -> int:
    """Rows whose key had come before in the input, which a snapshot cannot have."""
    if not plan.keys:
        return 0
    query = f"SELECT COUNT(*), SUM(repeats - 1), MIN(first_pos) FROM ({repeated_keys(plan.shape)}) AS repeated"
    found = db.execute(query).fetchall()[0]
    if not found[0]:
        return 0
    keys, repeated, first = (int(number) for number in found)
    if isinstance(strategy, MergeSnapshot):
        key = ", ".join(f"{name} = {rows.columns.column(name)[first].as_py()!r}" for name in plan.keys)
        more = f", and {keys - 1} other keys too" if keys > 1 else ""
        raise IngestError(
            f"The new state has the primary key {key} more than once, first in row {first + 1}{more}",
            hint="A snapshot has each key once: choose a primary key that is unique, or remove repetitions in the "
            "preprocessing query.",
        )
    return repeated


def _pick(new: pa.Table, state: KeyedState, operations: pa.Array, positions: pa.Array) -> OrderedRows:
    """New rows for +A and +C, old rows for -R and -C."""
    is_old = pc.is_in(operations, value_set=pa.array([1, 2], pa.int32()))
    if not is_old.true_count:
        return OrderedRows(operations, new, positions)
    old = state.rows(positions.filter(is_old))
    # Old rows stand behind the new ones, in the order in which they are wanted.
    behind = pc.add(pc.cumulative_sum(is_old.cast(pa.int64())), new.num_rows - 1)
    both = pa.concat_tables([new, fit_table(old, new.schema)])
    return OrderedRows(operations, both, pc.if_else(is_old, behind, positions))
