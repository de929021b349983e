"""Data slices: what is written, what is measured, what is read back, and what is refused."""

from __future__ import annotations

import hashlib
import json
import random
from decimal import Decimal
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.arrow_limits import as_far_as_arrow_can
from support.chains.random_schemas import data_types
from support.examples import examples
from support.fixtures import KAMU, KAMU_DATASETS

from odfpy.data.schemas import schema as odf
from odfpy.data.schemas.arrow import to_arrow
from odfpy.data.schemas.schema import DataField, DataSchema
from odfpy.data.schemas.system_columns import system_fields
from odfpy.data.slices import row_groups
from odfpy.data.slices.logical_hash import logical_hash, logical_hash_of_parquet
from odfpy.data.slices.parquet_io import open_parquet
from odfpy.data.slices.slice import SliceStats, iter_slice, read_slice, slice_schema, slice_stats
from odfpy.data.slices.writer import SliceWriter
from odfpy.data.timestamp import Timestamp
from odfpy.data.vocabulary import DEFAULT_VOCABULARY, DatasetVocabulary
from odfpy.errors import IntegrityError, InternalError, ObjectNotFound, OdfError, SchemaError

SLICES = [path for name in KAMU_DATASETS for path in sorted((KAMU / name).glob("data/*"))]

SCHEMA = DataSchema(
    (
        *system_fields(DEFAULT_VOCABULARY),
        DataField("id", odf.Int64()),
        DataField("small", odf.Option(odf.UInt8())),
        DataField("amount", odf.Option(odf.Decimal(10, 2))),
        DataField("name", odf.Option(odf.String())),
        DataField("raw", odf.Option(odf.Binary(2))),
        DataField("tags", odf.Option(odf.List(odf.Option(odf.String())))),
        DataField(
            "place", odf.Option(odf.Struct((DataField("x", odf.Float64()), DataField("y", odf.Option(odf.Time())))))
        ),
    )
)
ARROW = to_arrow(SCHEMA)
SYSTEM = list(ARROW)[:4]


def rows(count: int, *, start: int = 0, seed: int = 0) -> pa.Table:
    """Rows with everything in them, offsets from `start`."""
    chance = random.Random(seed)

    def maybe(value):
        return None if chance.random() < 0.2 else value

    return pa.Table.from_pydict(
        {
            "offset": range(start, start + count),
            "op": [chance.randrange(4) for _ in range(count)],
            "system_time": [1_700_000_000_000] * count,
            "event_time": [chance.randrange(-(10**12), 10**12) for _ in range(count)],
            "id": [chance.randrange(1 << 40) for _ in range(count)],
            "small": [maybe(row % 256) for row in range(count)],
            "amount": pa.array([maybe(Decimal(row) / 100) for row in range(count)], pa.decimal128(10, 2)),
            "name": [maybe("n" * chance.randrange(30)) for _ in range(count)],
            "raw": [maybe(b"ab") for _ in range(count)],
            "tags": [maybe(["t", None][: chance.randrange(3)]) for _ in range(count)],
            "place": [maybe({"x": 1.5, "y": maybe(row % 1000)}) for row in range(count)],
        },
        ARROW,
    )


def write(path, *batches, schema=SCHEMA, vocab=DEFAULT_VOCABULARY, threads=1):
    with SliceWriter(path, schema, vocab, threads=threads) as writer:
        for batch in batches:
            writer.write(batch)
        return writer.finish()


# --- What is written and measured ------------------------------------------------------------------------------------


def test_one_pass_measures_all_that_a_block_needs(tmp_path):
    path, table = tmp_path / "slice", rows(5_000, start=70)
    info = write(path, table)
    assert info.physical_hash.digest == hashlib.sha3_256(path.read_bytes()).digest()
    assert str(info.physical_hash).startswith("f1620")
    assert info.logical_hash == logical_hash(table) == logical_hash_of_parquet(path)
    assert (info.offset_start, info.offset_end, info.num_rows) == (70, 5_069, 5_000)
    assert info.size == path.stat().st_size
    times = table["event_time"].cast(pa.int64()).to_pylist()
    assert info.min_event_time == Timestamp.from_millis(min(times))
    assert info.max_event_time == Timestamp.from_millis(max(times))


