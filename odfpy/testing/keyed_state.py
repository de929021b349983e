"""Contract of keyed states, for all implementations.

A test module inherits the suite and defines how to create a state:

    class TestMyState(KeyedStateContract):
        def make(self, history: History, keys: Sequence[str], *, keeps_rows: bool) -> KeyedState:
            return MyState(history.slices, history.schema, history.vocabulary)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from odfpy.data.schemas.arrow import from_arrow
from odfpy.data.schemas.schema import DataSchema
from odfpy.data.vocabulary import DEFAULT_VOCABULARY, DatasetVocabulary
from odfpy.state.current import KeyedState, StateColumn
from odfpy.state.database import database

A, R, C_FROM, C_TO = 0, 1, 2, 3

TIME = pa.timestamp("ms", "UTC")
SCHEMA = pa.schema(
    [
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("op", pa.int32(), nullable=False),
        pa.field("system_time", TIME, nullable=False),
        pa.field("event_time", TIME, nullable=False),
        pa.field("id", pa.int64()),
        pa.field("name", pa.string()),
    ]
)

ID = StateColumn("k0", "id", "BIGINT")
NAME = StateColumn("v0", "name", "VARCHAR")

Events = Sequence[tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class History:
    """All slices of a dataset.

    Attributes:
        folder: folder of the slices, which a state may use, too.
        slices: paths of the files, in order.
        schema: schema of the dataset after the last slice.
        vocabulary: names of the system columns.
    """

    folder: Path
    slices: tuple[Path, ...]
    schema: DataSchema
    vocabulary: DatasetVocabulary = DEFAULT_VOCABULARY


def rows_of(events: Events, start: int = 0, schema: pa.Schema = SCHEMA) -> pa.Table:
    """Return rows with the given operations and data columns, and consecutive offsets.

    Args:
        events: operation types and values.
        start: offset of the first row.
        schema: the schema of the data columns.
    """
    names = ["op", *schema.names[4:]]
    rows = [dict(zip(names, event, strict=True)) for event in events]
    return pa.Table.from_pylist(
        [{"offset": start + at, "system_time": 0, "event_time": at, **row} for at, row in enumerate(rows)],
        schema=schema,
    )


def write_history(folder: Path, *slices: pa.Table, schema: pa.Schema | None = None, **options: Any) -> History:
    """Write slices and return their history; its schema is that of the last slice. Options are for Parquet."""
    paths = tuple(folder / f"{number}" for number in range(len(slices)))
    for path, rows in zip(paths, slices, strict=True):
        pq.write_table(rows, path, **options)
    return History(folder, paths, from_arrow(schema or (slices[-1].schema if slices else SCHEMA)))


def current(
    state: KeyedState,
    keys: Sequence[StateColumn] = (ID,),
    values: Sequence[StateColumn] = (NAME,),
    among: pa.Table | None = None,
) -> list[tuple[Any, ...]]:
    """Return offset, keys and values of the current rows, by offset.

    Args:
        state: the state.
        keys: the key columns.
        values: the other columns.
        among: the requested keys, None for all.
    """
    with database(threads=2) as db:
        if among is not None:
            db.register("new", among)
        relation = state.current_rows(db, keys, values, among=None if among is None else "new")
        found = relation.to_arrow_table().to_pylist()
    positions = pa.array([row.pop("pos") for row in found], pa.int64())
    offsets = state.rows(positions).column(0).to_pylist()
    return sorted(((offset, *row.values()) for offset, row in zip(offsets, found, strict=True)), key=lambda row: row[0])


def keys_seen(state: KeyedState, key: StateColumn = ID, among: pa.Table | None = None) -> set[Any]:
    """Return all keys that ever existed, restricted to the requested ones.

    Args:
        state: the state.
        key: the key column.
        among: the requested keys, None for all.
    """
    with database(threads=2) as db:
        if among is not None:
            db.register("new", among)
        relation = state.seen_keys(db, [key], among=None if among is None else "new")
        found = set(relation.to_arrow_table().column(0).to_pylist())
    return found if among is None else found.intersection(among.column(key.role).to_pylist())


class KeyedStateContract:
    """Tests of the guarantees that merges rely on."""

    def make(self, history: History, keys: Sequence[str], *, keeps_rows: bool) -> KeyedState:
        """Create the state of a dataset.

        Args:
            history: its slices.
            keys: the primary key.
            keeps_rows: whether current rows are going to be requested, or else keys that were seen.
        """
        raise NotImplementedError

    def current(
        self,
        history: History,
        keys: Sequence[StateColumn] = (ID,),
        values: Sequence[StateColumn] = (NAME,),
        among: pa.Table | None = None,
    ) -> list[tuple[Any, ...]]:
        """Return offset, keys and values of the current rows, by offset.

        Args:
            history: the history of the dataset.
            keys: the key columns.
            values: the other columns.
            among: the requested keys, None for all.
        """
        return current(self.make(history, [key.name for key in keys], keeps_rows=True), keys, values, among)

    def seen(self, history: History, key: StateColumn = ID, among: pa.Table | None = None) -> set[Any]:
        """Return all keys that ever existed, restricted to the requested ones.

        Args:
            history: the history of the dataset.
            key: the key column.
            among: the requested keys, None for all.
        """
        return keys_seen(self.make(history, [key.name], keeps_rows=False), key, among)

    @pytest.mark.parametrize(
        ("events", "expected"),
        [
            ([(A, 1, "a"), (A, 2, "b")], [(0, 1, "a"), (1, 2, "b")]),
            ([(A, 1, "a"), (C_FROM, 1, "a"), (C_TO, 1, "b")], [(2, 1, "b")]),
            ([(A, 1, "a"), (R, 1, "a")], []),
            ([(A, 1, "a"), (R, 1, "a"), (A, 1, "b")], [(2, 1, "b")]),
            ([(A, 1, "a"), (C_FROM, 1, "a")], []),
            ([(A, 1, "a"), (A, 1, "b")], [(1, 1, "b")]),
            ([(A, None, "a"), (A, None, "b")], [(1, None, "b")]),
        ],
        ids=["appended", "corrected", "retracted", "back again", "half corrected", "appended twice", "null key"],
    )
    def test_the_current_row_is_the_latest_unless_it_ends_the_key(
        self, events: Events, expected: list[Any], tmp_path: Path
    ) -> None:
        history = write_history(tmp_path, rows_of(events))
        assert self.current(history) == expected
        assert self.seen(history) == {event[1] for event in events}

    @pytest.mark.parametrize("cut", range(1, 5))
    def test_the_latest_row_is_found_across_slices(self, cut: int, tmp_path: Path) -> None:
        events = [(A, 1, "a"), (A, 2, "b"), (C_FROM, 1, "a"), (C_TO, 1, "c"), (R, 2, "b")]
        history = write_history(tmp_path, rows_of(events[:cut]), rows_of(events[cut:], cut))
        assert self.current(history) == [(3, 1, "c")]
        assert self.current(history, among=pa.table({"k0": [1, 2]})) == [(3, 1, "c")]
        assert self.seen(history) == {1, 2}

    def test_without_slices_there_is_no_state(self, tmp_path: Path) -> None:
        history = write_history(tmp_path)
        assert self.current(history) == []
        assert self.current(history, among=pa.table({"k0": [1]})) == []
        assert self.seen(history) == set()

    def test_only_the_wanted_keys_are_given(self, tmp_path: Path) -> None:
        history = write_history(tmp_path, rows_of([(A, 1, "a"), (A, 2, "b"), (A, 3, "c")]))
        among = pa.table({"k0": [3, 1, 9]})
        assert self.current(history, among=among) == [(0, 1, "a"), (2, 3, "c")]
        assert self.seen(history, among=among) == {1, 3}

    def test_many_keys_are_found_one_by_one(self, tmp_path: Path) -> None:
        events = [(A, (7919 * number) % 10_007, f"{number}") for number in range(10_007)]
        history = write_history(tmp_path, rows_of(events[:9_000]), rows_of(events[9_000:], 9_000))
        wanted = [7919 * number % 10_007 for number in (3, 8_999, 9_000, 10_006)]
        among = pa.table({"k0": [*wanted, 20_000]})
        assert [row[0] for row in self.current(history, among=among)] == [3, 8_999, 9_000, 10_006]
        assert self.seen(history, among=among) == set(wanted)

    def test_a_key_can_have_several_columns(self, tmp_path: Path) -> None:
        history = write_history(tmp_path, rows_of([(A, 1, "a"), (A, 1, "b"), (R, 1, "a")]))
        assert self.current(history, [ID, StateColumn("k1", "name", "VARCHAR")], []) == [(1, 1, "b")]

    def test_columns_have_the_wanted_types(self, tmp_path: Path) -> None:
        history = write_history(tmp_path, rows_of([(A, 1, "a")]))
        assert self.current(history, [StateColumn("k0", "id", "INTEGER")], []) == [(0, 1)]

    def test_keys_that_are_equal_are_one_key(self, tmp_path: Path) -> None:
        schema = SCHEMA.set(4, pa.field("id", pa.struct([("x", pa.list_(pa.float64()))])))
        events = [(A, {"x": [0.0, float("nan")]}, "a"), (A, {"x": [-0.0, -float("nan")]}, "b"), (A, {"x": None}, "c")]
        history = write_history(tmp_path, rows_of(events[:1], 0, schema), rows_of(events[1:], 1, schema))
        key = StateColumn("k0", "id", "STRUCT(x DOUBLE[])")
        assert [(row[0], row[2]) for row in self.current(history, [key])] == [(1, "b"), (2, "c")]
        among = pa.table({"k0": pa.array([events[0][1]], schema.field("id").type)})
        assert [(row[0], row[2]) for row in self.current(history, [key], among=among)] == [(1, "b")]

    def test_nan_is_found_among_numbers(self, tmp_path: Path) -> None:
        schema = SCHEMA.set(4, pa.field("id", pa.float64()))
        history = write_history(tmp_path, rows_of([(A, 0.0, "a"), (A, float("nan"), "b")], schema=schema))
        key = StateColumn("k0", "id", "DOUBLE")
        with database() as db:
            db.register("new", pa.table({"k0": [float("nan")]}))
            seen_keys = self.make(history, ["id"], keeps_rows=False).seen_keys(db, [key], among="new")
            seen_keys.create_view("state")
            unseen = db.sql("SELECT * FROM new WHERE NOT EXISTS (SELECT 1 FROM state WHERE (state.k0 = new.k0))")
            assert unseen.fetchall() == []
        found = self.current(history, [key], among=pa.table({"k0": [float("nan")]}))
        assert [(row[0], row[2]) for row in found] == [(1, "b")]

    # --- Slices of other writers ---

    def test_offsets_and_operations_may_be_unsigned_and_there_may_be_many_row_groups(self, tmp_path: Path) -> None:
        schema = SCHEMA.set(0, SCHEMA.field(0).with_type(pa.uint64())).set(1, SCHEMA.field(1).with_type(pa.uint8()))
        events = [(A, number % 5, f"{number}") for number in range(20)]
        first = write_history(tmp_path, rows_of(events, schema=schema), row_group_size=3, compression="gzip")
        last = tmp_path / "last"
        pq.write_table(rows_of([(R, 4, "19")], 20), last)
        history = History(tmp_path, (*first.slices, last), from_arrow(SCHEMA))
        assert self.current(history) == [(number, number % 5, f"{number}") for number in range(15, 19)]

    def test_a_column_that_older_slices_lack_is_null(self, tmp_path: Path) -> None:
        grown = SCHEMA.append(pa.field("n", pa.int32()))
        values = [NAME, StateColumn("v1", "n", "INTEGER")]
        newer = write_history(tmp_path, rows_of([(A, 1, "a")]), rows_of([(A, 2, "b", 7)], 1, grown))
        assert self.current(newer, values=values) == [(0, 1, "a", None), (1, 2, "b", 7)]
        older = write_history(tmp_path, rows_of([(A, 1, "a")]), schema=grown)
        assert self.current(older, values=values) == [(0, 1, "a", None)]

    def test_whole_rows_are_in_the_columns_of_the_schema(self, tmp_path: Path) -> None:
        grown = SCHEMA.append(pa.field("n", pa.int32()))
        history = write_history(tmp_path, rows_of([(A, 1, "a")]), rows_of([(A, 2, "b", 7)], 1, grown))
        state = self.make(history, ["id"], keeps_rows=True)
        with database() as db:
            found = state.current_rows(db, [ID], []).to_arrow_table()
        rows = state.rows(pa.array([position for position in found.column("pos").to_pylist() for _ in range(2)]))
        assert rows.schema.names == grown.names
        assert rows.schema.types == grown.types
        assert [(row["offset"], row["id"], row["n"]) for row in rows.sort_by("offset").to_pylist()] == [
            (0, 1, None),
            (0, 1, None),
            (1, 2, 7),
            (1, 2, 7),
        ]

    @pytest.mark.parametrize("names", [("id", "ID"), ("ID", "id"), ("", "x"), ("ä", "Ä"), ("a.b", "a")])
    def test_names_that_a_database_would_change_are_read_as_they_are(
        self, names: tuple[str, str], tmp_path: Path
    ) -> None:
        schema = pa.schema([*list(SCHEMA)[:4], (names[0], pa.int64()), (names[1], pa.int64())])
        history = write_history(tmp_path, rows_of([(A, 1, 10), (A, 2, 20)], schema=schema))
        keys, values = [StateColumn("k0", names[0], "BIGINT")], [StateColumn("v0", names[1], "BIGINT")]
        assert self.current(history, keys, values) == [(0, 1, 10), (1, 2, 20)]
        assert self.seen(history, values[0]) == {10, 20}

    def test_decimals_of_many_digits_are_compared_digit_by_digit(self, tmp_path: Path) -> None:
        schema = SCHEMA.set(5, pa.field("name", pa.decimal256(60, 1)))
        digits = "1234567890" * 5
        events = [(A, 1, Decimal(digits + "1")), (A, 2, Decimal(digits + "2"))]
        history = write_history(tmp_path, rows_of(events, schema=schema))
        assert self.current(history) == [(0, 1, digits + "1.0"), (1, 2, digits + "2.0")]
        key = StateColumn("k0", "name", "VARCHAR")
        assert self.current(history, [key], [], among=pa.table({"k0": [digits + "2.0"]})) == [(1, digits + "2.0")]

    def test_values_come_back_bit_by_bit(self, tmp_path: Path) -> None:
        inner = pa.struct([pa.field("x", pa.list_(pa.float64())), pa.field("y", pa.float16())])
        schema = SCHEMA.set(5, pa.field("name", inner))
        values = [{"x": [-0.0, float("nan"), None], "y": None}, None, {"x": None, "y": 1.5}]
        history = write_history(tmp_path, rows_of([(A, at, value) for at, value in enumerate(values)], schema=schema))
        state = self.make(history, ["id"], keeps_rows=True)
        with database() as db:
            found = state.current_rows(db, [ID], []).to_arrow_table()
        rows = state.rows(found.column("pos").combine_chunks()).sort_by("id")
        assert repr(rows.column("name").to_pylist()) == repr(values)

    def test_columns_go_by_the_vocabulary(self, tmp_path: Path) -> None:
        vocabulary = DatasetVocabulary("pos", "change", "at", "t")
        made = write_history(
            tmp_path,
            rows_of([(A, 1, "a"), (R, 1, "a"), (A, 2, "b")]).rename_columns([*vocabulary.columns, "id", "name"]),
        )
        history = History(tmp_path, made.slices, made.schema, vocabulary)
        assert self.current(history) == [(2, 2, "b")]
