from __future__ import annotations

from dataclasses import replace
from datetime import date
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.examples import examples
from support.ingest.ingested import SYSTEM_TIME, TIME, Ingested, table, text

from odfpy.chain.sources import MergeAppend, MergeLedger, MergeSnapshot, MergeStrategy, MergeUpsertStream
from odfpy.data.schemas.arrow import from_arrow, to_arrow
from odfpy.data.schemas.schema import (
    DataField,
    DataSchema,
    Date,
    Int32,
    Int64,
    List,
    Option,
    String,
    Struct,
    TimeUnit,
)
from odfpy.data.schemas.schema import Timestamp as TimestampType
from odfpy.data.slices.slice import read_slice
from odfpy.data.timestamp import Timestamp
from odfpy.data.vocabulary import DatasetVocabulary
from odfpy.errors import IngestError, IntegrityError, OdfError, SchemaError

TIME_TYPE = TimestampType(TimeUnit.MILLISECOND, "UTC")
SYSTEM = (
    DataField("offset", Int64()),
    DataField("op", Int32()),
    DataField("system_time", TIME_TYPE),
    DataField("event_time", TIME_TYPE),
)


def required(**columns: pa.Array) -> pa.Table:
    """A table whose columns are declared as required, whatever is in them."""
    fields = [pa.field(name, array.type, nullable=False) for name, array in columns.items()]
    return pa.table(list(columns.values()), schema=pa.schema(fields))


# --- What is written -------------------------------------------------------------------------------------------------


def test_a_slice_has_system_columns_then_data_columns_in_the_order_of_the_input(tmp_path: Path) -> None:
    dataset = Ingested(tmp_path, MergeUpsertStream(("id",)), next_offset=0)
    result = dataset.ingest(table("name | op | id | event_time | n\na | +A | 1 | 2024-05-01 | 7"))
    assert result.slices
    assert result.slices[0].info.max_event_time == Timestamp.parse("2024-05-01")
    (row,) = read_slice(dataset.slices[0]).to_pylist()
    assert list(row) == ["offset", "op", "system_time", "event_time", "name", "id", "n"]
    assert row["system_time"] == SYSTEM_TIME.to_datetime()


def test_offsets_go_on_where_they_stopped(tmp_path: Path) -> None:
    dataset = Ingested(tmp_path, MergeAppend())
    for _ in range(3):
        dataset.ingest(table("id\n1\n2"))
    assert [row["offset"] for row in dataset.history()] == [0, 1, 2, 3, 4, 5]


def test_columns_go_by_the_names_of_the_vocabulary(tmp_path: Path) -> None:
    vocabulary = DatasetVocabulary("pos", "change", "recorded_at", "t")
    dataset = Ingested(tmp_path, MergeSnapshot(("id",)), vocabulary)
    dataset.ingest(pa.table({"id": [1], "op": ["x"]}))
    dataset.ingest(pa.table({"id": [1], "op": ["y"]}))
    rows = [list(row.values()) for row in dataset.history()]
    assert [(row[0], row[1], row[5]) for row in rows] == [(0, 0, "x"), (1, 2, "x"), (2, 3, "y")]
    assert read_slice(dataset.slices[0], vocab=vocabulary).column_names == [
        "pos",
        "change",
        "recorded_at",
        "t",
        "id",
        "op",
    ]


def test_columns_that_differ_in_case_are_told_apart(tmp_path: Path) -> None:
    dataset = Ingested(tmp_path, MergeSnapshot(("id",)))
    dataset.ingest(pa.table({"ID": [7, 8], "id": [1, 2], "Id": ["a", "b"]}))
    assert dataset.ingest(pa.table({"ID": [7, 8], "id": [1, 2], "Id": ["a", "b"]})).slices == ()
    dataset.ingest(pa.table({"ID": [7, 9], "id": [1, 2], "Id": ["a", "b"]}))
    assert [(row["op"], row["ID"], row["id"], row["Id"]) for row in dataset.slice(-1).to_pylist()] == [
        (2, 8, 2, "b"),
        (3, 9, 2, "b"),
    ]


@pytest.mark.parametrize("name", ['a "b"', "a'b", "a.b", "select", "", "💧", "k0", "pos", "state"])
def test_any_name_will_do_for_a_column(name: str, tmp_path: Path) -> None:
    dataset = Ingested(tmp_path, MergeSnapshot((name,)))
    dataset.ingest(pa.table({name: ["x", "y"], "other": [1, 2]}))
    dataset.ingest(pa.table({name: ["x", "y"], "other": [1, 3]}))
    assert [(row["op"], row[name], row["other"]) for row in dataset.slice(-1).to_pylist()] == [(2, "y", 2), (3, "y", 3)]


