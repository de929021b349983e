"""System columns and final types of a result."""

from __future__ import annotations

import math
from datetime import datetime, timezone

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from odfpy.data.schemas import schema as odf
from odfpy.data.schemas.schema import DataField, DataSchema
from odfpy.data.slices.slice import read_slice
from odfpy.data.timestamp import Timestamp
from odfpy.data.vocabulary import DEFAULT_VOCABULARY, DatasetVocabulary
from odfpy.engine.floats import normalize_floats
from odfpy.engine.output import OutputSlice, output_layout
from odfpy.errors import InvalidQuery, UnsupportedQuery

MICROS = pa.timestamp("us", "UTC")
ZERO = pa.array([0], pa.int32())


def layout(**columns):
    return output_layout(pa.schema(list(columns.items())), DEFAULT_VOCABULARY)


def test_system_columns_come_first_and_are_required():
    schema = layout(id=pa.int64(), event_time=MICROS, op=pa.int32(), name=pa.string_view()).schema
    assert schema.names == ["offset", "op", "system_time", "event_time", "id", "name"]
    assert [field.nullable for field in schema] == [False] * 4 + [True] * 2
    assert schema.field("name").type == pa.string()


def test_timestamps_at_the_top_are_milliseconds_in_utc():
    schema = layout(event_time=pa.timestamp("ns"), other=pa.timestamp("us", "Asia/Tokyo")).schema
    assert {schema.field(name).type for name in ("event_time", "other")} == {pa.timestamp("ms", "UTC")}


def test_the_event_time_may_be_a_date_and_have_another_name():
    vocab = DatasetVocabulary(event_time_column="day")
    schema = output_layout(pa.schema([("id", pa.int64()), ("day", pa.date32())]), vocab).schema
    assert schema.names[3] == "day"
    assert schema.field("day").type == pa.date32()


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"id": pa.int64()}, "no event time: no column `event_time` among id"),
        ({"event_time": pa.string()}, "event time column `event_time` has type string"),
        ({"event_time": MICROS, "offset": pa.int64()}, "a column `offset`, which the engine assigns"),
        ({"event_time": MICROS, "system_time": MICROS}, "a column `system_time`, which the engine assigns"),
    ],
)
def test_a_result_that_is_no_slice_is_refused(columns, message):
    with pytest.raises(InvalidQuery, match=message):
        layout(**columns)


def test_two_columns_of_a_name_are_refused():
    twice = pa.schema([("event_time", MICROS), ("id", pa.int64()), ("id", pa.int32())])
    with pytest.raises(InvalidQuery, match="two columns `id`"):
        output_layout(twice, DEFAULT_VOCABULARY)


def test_a_type_without_a_logical_hash_is_refused():
    with pytest.raises(UnsupportedQuery, match="'m'"):
        layout(event_time=MICROS, m=pa.map_(pa.string(), pa.int32()))


def test_times_are_cut_downwards_also_before_1970(tmp_path):
    columns = pa.schema([("event_time", MICROS), ("id", pa.int64())])
    rows = pa.record_batch([pa.array([1_999, -1], MICROS), pa.array([7, 8])], schema=columns)
    path = str(tmp_path / "slice")
    system_time = Timestamp.parse("2024-01-01T00:00:00.123999999Z")
    with OutputSlice(
        path, output_layout(columns, DEFAULT_VOCABULARY), next_offset=5, system_time=system_time
    ) as output:
        output.write(rows, pa.array([0, 1], pa.int32()))
        (made,) = output.finish()
    table = read_slice(made.path)
    assert table.column("event_time").cast(pa.int64()).to_pylist() == [1, -1]
    assert table.column("offset").to_pylist() == [5, 6]
    assert table.column("op").to_pylist() == [0, 1]
    assert table.column("system_time")[0].as_py() == datetime(2024, 1, 1, 0, 0, 0, 123000, timezone.utc)


def test_a_null_event_time_is_refused_and_leaves_no_file(tmp_path):
    columns = pa.schema([("event_time", MICROS)])
    layout = output_layout(columns, DEFAULT_VOCABULARY)
    path = tmp_path / "slice"
    with OutputSlice(str(path), layout, next_offset=0, system_time=Timestamp(0)) as output:
        output.write(pa.record_batch([pa.array([0], MICROS)], schema=columns), ZERO)
        with pytest.raises(InvalidQuery, match="`event_time` of a row is null; row 0"):
            output.write(pa.record_batch([pa.array([None], MICROS)], schema=columns), ZERO, lambda row: f"; row {row}")
    assert not path.exists()


def test_no_rows_make_no_file(tmp_path):
    path = tmp_path / "slice"
    with OutputSlice(str(path), layout(event_time=MICROS), next_offset=0, system_time=Timestamp(0)) as output:
        assert output.finish() == ()
    assert not path.exists()


def test_floats_have_one_form_at_every_level():
    odd = pa.array([-0.0, math.nan, None, 1.5])
    nested = pa.array([[-0.0, None], None, [], [math.nan, 2.0]])
    struct = pa.StructArray.from_arrays([odd, nested], names=["x", "l"], mask=pa.array([False, True, False, False]))
    rows = pa.record_batch({"x": odd, "l": nested, "s": struct, "n": [1, 2, 3, 4]})
    for start in (0, 1):  # a slice of a batch has buffers that begin before it
        part = rows.slice(start)
        done = normalize_floats(part)
        assert done.schema == part.schema
        assert repr(done.to_pylist()) == repr(part.to_pylist()).replace("-0.0", "0.0")


def test_system_columns_keep_the_types_that_other_writers_began_with(tmp_path):
    fields = (DataField("op", odf.UInt8()), DataField("offset", odf.UInt64()), DataField("event_time", odf.Date()))
    made = output_layout(pa.schema([("event_time", MICROS)]), DEFAULT_VOCABULARY, DataSchema(fields))
    assert [str(field.type) for field in made.schema] == [
        "uint64",
        "uint8",
        "timestamp[ms, tz=UTC]",
        "timestamp[ms, tz=UTC]",
    ]
    with OutputSlice(str(tmp_path / "slice"), made, next_offset=5, system_time=Timestamp(0)) as output:
        output.write(pa.record_batch([pa.array([1], MICROS)], names=["event_time"]), ZERO)
        output.finish()
    assert pq.read_schema(tmp_path / "slice").types == made.schema.types
    assert read_slice(tmp_path / "slice").column("offset").to_pylist() == [5]


def test_what_is_optional_stays_so_and_what_is_new_is_optional():
    fields = (
        DataField("event_time", odf.Timestamp()),
        DataField("a", odf.Option(odf.Int64())),
        DataField("b", odf.Int64()),
    )
    result = pa.schema([pa.field(name, pa.int64(), nullable=False) for name in "abc"]).insert(
        0, pa.field("event_time", MICROS)
    )
    made = output_layout(result, DEFAULT_VOCABULARY, DataSchema(fields)).schema
    assert {name: made.field(name).nullable for name in "abc"} == {"a": True, "b": False, "c": True}
