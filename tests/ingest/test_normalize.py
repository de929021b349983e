from __future__ import annotations

from datetime import date, datetime, timezone
from typing import Any

import pyarrow as pa
import pytest
from support.ingest.ingested import TIME

from odfpy.chain.sources import (
    MergeAppend,
    MergeChangelogStream,
    MergeLedger,
    MergeSnapshot,
    MergeStrategy,
    MergeUpsertStream,
)
from odfpy.data.timestamp import Timestamp
from odfpy.data.vocabulary import DEFAULT_VOCABULARY, DatasetVocabulary
from odfpy.errors import BadValue, IngestError
from odfpy.ingest.normalize import NormalizedRows, coerce_inferred_event_time, normalize_rows

SOURCE_TIME = Timestamp.parse("2024-01-01T12:34:56.789999Z")
ID = {"id": [1]}


def normalized(new: pa.Table, strategy: MergeStrategy | None = None, **options: Any) -> NormalizedRows:
    arguments = {"vocabulary": DEFAULT_VOCABULARY, "source_event_time": SOURCE_TIME, **options}
    return normalize_rows(new, strategy=strategy or MergeAppend(), **arguments)


def event_times(new: pa.Table, **options: Any) -> list[Any]:
    return normalized(new, **options).columns.column("event_time").to_pylist()


# --- Names -----------------------------------------------------------------------------------------------------------


def test_repeated_column_names_are_refused() -> None:
    new = pa.table([[1], [2], [3]], names=["a", "b", "a"])
    with pytest.raises(IngestError, match="Column 'a' occurs more than once"):
        normalized(new)


def test_names_that_differ_in_case_are_different() -> None:
    assert normalized(pa.table({"a": [1], "A": [2]})).columns.column_names == ["event_time", "a", "A"]


@pytest.mark.parametrize("strategy", [MergeAppend(), MergeLedger(("id",)), MergeSnapshot(("id",))])
@pytest.mark.parametrize("name", ["offset", "op", "system_time"])
def test_system_columns_are_refused(strategy: MergeStrategy, name: str) -> None:
    with pytest.raises(IngestError, match=f"Column '{name}' of the data has the name of a system column") as error:
        normalized(pa.table({**ID, name: [0]}), strategy)
    assert "SetVocab" in (error.value.hint or "")


@pytest.mark.parametrize("strategy", [MergeChangelogStream(("id",)), MergeUpsertStream(("id",))])
@pytest.mark.parametrize("name", ["offset", "system_time"])
def test_streams_may_only_bring_operations(strategy: MergeStrategy, name: str) -> None:
    with pytest.raises(IngestError, match=f"Column '{name}'"):
        normalized(pa.table({**ID, "op": [0], name: [0]}), strategy)


def test_what_is_a_system_column_is_said_by_the_vocabulary() -> None:
    vocabulary = DatasetVocabulary("pos", "change", "recorded_at", "t")
    new = pa.table({"offset": [1], "op": [7], "system_time": ["x"], "event_time": ["y"]})
    rows = normalized(new, vocabulary=vocabulary)
    assert rows.columns.column_names == ["t", "offset", "op", "system_time", "event_time"]
    with pytest.raises(IngestError, match="'pos', 'recorded_at', 'change'"):
        normalized(pa.table({"pos": [1], "change": [1], "recorded_at": [1]}), vocabulary=vocabulary)


@pytest.mark.parametrize(
    "strategy",
    [MergeLedger(("idd",)), MergeSnapshot(("idd",)), MergeChangelogStream(("idd",)), MergeUpsertStream(("idd",))],
)
def test_a_missing_key_column_is_refused_with_a_suggestion(strategy: MergeStrategy) -> None:
    with pytest.raises(IngestError, match="Primary key column 'idd' is not in the data") as error:
        normalized(pa.table({**ID, "name": ["a"]}), strategy)
    assert error.value.hint == "Did you mean id?"


def test_a_missing_key_column_that_is_like_no_other_lists_them_all() -> None:
    with pytest.raises(IngestError) as error:
        normalized(pa.table({**ID, "name": ["a"]}), MergeLedger(("zzz",)))
    assert error.value.hint == "The data has the columns 'id', 'name'."


def test_a_missing_event_time_cannot_be_a_key() -> None:
    with pytest.raises(IngestError, match="Primary key column 'event_time' is not in the data"):
        normalized(pa.table(ID), MergeLedger(("event_time",)))


def test_a_missing_compare_column_is_refused_with_a_suggestion() -> None:
    with pytest.raises(IngestError, match="Compare column 'nam' is not in the data") as error:
        normalized(pa.table({**ID, "name": ["a"]}), MergeSnapshot(("id",), ("nam",)))
    assert error.value.hint == "Did you mean name?"


def test_the_event_time_can_be_compared_though_it_is_missing() -> None:
    assert normalized(pa.table(ID), MergeSnapshot(("id",), ("event_time",))).event_time_given.to_pylist() == [False]