def test_what_is_read_is_what_was_written(tmp_path):
    path, table = tmp_path / "slice", rows(1_000)
    write(path, table)
    assert read_slice(path).equals(table)
    assert slice_schema(path).equals(ARROW)
    assert pa.Table.from_batches(iter_slice(path, 300)).equals(table)
    assert [batch.num_rows for batch in iter_slice(path, 300)] == [300, 300, 300, 100]
    assert read_slice(path, ["name", "offset"]).equals(table.select(["name", "offset"]))
    assert next(iter_slice(path, 10, ["tags"])).column(0).to_pylist() == table["tags"].to_pylist()[:10]
    assert slice_stats(path) == SliceStats(1_000, 0, 999)


def test_the_file_is_as_the_specification_says(tmp_path):
    path = tmp_path / "slice"
    write(path, rows(10))
    schema = pq.ParquetFile(path).schema
    columns = {column.path: column for column in map(schema.column, range(len(schema)))}
    assert list(columns)[:4] == ["offset", "op", "system_time", "event_time"]
    assert [columns[name].physical_type for name in ("offset", "op", "system_time")] == ["INT64", "INT32", "INT64"]
    time = json.loads(columns["system_time"].logical_type.to_json())
    assert (time["timeUnit"], time["isAdjustedToUTC"]) == ("milliseconds", True)
    required = {path for path, column in columns.items() if column.max_definition_level == 0}
    assert required == {"offset", "op", "system_time", "event_time", "id"}
    assert "tags.list.item" in columns
    assert columns["place.x"].max_definition_level == 1


def test_dates_can_be_event_times(tmp_path):
    schema = DataSchema(system_fields(DEFAULT_VOCABULARY, odf.Date()))
    table = pa.Table.from_pydict(
        {"offset": [0, 1], "op": [0, 0], "system_time": [0, 0], "event_time": [3, -1]}, to_arrow(schema)
    )
    info = write(tmp_path / "slice", table, schema=schema)
    assert (str(info.min_event_time), str(info.max_event_time)) == ("1969-12-31T00:00:00Z", "1970-01-04T00:00:00Z")


def test_null_event_times_count_for_nothing(tmp_path):
    schema = pa.schema([field.with_nullable(True) for field in SYSTEM])
    table = rows(2).select(range(4)).set_column(3, "event_time", pa.nulls(2, ARROW.field(3).type))
    info = write(tmp_path / "slice", table, schema=schema)
    assert info.min_event_time is None
    assert info.max_event_time is None


def test_vocabulary_is_honoured(tmp_path):
    vocab = DatasetVocabulary("pos", "change", "recorded_at", "t")
    path = tmp_path / "slice"
    table = rows(20, start=5).rename_columns([*vocab.columns, *ARROW.names[4:]])
    info = write(path, table, schema=table.schema, vocab=vocab)
    assert (info.offset_start, info.offset_end) == (5, 24)
    assert slice_stats(path, vocab=vocab) == SliceStats(20, 5, 24)
    assert read_slice(path, vocab=vocab).equals(table)
    with pytest.raises(SchemaError, match="'offset'"):
        slice_stats(path)


# --- The same bytes for the same rows --------------------------------------------------------------------------------