def test_a_folder_can_have_any_name(tmp_path: Path) -> None:
    folder = tmp_path / "it's [a] *test* {1,2} ?" / "k=v"
    folder.mkdir(parents=True)
    dataset = Ingested(folder, MergeSnapshot(("id",)))
    dataset.ingest(table("id | name\n1 | a\n2 | b"))
    assert dataset.ingest(table("id | name\n1 | a\n2 | c")).statistics.corrected == 1


def test_nothing_is_left_behind_when_the_write_fails(tmp_path: Path) -> None:
    dataset = Ingested(tmp_path, MergeAppend())
    with pytest.raises(SchemaError, match="'id' is required"):
        dataset.ingest(required(id=pa.array([1, None])))
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(OdfError, match="Cannot write"):
        Ingested(tmp_path / "nowhere", MergeAppend()).ingest(table("id\n1"))


# --- Nothing new -----------------------------------------------------------------------------------------------------


def test_an_input_without_rows_still_sets_the_first_schema(tmp_path: Path) -> None:
    dataset = Ingested(tmp_path, MergeLedger(("id",)))
    result = dataset.ingest(required(id=pa.array([], pa.int64()), name=pa.array([], pa.string())))
    assert (result.slices, result.schema_changed, result.is_empty) == ((), True, False)
    assert result.schema == DataSchema((*SYSTEM, DataField("id", Int64()), DataField("name", String())))
    again = dataset.ingest(required(id=pa.array([], pa.int64()), name=pa.array([], pa.string())))
    assert (again.slices, again.schema, again.is_empty) == ((), result.schema, True)


@pytest.mark.parametrize("empty", [pa.table({}), pa.table({"id": pa.nulls(0), "name": pa.array([], pa.string())})])
def test_an_input_without_rows_and_types_tells_no_schema(empty: pa.Table, tmp_path: Path) -> None:
    result = Ingested(tmp_path, MergeLedger(("id",))).ingest(empty)
    assert (result.slices, result.schema, result.is_empty) == ((), None, True)


@pytest.mark.parametrize("empty", [pa.table({}), pa.table({"id": pa.array([], pa.string()), "zzz": pa.nulls(0)})])
def test_an_input_without_rows_never_changes_the_schema(empty: pa.Table, tmp_path: Path) -> None:
    dataset = Ingested(tmp_path, MergeSnapshot(("id",)))
    first = dataset.ingest(table("id | name\n1 | a"))
    result = dataset.ingest(empty)
    assert (result.schema, result.schema_changed) == (first.schema, False)
    assert result.statistics.retracted == 1


def test_a_new_column_alone_is_not_recorded_while_there_is_no_slice(tmp_path: Path) -> None:
    dataset = Ingested(tmp_path, MergeLedger(("id",)))
    first = dataset.ingest(table("id\n1"))
    again = dataset.ingest(table("id | name\n1 | a"))
    assert (again.slices, again.schema, again.schema_changed) == ((), first.schema, False)


# --- Schema ----------------------------------------------------------------------------------------------------------


def test_the_first_schema_is_that_of_the_input(tmp_path: Path) -> None:
    new = pa.table(
        [[1], [[1]], [{"x": 1}]],
        schema=pa.schema(
            [
                pa.field("id", pa.int64(), nullable=False),
                pa.field("items", pa.list_(pa.field("item", pa.int32(), nullable=False))),
                pa.field("inner", pa.struct([pa.field("x", pa.int32())]), nullable=False),
            ]
        ),
    )
    result = Ingested(tmp_path, MergeAppend()).ingest(new)
    assert result.schema_changed
    assert result.schema == DataSchema(
        (
            *SYSTEM,
            DataField("id", Int64()),
            DataField("items", Option(List(Int32()))),
            DataField("inner", Struct((DataField("x", Option(Int32())),))),
        )
    )


def test_the_event_time_can_be_a_date(tmp_path: Path) -> None:
    dataset = Ingested(tmp_path, MergeAppend())
    result = dataset.ingest(pa.table({"event_time": [date(2024, 1, 5), date(2024, 1, 3)], "id": [1, 2]}))
    assert result.schema is not None
    assert result.schema.fields[3] == DataField("event_time", Date())
    assert result.slices[0].info.max_event_time == Timestamp.parse("2024-01-05")
    dataset.ingest(table("id\n3"), "2024-02-03T10:00:00Z")
    assert text(dataset.slice(-1)) == "op | event_time | id\n+A | 2024-02-03 | 3"