def test_an_input_without_rows_may_lack_columns_that_are_recorded() -> None:
    assert normalized(pa.table({}), MergeSnapshot(("id",)), recorded=("event_time", "id")).columns.num_rows == 0
    with pytest.raises(IngestError, match="Primary key column 'id' is not in the data"):
        normalized(pa.table({}), MergeSnapshot(("id",)))


@pytest.mark.parametrize(
    "strategy", [MergeLedger(("id", "part")), MergeSnapshot(("id", "part")), MergeUpsertStream(("id", "part"))]
)
def test_null_keys_are_refused(strategy: MergeStrategy) -> None:
    new = pa.table({"id": [1, 2, 3, 4], "part": [1, 2, None, None]})
    with pytest.raises(IngestError, match="Primary key column 'part' is null, first in row 3"):
        normalized(new, strategy)


def test_null_keys_of_a_changelog_are_refused() -> None:
    new = pa.table({"op": [0], "id": pa.array([None], pa.int64())})
    with pytest.raises(IngestError, match="Primary key column 'id' is null"):
        normalized(new, MergeChangelogStream(("id",)))


def test_a_null_event_time_is_no_key_even_though_it_is_filled() -> None:
    new = pa.table({"event_time": pa.array([None], TIME)})
    with pytest.raises(IngestError, match="'event_time' is null"):
        normalized(new, MergeLedger(("event_time",)))


# --- Operations ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arrow", [pa.int8(), pa.uint8(), pa.int32(), pa.int64(), pa.uint64()])
def test_operations_are_int32_whatever_integers_they_were(arrow: pa.DataType) -> None:
    new = pa.table({"op": pa.array([0, 1, 2, 3], arrow), "id": [1, 2, 3, 4]})
    rows = normalized(new, MergeChangelogStream(("id",)))
    assert rows.operations is not None
    assert rows.operations.type == pa.int32()
    assert rows.operations.to_pylist() == [0, 1, 2, 3]
    assert rows.columns.column_names == ["event_time", "id"]


@pytest.mark.parametrize("wrong", [4, -1, 255, None])
def test_other_operations_are_refused(wrong: int | None) -> None:
    new = pa.table({"op": pa.array([0, wrong]), "id": [1, 2]})
    with pytest.raises(BadValue, match=f"Column 'op' holds {wrong} in row 2, which is not an operation type"):
        normalized(new, MergeUpsertStream(("id",)))


@pytest.mark.parametrize("values", [["0"], [0.0], [True]])
def test_operations_are_integers(values: list[Any]) -> None:
    with pytest.raises(IngestError, match="not the integers 0 to 3"):
        normalized(pa.table({"op": values, **ID}), MergeUpsertStream(("id",)))


def test_an_upsert_stream_without_operations_upserts() -> None:
    rows = normalized(pa.table({"id": [1, 2]}), MergeUpsertStream(("id",)))
    assert rows.operations is not None
    assert rows.operations.to_pylist() == [0, 0]


def test_a_changelog_without_operations_is_refused() -> None:
    with pytest.raises(IngestError, match="A changelog needs the column 'op'"):
        normalized(pa.table(ID), MergeChangelogStream(("id",)))


@pytest.mark.parametrize("strategy", [MergeAppend(), MergeLedger(("id",)), MergeSnapshot(("id",))])
def test_other_strategies_have_no_operations(strategy: MergeStrategy) -> None:
    assert normalized(pa.table(ID), strategy).operations is None


# --- Event times -----------------------------------------------------------------------------------------------------


def test_a_missing_event_time_is_the_source_s_in_whole_milliseconds() -> None:
    rows = normalized(pa.table(ID))
    assert rows.columns.schema.field("event_time") == pa.field("event_time", TIME, nullable=False)
    assert rows.columns.column("event_time").to_pylist() == [
        datetime(2024, 1, 1, 12, 34, 56, 789000, tzinfo=timezone.utc)
    ]
    assert rows.event_time_given.to_pylist() == [False]


@pytest.mark.parametrize("nulls", [pa.nulls(1), pa.nulls(1, TIME)])
def test_a_null_event_time_is_the_source_s(nulls: pa.Array) -> None:
    assert event_times(pa.table({"event_time": nulls})) == event_times(pa.table(ID))


def test_a_missing_event_time_has_the_type_that_is_recorded() -> None:
    assert event_times(pa.table(ID), event_time_type=pa.date32()) == [date(2024, 1, 1)]


def test_event_times_that_are_given_are_kept() -> None:
    days = pa.array([date(2024, 5, 1), None])
    rows = normalized(pa.table({"event_time": days}))
    assert rows.columns.column("event_time").to_pylist() == [date(2024, 5, 1), date(2024, 1, 1)]
    assert rows.event_time_given.to_pylist() == [True, False]


def test_event_time_comes_first_and_the_other_columns_keep_their_order() -> None:
    new = pa.table({"z": [1], "op": [0], "event_time": pa.array([0], TIME), "a": [1]})
    assert normalized(new, MergeUpsertStream(("z",))).columns.column_names == ["event_time", "z", "a"]


