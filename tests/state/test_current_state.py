"""The current state of keys, read from slices of any writer."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.ingested import TIME

from odfpy.data.arrow import from_arrow
from odfpy.data.vocabulary import DEFAULT_VOCABULARY, DatasetVocabulary
from odfpy.errors import IntegrityError
from odfpy.state.current import ScannedState, StateColumn
from odfpy.state.database import database

A, R, C_FROM, C_TO = 0, 1, 2, 3

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


def rows_of(events: Events, start: int = 0, schema: pa.Schema = SCHEMA) -> pa.Table:
    """Rows from operation and data columns."""
    names = ["op", *schema.names[4:]]
    rows = [dict(zip(names, event, strict=True)) for event in events]
    return pa.Table.from_pylist(
        [{"offset": start + at, "system_time": 0, "event_time": at, **row} for at, row in enumerate(rows)],
        schema=schema,
    )


def written(folder: Path, *slices: pa.Table, **options: Any) -> list[Path]:
    paths = [folder / f"{number}" for number in range(len(slices))]
    for path, rows in zip(paths, slices, strict=True):
        pq.write_table(rows, path, **options)
    return paths


def current(
    paths: list[Path],
    *,
    schema: pa.Schema = SCHEMA,
    values: Sequence[StateColumn] = (NAME,),
    keys: Sequence[StateColumn] = (ID,),
    among: pa.Table | None = None,
) -> list[tuple[Any, ...]]:
    """Position, keys and values of current rows, by position."""
    state = ScannedState(paths, from_arrow(schema), DEFAULT_VOCABULARY)
    with database(threads=2) as db:
        if among is not None:
            db.register("new", among)
        relation = state.current_rows(db, keys, values, among=None if among is None else "new")
        return sorted(tuple(row.values()) for row in relation.to_arrow_table().to_pylist())


def seen(paths: list[Path], *, schema: pa.Schema = SCHEMA, key: StateColumn = ID) -> list[Any]:
    with database() as db:
        relation = ScannedState(paths, from_arrow(schema), DEFAULT_VOCABULARY).seen_keys(db, [key])
        return sorted(relation.to_arrow_table().column(0).to_pylist(), key=str)


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([], []),
        ([(A, 1, "a"), (A, 2, "b")], [(0, 1, "a"), (1, 2, "b")]),
        ([(A, 1, "a"), (C_FROM, 1, "a"), (C_TO, 1, "b")], [(2, 1, "b")]),
        ([(A, 1, "a"), (R, 1, "a")], []),
        ([(A, 1, "a"), (R, 1, "a"), (A, 1, "b")], [(2, 1, "b")]),
        ([(A, 1, "a"), (C_FROM, 1, "a")], []),
        ([(A, 1, "a"), (A, 1, "b")], [(1, 1, "b")]),
        ([(A, None, "a"), (A, None, "b")], [(1, None, "b")]),
    ],
    ids=["nothing", "appended", "corrected", "retracted", "back again", "half corrected", "appended twice", "null key"],
)
def test_the_current_row_is_the_latest_unless_it_ends_the_key(
    events: Events, expected: list[Any], tmp_path: Path
) -> None:
    paths = written(tmp_path, rows_of(events))
    assert current(paths) == expected
    assert seen(paths) == sorted((event[1] for event in events), key=str)


def test_the_latest_row_is_found_across_slices(tmp_path: Path) -> None:
    paths = written(tmp_path, rows_of([(A, 1, "a"), (A, 2, "b")]), rows_of([(C_FROM, 1, "a"), (C_TO, 1, "c")], 2))
    assert current(paths) == [(1, 2, "b"), (3, 1, "c")]


def test_without_slices_there_is_no_state() -> None:
    assert current([]) == []
    assert seen([]) == []


def test_only_the_wanted_keys_are_given(tmp_path: Path) -> None:
    paths = written(tmp_path, rows_of([(A, 1, "a"), (A, 2, "b"), (A, 3, "c")]))
    assert current(paths, among=pa.table({"k0": [3, 1, 9]})) == [(0, 1, "a"), (2, 3, "c")]


def test_a_key_can_have_several_columns(tmp_path: Path) -> None:
    paths = written(tmp_path, rows_of([(A, 1, "a"), (A, 1, "b"), (R, 1, "a")]))
    assert current(paths, keys=[ID, StateColumn("k1", "name", "VARCHAR")], values=[]) == [(1, 1, "b")]


def test_columns_have_the_wanted_types(tmp_path: Path) -> None:
    paths = written(tmp_path, rows_of([(A, 1, "a")]))
    assert current(paths, keys=[StateColumn("k0", "id", "INTEGER")], values=[]) == [(0, 1)]


# --- Slices of other writers -----------------------------------------------------------------------------------------


def test_offsets_and_operations_may_be_unsigned_and_there_may_be_many_row_groups(tmp_path: Path) -> None:
    schema = SCHEMA.set(0, SCHEMA.field(0).with_type(pa.uint64())).set(1, SCHEMA.field(1).with_type(pa.uint8()))
    events = [(A, number % 5, f"{number}") for number in range(20)]
    paths = written(tmp_path, rows_of(events, schema=schema), row_group_size=3, compression="gzip")
    last = tmp_path / "last"
    pq.write_table(rows_of([(R, 4, "19")], 20), last)
    assert current([*paths, last]) == [(number, number % 5, f"{number}") for number in range(15, 19)]
    rows = ScannedState([*paths, last], from_arrow(SCHEMA), DEFAULT_VOCABULARY).rows(pa.array([20, 3, 17, 3]))
    assert [(row["offset"], row["op"], row["name"]) for row in rows.to_pylist()] == [
        (20, R, "19"),
        (3, A, "3"),
        (17, A, "17"),
        (3, A, "3"),
    ]
    assert rows.schema.types == SCHEMA.types


def test_a_column_that_older_slices_lack_is_null(tmp_path: Path) -> None:
    grown = SCHEMA.append(pa.field("n", pa.int32()))
    older, newer = written(tmp_path, rows_of([(A, 1, "a")]), rows_of([(A, 2, "b", 7)], 1, grown))
    values = [NAME, StateColumn("v1", "n", "INTEGER")]
    assert current([older, newer], schema=grown, values=values) == [(0, 1, "a", None), (1, 2, "b", 7)]
    assert current([older], schema=grown, values=values) == [(0, 1, "a", None)]
    rows = ScannedState([older, newer], from_arrow(grown), DEFAULT_VOCABULARY).rows(pa.array([1, 0]))
    assert [row["n"] for row in rows.to_pylist()] == [7, None]


@pytest.mark.parametrize("names", [("id", "ID"), ("ID", "id"), ("", "x"), ("ä", "Ä")])
def test_names_that_the_database_would_change_are_read_as_they_are(names: tuple[str, str], tmp_path: Path) -> None:
    schema = pa.schema([*list(SCHEMA)[:4], (names[0], pa.int64()), (names[1], pa.int64())])
    paths = written(tmp_path, rows_of([(A, 1, 10), (A, 2, 20)], schema=schema))
    keys, values = [StateColumn("k0", names[0], "BIGINT")], [StateColumn("v0", names[1], "BIGINT")]
    assert current(paths, schema=schema, keys=keys, values=values) == [(0, 1, 10), (1, 2, 20)]
    assert seen(paths, schema=schema, key=values[0]) == [10, 20]


def test_decimals_of_many_digits_are_compared_digit_by_digit(tmp_path: Path) -> None:
    schema = SCHEMA.set(5, pa.field("name", pa.decimal256(60, 1)))
    digits = "1234567890" * 5
    paths = written(tmp_path, rows_of([(A, 1, Decimal(digits + "1")), (A, 2, Decimal(digits + "2"))], schema=schema))
    assert current(paths, schema=schema) == [(0, 1, digits + "1.0"), (1, 2, digits + "2.0")]


def test_values_come_back_bit_by_bit(tmp_path: Path) -> None:
    inner = pa.struct([pa.field("x", pa.list_(pa.float64())), pa.field("y", pa.float16())])
    schema = SCHEMA.set(5, pa.field("name", inner))
    values = [{"x": [-0.0, float("nan"), None], "y": None}, None, {"x": None, "y": 1.5}]
    paths = written(tmp_path, rows_of([(A, 1, value) for value in values], schema=schema))
    rows = ScannedState(paths, from_arrow(schema), DEFAULT_VOCABULARY).rows(pa.array([2, 0, 1]))
    assert repr(rows.column("name").to_pylist()) == repr([values[2], values[0], values[1]])


def test_columns_go_by_the_vocabulary(tmp_path: Path) -> None:
    vocabulary = DatasetVocabulary("pos", "change", "at", "t")
    schema = pa.schema([*(f.with_name(n) for f, n in zip(SCHEMA, vocabulary.columns)), *list(SCHEMA)[4:]])  # noqa: B905
    (path,) = written(tmp_path, rows_of([(A, 1, "a"), (R, 1, "a"), (A, 2, "b")]).rename_columns(schema.names))
    state = ScannedState([path], from_arrow(schema), vocabulary)
    with database() as db:
        assert state.current_rows(db, [ID], [NAME]).to_arrow_table().to_pylist() == [{"pos": 2, "k0": 2, "v0": "b"}]
    assert state.rows(pa.array([2])).column_names == schema.names


# --- Damage ----------------------------------------------------------------------------------------------------------


def test_a_slice_that_lacks_an_offset_is_found_out(tmp_path: Path) -> None:
    rows = rows_of([(A, 1, "a"), (A, 2, "b"), (A, 3, "c")])
    paths = written(tmp_path, rows.take(pa.array([0, 2])))
    state = ScannedState(paths, from_arrow(SCHEMA), DEFAULT_VOCABULARY)
    with pytest.raises(IntegrityError, match="do not hold all offsets"):
        state.rows(pa.array([1]))


def test_a_slice_that_is_missing_is_found_out(tmp_path: Path) -> None:
    _, newer = written(tmp_path, rows_of([(A, 1, "a")]), rows_of([(A, 2, "b")], 1))
    state = ScannedState([newer], from_arrow(SCHEMA), DEFAULT_VOCABULARY)
    with pytest.raises(IntegrityError, match="do not hold all offsets"):
        state.rows(pa.array([0, 1]))