def test_later_columns_follow_the_recorded_order(tmp_path: Path) -> None:
    dataset = Ingested(tmp_path, MergeAppend())
    dataset.ingest(table("id | name | n\n1 | a | 1"))
    result = dataset.ingest(table("n | event_time | id | name\n2 | 2024-01-02 | 2 | b"))
    assert not result.schema_changed
    assert dataset.slice(1).column_names == ["op", "event_time", "id", "name", "n"]


def test_a_missing_optional_column_is_null(tmp_path: Path) -> None:
    dataset = Ingested(tmp_path, MergeAppend())
    dataset.ingest(table("id | name\n1 | a"))
    assert not dataset.ingest(table("id\n2")).schema_changed
    assert text(dataset.slice(1)) == "op | event_time | id | name\n+A | 2024-01-01 | 2  | -"


def test_a_missing_required_column_is_an_error(tmp_path: Path) -> None:
    dataset = Ingested(tmp_path, MergeAppend())
    dataset.ingest(required(id=pa.array([1]), name=pa.array(["a"])))
    with pytest.raises(SchemaError, match="'name'"):
        dataset.ingest(required(id=pa.array([1])))


@pytest.mark.parametrize("make", [pa.table, lambda columns: required(**columns)])
def test_a_new_column_makes_the_schema_grow_by_an_optional_one(make: object, tmp_path: Path) -> None:
    assert callable(make)
    dataset = Ingested(tmp_path, MergeSnapshot(("id",)))
    first = dataset.ingest(table("id | name\n1 | a\n2 | b"))
    result = dataset.ingest(make({"n": pa.array([5, 6]), "id": pa.array([1, 2]), "name": pa.array(["a", "z"])}))
    assert first.schema is not None
    assert result.schema_changed
    assert result.schema == DataSchema((*first.schema.fields, DataField("n", Option(Int64()))))
    assert text(dataset.slice(-1)) == (
        "op | event_time | id | name | n\n"
        "-C | 2024-01-01 | 1  | a    | -\n"
        "+C | 2024-01-01 | 1  | a    | 5\n"
        "-C | 2024-01-01 | 2  | b    | -\n"
        "+C | 2024-01-01 | 2  | z    | 6"
    )
    again = dataset.ingest(make({"n": pa.array([5, 6]), "id": pa.array([1, 2]), "name": pa.array(["a", "z"])}))
    assert again.is_empty


def test_a_new_field_inside_a_struct_makes_the_schema_grow(tmp_path: Path) -> None:
    dataset = Ingested(tmp_path, MergeSnapshot(("id",)))
    dataset.ingest(pa.table({"id": [1, 2], "s": [{"x": 1}, None]}))
    result = dataset.ingest(pa.table({"id": [1, 2], "s": [{"y": "b", "x": 1}, None]}))
    assert result.schema is not None
    assert result.schema.fields[-1].type == Option(
        Struct((DataField("x", Option(Int64())), DataField("y", Option(String()))))
    )
    assert [(row["op"], row["s"]) for row in dataset.slice(-1).to_pylist()] == [
        (2, {"x": 1, "y": None}),
        (3, {"x": 1, "y": "b"}),
    ]


def test_a_required_column_stays_required(tmp_path: Path) -> None:
    dataset = Ingested(tmp_path, MergeAppend())
    dataset.ingest(required(id=pa.array([1])))
    assert not dataset.ingest(table("id\n2")).schema_changed
    with pytest.raises(SchemaError, match="'id' is required"):
        dataset.ingest(table("id\n-"))


def test_an_optional_column_may_come_as_required(tmp_path: Path) -> None:
    dataset = Ingested(tmp_path, MergeAppend())
    first = dataset.ingest(table("id\n1"))
    assert dataset.ingest(required(id=pa.array([2]))).schema == first.schema


def test_a_retraction_needs_no_values_but_its_key(tmp_path: Path) -> None:
    dataset = Ingested(tmp_path, MergeUpsertStream(("id",)))
    dataset.ingest(required(id=pa.array([1]), name=pa.array(["a"])))
    assert dataset.ingest(table("op | id | name\n-R | 1 | -")).statistics.retracted == 1


def test_a_first_column_of_empty_lists_tells_no_type(tmp_path: Path) -> None:
    for values in (pa.array([[]], pa.list_(pa.null())), pa.array([{"a": []}])):
        with pytest.raises(SchemaError, match="Column 'name' has only nulls and empty lists"):
            Ingested(tmp_path, MergeAppend()).ingest(pa.table({"id": [1], "name": values}))