def test_whether_columns_are_required_is_kept() -> None:
    fields = [pa.field("id", pa.int64(), nullable=False), pa.field("name", pa.string())]
    new = pa.table([[1], ["a"]], schema=pa.schema(fields))
    assert list(normalized(new).columns.schema)[1:] == fields


@pytest.mark.parametrize("values", [["2024-01-01"], [1704067200], [1.5], [True]])
def test_event_times_of_other_types_are_refused(values: list[Any]) -> None:
    with pytest.raises(IngestError, match=r"Event time column 'event_time' holds .*, not dates or timestamps"):
        normalized(pa.table({"event_time": values}))


@pytest.mark.parametrize("seconds", [-62_135_596_801, 253_402_300_800])
def test_event_times_outside_of_the_years_1_to_9999_are_refused(seconds: int) -> None:
    with pytest.raises(BadValue, match="'event_time' holds a time out of range"):
        normalized(pa.table({"event_time": pa.array([0, seconds], pa.timestamp("s"))}))


# --- Types -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arrow", "value", "millis"),
    [
        (pa.timestamp("s"), 5, 5000),
        (pa.timestamp("ms"), 5, 5),
        (pa.timestamp("us"), 1999, 1),
        (pa.timestamp("us"), -1, -1),
        (pa.timestamp("ns", "UTC"), 1_999_999, 1),
        (pa.timestamp("ns", "UTC"), -1_000_001, -2),
        (pa.timestamp("ms", "America/Vancouver"), 5, 5),
        (pa.timestamp("us", "America/Vancouver"), 5_001, 5),
        (pa.timestamp("ms", "+05:30"), 5, 5),
    ],
)
def test_timestamps_become_milliseconds_in_utc(arrow: pa.DataType, value: int, millis: int) -> None:
    column = pa.array([value, None], arrow)
    rows = normalized(pa.table({"event_time": column, "t": column}))
    assert rows.columns.column("t").type == TIME
    assert rows.columns.column("t").cast(pa.int64()).to_pylist() == [millis, None]
    assert rows.columns.column("event_time").cast(pa.int64()).to_pylist()[0] == millis


def test_timestamps_inside_of_others_are_left_alone() -> None:
    inner = pa.struct([("t", pa.timestamp("ns", "UTC"))])
    assert normalized(pa.table({"s": pa.array([{"t": None}], inner)})).columns.schema.field("s").type == inner


def test_a_timestamp_without_room_in_milliseconds_is_refused() -> None:
    with pytest.raises(IngestError, match="Column 't' cannot be stored"):
        normalized(pa.table({"t": pa.array([2**62], pa.timestamp("s"))}))


@pytest.mark.parametrize(
    ("array", "plain"),
    [
        (pa.array(["a", None]).dictionary_encode(), pa.string()),
        (pa.array(["a", None], pa.string_view()), pa.string()),
        (pa.array([b"a", None], pa.large_binary()), pa.binary()),
        (pa.array([[1], None], pa.large_list(pa.field("element", pa.int8()))), pa.list_(pa.field("item", pa.int8()))),
    ],
)
def test_layouts_become_plain(array: pa.Array, plain: pa.DataType) -> None:
    column = normalized(pa.table({"c": array})).columns.column("c")
    assert column.type == plain
    assert column.to_pylist() == array.to_pylist()


# --- Inferred event times --------------------------------------------------------------------------------------------


def coerced(values: Any) -> list[Any]:
    new = pa.table({"a": pa.nulls(len(values)), "event_time": values})
    table = coerce_inferred_event_time(new, DEFAULT_VOCABULARY)
    assert table.column_names == ["a", "event_time"]
    return table.column("event_time").to_pylist()


@pytest.mark.parametrize("arrow", [pa.int64(), pa.int32(), pa.uint64(), pa.uint32()])
def test_inferred_numbers_are_seconds(arrow: pa.DataType) -> None:
    assert coerced(pa.array([1704067200, None], arrow)) == [datetime(2024, 1, 1, tzinfo=timezone.utc), None]


def test_inferred_text_is_rfc_3339() -> None:
    texts = ["2024-01-01T00:00:00Z", "2024-01-01", None, "2024-01-01T01:00:00.000+01:00", "2024-01-01 00:00:00"]
    midnight = datetime(2024, 1, 1, tzinfo=timezone.utc)
    assert coerced(pa.array(texts)) == [midnight, midnight, None, midnight, midnight]


def test_inferred_times_stay() -> None:
    days = [date(2024, 1, 1)]
    assert coerced(pa.array(days)) == days


def test_inferred_text_that_is_no_time_is_refused() -> None:
    with pytest.raises(BadValue, match="'event_time' holds 'soon' in row 2"):
        coerced(pa.array(["2024-01-01", "soon"]))


@pytest.mark.parametrize("number", [2**63, 2**62])
def test_inferred_numbers_out_of_range_are_refused(number: int) -> None:
    with pytest.raises(BadValue, match="'event_time' holds a value that does not fit"):
        coerced(pa.array([number], pa.uint64()))


def test_nothing_is_coerced_without_an_event_time() -> None:
    new = pa.table({"a": [1]})
    assert coerce_inferred_event_time(new, DEFAULT_VOCABULARY) is new