@settings(max_examples=examples(8, 25), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(count=st.integers(1, 40), cuts=st.lists(st.integers(0, 40), max_size=6), threads=st.integers(1, 2))
def test_bytes_do_not_depend_on_batches(tmp_path, monkeypatch, count, cuts, threads):
    monkeypatch.setattr(row_groups, "BLOCK_ROWS", 4)
    monkeypatch.setattr(row_groups, "GROUP_ROWS", 12)
    monkeypatch.setattr(row_groups, "GROUP_BYTES", 100)
    table = rows(count, seed=count)
    bounds = sorted({0, count, *(min(cut, count) for cut in cuts)})
    parts = [table.slice(start, end - start) for start, end in pairwise(bounds)]
    whole = write(tmp_path / "whole", table)
    assert write(tmp_path / "parts", *parts, threads=threads) == whole
    assert (tmp_path / "parts").read_bytes() == (tmp_path / "whole").read_bytes()


def test_bytes_do_not_depend_on_layouts(tmp_path):
    table = rows(3_000)
    odd = pa.table(
        {
            **dict(zip(table.column_names, table.columns, strict=True)),
            "name": table["name"].cast(pa.string_view()),
            "tags": table["tags"].cast(pa.large_list(pa.field("element", pa.large_string()))),
            "small": table["small"].dictionary_encode(),
        }
    )
    assert write(tmp_path / "odd", odd) == write(tmp_path / "plain", table)


def test_row_groups_end_by_rows_or_by_bytes(tmp_path, monkeypatch):
    def group_sizes(table):
        write(tmp_path / "slice", table, schema=table.schema)
        metadata = pq.read_metadata(tmp_path / "slice")
        return [metadata.row_group(at).num_rows for at in range(metadata.num_row_groups)]

    monkeypatch.setattr(row_groups, "GROUP_ROWS", 3 * row_groups.BLOCK_ROWS)
    monkeypatch.setattr(row_groups, "GROUP_BYTES", 1 << 20)
    count = 30_000
    numbers = rows(1).select(ARROW.names[1:5]).take(pa.array(np.zeros(count, np.int64)))
    numbers = numbers.add_column(0, "offset", pa.array(range(count)))
    assert group_sizes(numbers) == [12_288, 12_288, 5_424]
    texts = pa.StructArray.from_arrays([pa.array([["x" * 140]] * count)], ["texts"])
    assert group_sizes(numbers.append_column("nested", texts)) == [8_192, 8_192, 8_192, 5_424]


# --- Nothing half made -----------------------------------------------------------------------------------------------


def test_nothing_is_left_behind_by_an_error(tmp_path):
    path = tmp_path / "slice"

    def fail_midway():
        with SliceWriter(path, SCHEMA, DEFAULT_VOCABULARY) as writer:
            writer.write(rows(10_000))
            assert path.exists()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_midway()
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_left_behind_without_finish_or_rows(tmp_path):
    path = tmp_path / "slice"
    with SliceWriter(path, SCHEMA, DEFAULT_VOCABULARY) as writer:
        writer.write(rows(10))
        assert writer.num_rows == 10
    with pytest.raises(InternalError, match="no rows"):
        write(path, rows(0))
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_cannot_be_written_is_named(tmp_path):
    with pytest.raises(OdfError, match="nowhere"):
        SliceWriter(tmp_path / "nowhere" / "slice", SCHEMA, DEFAULT_VOCABULARY)
    full = tmp_path / "slice"
    full.symlink_to("/dev/full")
    with pytest.raises(OdfError, match="No space left"):
        write(full, rows(10))
    assert list(tmp_path.iterdir()) == []


# --- What is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda table: table.select(ARROW.names[:-1]), "columns"),
        (lambda table: table.set_column(4, "id", table["small"].cast(pa.int64())), "'id' is required but has nulls"),
        (lambda table: table.set_column(4, "id", table["op"]), "int32 in column 'id'"),
        (lambda table: table.set_column(7, "name", table["tags"]), "list<item: string> in column 'name'"),
        (
            lambda table: table.set_column(
                10, "place", pa.array([{"x": None, "y": None}] * 20, ARROW.field("place").type)
            ),
            r"'place\.x' is required",
        ),
    ],
)
def test_batches_that_do_not_fit_are_refused_by_column(tmp_path, change, message):
    with pytest.raises(SchemaError, match=message):
        write(tmp_path / "slice", change(rows(20)))
    assert list(tmp_path.iterdir()) == []


def test_null_structs_have_no_required_fields(tmp_path):
    table = rows(20).set_column(10, "place", pa.nulls(20, ARROW.field("place").type))
    assert write(tmp_path / "slice", table).logical_hash == logical_hash_of_parquet(tmp_path / "slice")
    assert read_slice(tmp_path / "slice").equals(table)


def test_the_same_type_in_other_widths_fits(tmp_path):
    table = rows(20)
    narrow = table.set_column(6, "amount", table["amount"].cast(pa.decimal64(10, 2)))
    assert write(tmp_path / "narrow", narrow) == write(tmp_path / "plain", table)