@pytest.mark.parametrize("strategy", [MergeAppend(), MergeSnapshot(("id",)), MergeSnapshot(("id",), ("name", "id"))])
def test_a_first_column_of_nulls_waits_until_a_value_comes(strategy: MergeStrategy, tmp_path: Path) -> None:
    dataset = Ingested(tmp_path, strategy)
    nulls = pa.array([{"x": None, "y": {"z": None}}])
    first = dataset.ingest(pa.table({"id": [1], "name": pa.nulls(1), "place": nulls}))
    assert first.schema is not None
    assert first.schema.names[-1] == "id"
    second = dataset.ingest(pa.table({"id": [1], "name": [7], "place": pa.array([{"x": None, "y": {"z": 1.5}}])}))
    assert second.schema is not None
    assert to_arrow(second.schema).field("name").type == pa.int64()
    assert to_arrow(second.schema).field("place").type == pa.struct([("y", pa.struct([("z", pa.float64())]))])


def test_members_of_nulls_have_the_recorded_type_or_wait(tmp_path: Path) -> None:
    dataset = Ingested(tmp_path, MergeAppend())
    for values in ({"a": 1, "n": None}, {"a": None, "n": None, "l": []}, {"n": "x", "a": 2}, {"a": 3, "n": None}):
        dataset.ingest(pa.table({"id": [1], "s": pa.array([values])}))
    assert dataset.schema is not None
    assert to_arrow(dataset.schema).field("s").type == pa.struct([("a", pa.int64()), ("n", pa.string())])
    found = [row["s"] for row in dataset.history()]
    assert found == [{"a": 1}, {"a": None}, {"a": 2, "n": "x"}, {"a": 3, "n": None}]


def test_what_is_in_a_new_struct_comes_in_although_a_member_waits(tmp_path: Path) -> None:
    dataset = Ingested(tmp_path, MergeAppend())
    dataset.ingest(pa.table({"id": [1]}))
    dataset.ingest(pa.table({"id": [2], "s": pa.array([{"a": 1, "n": None, "l": []}])}))
    assert [row.get("s") for row in dataset.history()] == [None, {"a": 1}]


@pytest.mark.parametrize("compared", [None, ("name", "tags")])
def test_a_new_column_of_nulls_waits_until_a_value_comes(compared: tuple[str, ...] | None, tmp_path: Path) -> None:
    dataset = Ingested(tmp_path, MergeSnapshot(("id",), compared))
    dataset.ingest(pa.table({"id": [1, 2], "name": ["a", "b"], "tags": [1, 2]}))
    waiting = {"more": pa.nulls(2), "items": pa.array([[], None], pa.list_(pa.null()))}
    result = dataset.ingest(pa.table({"id": [1, 2], "name": ["a", "c"], "tags": [1, 2], **waiting}))
    assert not result.schema_changed
    assert result.statistics.corrected == 1
    last = {"more": pa.array([1, None]), "items": pa.array([[], None], pa.list_(pa.int8()))}
    result = dataset.ingest(pa.table({"id": [1, 2], "name": ["z", "c"], "tags": [1, 2], **last}))
    assert result.schema_changed
    assert result.schema is not None
    assert result.schema.names[-2:] == ("more", "items")


def test_a_compared_column_of_nulls_that_is_new_makes_no_change(tmp_path: Path) -> None:
    dataset = Ingested(tmp_path, MergeSnapshot(("id",), ("name",)))
    dataset.schema = from_arrow(to_arrow(DataSchema((*SYSTEM, DataField("id", Int64())))))
    assert dataset.ingest(pa.table({"id": [1], "name": pa.nulls(1)})).statistics.appended == 1
    assert dataset.ingest(pa.table({"id": [1], "name": pa.nulls(1)})).is_empty


def test_a_column_of_nulls_can_be_of_any_type(tmp_path: Path) -> None:
    dataset = Ingested(tmp_path, MergeAppend())
    first = dataset.ingest(table("id | name\n1 | a"))
    assert dataset.ingest(pa.table({"id": [2], "name": pa.nulls(1)})).schema == first.schema


@pytest.mark.parametrize(
    ("first", "later"),
    [
        (pa.array([1]), pa.array(["1"])),
        (pa.array([1]), pa.array([1], pa.int32())),
        (pa.array([1]), pa.array([1.0])),
        (pa.array(["a"]), pa.array([b"a"])),
        (pa.array([{"x": 1}]), pa.array([{"x": "1"}])),
        (pa.array([[1]]), pa.array([["1"]])),
        (pa.array([date(2024, 1, 1)]), pa.array([0], TIME)),
    ],
)
def test_a_changed_type_is_an_error_that_names_the_field(first: pa.Array, later: pa.Array, tmp_path: Path) -> None:
    dataset = Ingested(tmp_path, MergeAppend())
    dataset.ingest(pa.table({"c": first}))
    with pytest.raises(SchemaError, match="Field 'c"):
        dataset.ingest(pa.table({"c": later}))