@pytest.mark.parametrize("offsets", [[0, 2], [1, 0], [0, 0]])
def test_offsets_count_up(tmp_path, offsets):
    table = rows(2).set_column(0, "offset", pa.array(offsets))
    with pytest.raises(InternalError, match="count up"):
        write(tmp_path / "slice", table)
    with pytest.raises(InternalError, match="count up from 2"):
        write(tmp_path / "slice", rows(2), rows(2, start=3))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ([("op", pa.int32())], "begins with the columns offset, op, system_time, event_time"),
        ([SYSTEM[0], ("op", pa.int8()), *SYSTEM[2:]], "'op' of a slice cannot have type int8"),
        ([*SYSTEM[:3], ("event_time", pa.string())], "'event_time' of a slice cannot have type string"),
        ([*SYSTEM, ("t", pa.struct([("x", pa.time32("s"))]))], r"seconds, such as 't\.x'"),
        ([*SYSTEM, ("t", pa.list_(pa.decimal128(5, -2)))], r"'t\.item'"),
        ([*SYSTEM, ("t", pa.struct([]))], "without fields, such as 't'"),
        ([*SYSTEM, ("t", pa.duration("ms"))], "'t'"),
        ([*SYSTEM, ("t", pa.struct([pa.field("x", pa.list_(pa.int8(), 2), nullable=False)]))], r"Required list 't\.x'"),
        ([*SYSTEM, ("t", pa.int8()), ("t", pa.int8())], "same name"),
    ],
)
def test_schemas_that_cannot_be_in_a_slice_are_refused_by_column(tmp_path, fields, message):
    with pytest.raises(SchemaError, match=message):
        SliceWriter(tmp_path / "slice", pa.schema(fields), DEFAULT_VOCABULARY)
    assert list(tmp_path.iterdir()) == []


# --- What others have written ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", SLICES, ids=lambda path: f"{path.parts[-3]}-{path.name[-8:]}")
def test_slices_of_the_reference_can_be_read_and_written_again(tmp_path, path):
    vocab = DatasetVocabulary(*pq.read_schema(path).names[:4])
    table = read_slice(path, vocab=vocab)
    assert table.schema.field("offset").type == pa.int64()
    assert "view" not in str(table.schema)
    stats = slice_stats(path, vocab=vocab)
    assert stats == SliceStats(len(table), table["offset"][0].as_py(), table["offset"][-1].as_py())
    info = write(tmp_path / "slice", table, schema=table.schema, vocab=vocab)
    assert info.logical_hash == logical_hash_of_parquet(path)
    assert (info.offset_start, info.offset_end) == (stats.offset_start, stats.offset_end)


@pytest.mark.parametrize("statistics", [True, False])
def test_unsigned_offsets_and_narrow_operations_are_read(tmp_path, statistics):
    table = rows(100, start=7)
    other = table.set_column(0, "offset", table["offset"].cast(pa.uint64())).set_column(
        1, "op", table["op"].cast(pa.uint8())
    )
    path = tmp_path / "slice"
    pq.write_table(other, path, compression="gzip", row_group_size=30, write_statistics=statistics)
    assert read_slice(path).cast(ARROW).equals(table)
    assert slice_schema(path).types[:2] == [pa.int64(), pa.int32()]
    assert slice_stats(path) == SliceStats(100, 7, 106)
    batches = list(iter_slice(path, 50))
    assert {batch.schema for batch in batches} == {slice_schema(path)}
    assert sum(len(batch) for batch in batches) == 100
    assert max(map(len, batches)) <= 50


def test_empty_files_have_no_offsets(tmp_path):
    path = tmp_path / "slice"
    pq.write_table(rows(0), path)
    assert slice_stats(path) == SliceStats(0, None, None)
    assert read_slice(path).equals(rows(0))
    assert list(iter_slice(path)) == []


def test_unknown_columns_are_refused_with_a_suggestion(tmp_path):
    path = tmp_path / "slice"
    write(path, rows(3))
    with pytest.raises(SchemaError, match="no column 'nmae'") as caught:
        read_slice(path, ["nmae"])
    assert caught.value.hint == "Did you mean name?"
    with pytest.raises(SchemaError):
        next(iter_slice(path, columns=["offset", "x"]))


def test_missing_files_are_named(tmp_path):
    for read in (read_slice, slice_schema, slice_stats, logical_hash_of_parquet, lambda path: next(iter_slice(path))):
        with pytest.raises(ObjectNotFound, match="nowhere"):
            read(tmp_path / "nowhere")
        with pytest.raises(OdfError, match="Cannot read"):
            read(tmp_path)