def test_a_changed_type_of_the_event_time_is_an_error(tmp_path: Path) -> None:
    dataset = Ingested(tmp_path, MergeAppend())
    dataset.ingest(table("id\n1"))
    with pytest.raises(SchemaError, match="Field 'event_time'"):
        dataset.ingest(pa.table({"event_time": [date(2024, 1, 1)], "id": [2]}))


def test_a_type_that_datasets_do_not_have_is_an_error_that_names_the_column(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="'length'"):
        Ingested(tmp_path, MergeAppend()).ingest(pa.table({"length": pa.nulls(1, pa.month_day_nano_interval())}))
    with pytest.raises(SchemaError, match="'length'"):
        Ingested(tmp_path, MergeSnapshot(("id",))).ingest(
            pa.table({"id": [1], "length": pa.array([1], pa.duration("s"))})
        )
    assert list(tmp_path.iterdir()) == []


def test_timestamps_recorded_in_other_units_stay_in_them(tmp_path: Path) -> None:
    """As other implementations may have recorded them."""
    fields = [field if field.name != "t" else field.with_type(pa.timestamp("us", "UTC")) for field in _with_time()]
    dataset = Ingested(tmp_path, MergeAppend(), schema=from_arrow(pa.schema(fields)))
    assert not dataset.ingest(pa.table({"t": pa.array([1_234_567], pa.timestamp("ns"))})).schema_changed
    assert dataset.slice(0).column("t").cast(pa.int64()).to_pylist() == [1000]


def _with_time() -> pa.Schema:
    schema = to_arrow(DataSchema((*SYSTEM, DataField("t", Option(TIME_TYPE)))))
    assert schema.field("t").type == TIME
    return schema


# --- History ---------------------------------------------------------------------------------------------------------


def test_a_damaged_slice_is_named(tmp_path: Path) -> None:
    dataset = Ingested(tmp_path, MergeLedger(("id",)))
    dataset.ingest(table("id\n1"))
    dataset.slices[0].write_bytes(b"PAR1 nonsense PAR1")
    with pytest.raises(IntegrityError, match="slice-0"):
        dataset.ingest(table("id\n1"))


def test_a_missing_slice_is_named(tmp_path: Path) -> None:
    dataset = Ingested(tmp_path, MergeSnapshot(("id",)))
    dataset.ingest(table("id\n1"))
    dataset.slices[0].unlink()
    with pytest.raises(OdfError, match="slice-0"):
        dataset.ingest(table("id\n1"))


def test_bytes_that_have_changed_in_the_history_never_do_worse_than_an_error_of_ours(tmp_path: Path) -> None:
    first = Ingested(tmp_path, MergeSnapshot(("id",)))
    first.ingest(pa.table({"id": pa.arange(0, 200), "name": [f"name {number}" for number in range(200)]}))
    good = first.slices[0].read_bytes()
    random = Random(7)
    failed, times = 0, examples(25, 60)
    for _ in range(times):
        damaged = bytearray(good)
        for _ in range(random.randint(1, 4)):
            damaged[random.randrange(len(damaged))] = random.randrange(256)
        first.slices[0].write_bytes(damaged)
        dataset = replace(first, slices=list(first.slices))
        try:
            dataset.ingest(table("id | name\n1 | name 1\n999 | a"))
            dataset.slices[1].unlink()
        except (IntegrityError, IngestError):
            failed += 1
    assert failed > times // 3


def test_the_slice_of_an_append_needs_no_history(tmp_path: Path) -> None:
    dataset = Ingested(tmp_path, MergeAppend())
    dataset.ingest(table("id\n1"))
    dataset.slices[0].write_bytes(b"")
    assert dataset.ingest(table("id\n1")).slices


def test_inferred_types_make_event_times_of_numbers(tmp_path: Path) -> None:
    dataset = Ingested(tmp_path, MergeAppend())
    dataset.ingest(pa.table({"event_time": [1704067200], "id": [1]}), inferred=True)
    assert text(dataset.slice(0)) == "op | event_time | id\n+A | 2024-01-01 | 1"
    assert pq.read_schema(dataset.slices[0]).field("event_time").type == TIME