@pytest.mark.parametrize("memory", [MemoryError(), pa.ArrowMemoryError("malloc of size 99 failed")])
def test_neither_want_of_memory_nor_a_fault_of_the_caller_is_damage(tmp_path, memory):
    path = tmp_path / "slice"
    write(path, rows(20))
    with pytest.raises(OdfError, match="Not enough memory to read data file") as caught, open_parquet(path):
        raise memory
    assert not isinstance(caught.value, IntegrityError)
    with pytest.raises(TypeError):
        list(iter_slice(path, first=0.5))


def test_damaged_files_are_named_or_have_another_hash(tmp_path):
    """A byte changed or cut off anywhere: our error, or a result that the hash tells from the true one."""
    chance = random.Random(5)
    path = tmp_path / "slice"
    info = write(path, rows(200))
    intact = path.read_bytes()
    refused = 0
    for _ in range(300):
        damaged = bytearray(intact)
        if chance.random() < 0.3:
            del damaged[chance.randrange(len(damaged)) :]
        else:
            damaged[chance.randrange(len(damaged))] ^= 1 << chance.randrange(8)
        path.write_bytes(damaged)
        assert info.physical_hash.digest != hashlib.sha3_256(damaged).digest()
        for read in (read_slice, slice_stats, logical_hash_of_parquet):
            try:
                read(path)
            except (IntegrityError, SchemaError) as error:
                refused += isinstance(error, SchemaError) or str(path) in error.message
    assert refused > 100


# --- Any schema ------------------------------------------------------------------------------------------------------


def values_of(data_type: odf.DataType) -> st.SearchStrategy:
    """Values of a type as pyarrow takes them."""
    match data_type:
        case odf.Option(inner):
            return st.one_of(st.none(), values_of(inner))
        case odf.Struct(fields):
            return st.fixed_dictionaries({field.name: values_of(field.type) for field in fields})
        case odf.List(item, length):
            return st.lists(values_of(item), min_size=length or 0, max_size=length or 3)
        case odf.Binary(length):
            return st.binary(min_size=length or 0, max_size=length or 5)
        case odf.Decimal(precision, scale):
            largest = 10 ** min(precision, 9) - 1
            return st.integers(-largest, largest).map(lambda number: Decimal(number).scaleb(-scale))
        case odf.String():
            return st.text(max_size=5)
        case odf.Bool():
            return st.booleans()
        case odf.Float16() | odf.Float32() | odf.Float64():
            return st.sampled_from([0.0, -0.0, 1.5, float("nan"), float("inf")])
        case _:
            return st.integers(0, 100)


def storable(data_type: odf.DataType) -> bool:
    """Whether a slice can hold the type: no maps, durations, times in seconds, lists of structs."""
    match data_type:
        case odf.Option(inner):
            return storable(inner)
        case odf.Struct(fields):
            return all(storable(f.type) and not (isinstance(f.type, odf.List) and f.type.fixed_length) for f in fields)
        case odf.List(item, _):
            bare = item.inner if isinstance(item, odf.Option) else item
            return storable(bare) and not isinstance(bare, odf.Struct)
        case odf.Timestamp(unit) | odf.Time(unit):
            return unit is not odf.TimeUnit.SECOND
        case _:
            return not isinstance(data_type, (odf.Map, odf.Duration))


@settings(max_examples=examples(10, 30), deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_any_schema_that_a_slice_can_hold_survives(tmp_path, data):
    types = data.draw(st.lists(st.one_of(data_types(), data_types().map(odf.Option)), min_size=1, max_size=3))
    kept = [DataField(f"c{at}", data_type) for at, data_type in enumerate(types) if storable(data_type)]
    schema = DataSchema((*system_fields(DEFAULT_VOCABULARY), *kept))
    count = data.draw(st.integers(1, 6))
    columns = [range(count), [0] * count, [0] * count, [0] * count]
    columns += [data.draw(st.lists(values_of(field.type), min_size=count, max_size=count)) for field in kept]
    with as_far_as_arrow_can():
        arrays = [pa.array(values, field.type) for values, field in zip(columns, to_arrow(schema), strict=True)]
        table = pa.Table.from_arrays(arrays, schema=to_arrow(schema))
        info = write(tmp_path / "slice", *table.to_batches(max_chunksize=2), schema=schema)
        assert info.logical_hash == logical_hash(table) == logical_hash_of_parquet(tmp_path / "slice")
        back = read_slice(tmp_path / "slice")
    assert back.schema.equals(table.schema)
    assert str(back.to_pylist()) == str(table.to_pylist())  # as text, since NaN is not equal to itself
