"""Parquet: as it is without a schema, exactly cast with one."""

from __future__ import annotations

from datetime import date, datetime, timezone
from decimal import Decimal as Dec
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.chains.schemas import optional, required
from support.fixtures import KAMU

from odfpy.chain.read_steps import ReadParquet
from odfpy.data.schemas.schema import (
    Bool,
    DataField,
    DataSchema,
    DataType,
    Date,
    Decimal,
    Float32,
    Float64,
    Int8,
    Int32,
    Int64,
    List,
    Option,
    String,
    Struct,
    Timestamp,
    TimeUnit,
    UInt8,
)
from odfpy.errors import BadValue, IngestError, SchemaError
from odfpy.ingest.read import read


def write(path: Path, table: pa.Table, **options: Any) -> Path:
    pq.write_table(table, path, **options)
    return path


def naive(*args: int) -> datetime:
    return datetime(*args, tzinfo=timezone.utc).replace(tzinfo=None)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "input.parquet"


def test_columns_are_as_in_the_file(path: Path):
    schema = pa.schema([pa.field("id", pa.uint64(), nullable=False), pa.field("t", pa.timestamp("us"))])
    table = pa.table({"id": [1, 2], "t": [naive(2024, 1, 1), None]}, schema=schema)
    result = read(ReadParquet(), write(path, table))
    assert result.schema == pa.schema(
        [pa.field("id", pa.uint64(), nullable=False), pa.field("t", pa.timestamp("us", "UTC"))]
    )
    assert result.to_pylist() == [
        {"id": 1, "t": datetime(2024, 1, 1, tzinfo=timezone.utc)},
        {"id": 2, "t": None},
    ]


@pytest.mark.parametrize("schema", [None, optional(t=Timestamp(), s=Struct(optional(t=Timestamp()).fields))])
def test_times_of_spark_are_not_wrapped_around(path: Path, schema: DataSchema | None):
    """As INT96, in which those before 1677 and after 2262 are no number of nanoseconds."""
    times = [naive(9999, 12, 31, 23, 59, 59), naive(1, 1, 1), naive(2024, 1, 1, 0, 0, 0, 123456), None]
    table = pa.table({"t": pa.array(times, pa.timestamp("us"))})
    table = table.append_column("s", pa.StructArray.from_arrays([table["t"].combine_chunks()], ["t"]))
    write(path, table, use_deprecated_int96_timestamps=True)
    result = read(ReadParquet(schema=schema), path)
    wanted = [None if time is None else time.replace(tzinfo=timezone.utc) for time in times]
    unit = "us" if schema is None else "ms"
    if unit == "ms":
        wanted[2] = datetime(2024, 1, 1, 0, 0, 0, 123000, timezone.utc)
    assert result.schema.field("t").type == pa.timestamp(unit, "UTC")
    assert result["t"].to_pylist() == [row["t"] for row in result["s"].to_pylist()] == wanted


@pytest.mark.parametrize("item", ["item", "element", "array", "x"])
def test_names_of_list_items_do_not_matter(path: Path, item: str):
    table = pa.table({"l": pa.array([[1, None], None, []], pa.list_(pa.field(item, pa.int64())))})
    result = read(ReadParquet(), write(path, table, use_compliant_nested_type=False))
    assert result.schema.field("l").type.value_field.name == "item"
    assert result["l"].to_pylist() == [[1, None], None, []]


@pytest.mark.parametrize(
    "array",
    [
        pa.array(["a", None], pa.large_string()),
        pa.array(["a", None], pa.string_view()),
        pa.array(["a", None]).dictionary_encode(),
    ],
    ids=lambda array: str(array.type),
)
def test_layouts_do_not_matter(path: Path, array: pa.Array):
    result = read(ReadParquet(), write(path, pa.table({"s": array})))
    assert result.schema == pa.schema([("s", pa.string())])
    assert result["s"].to_pylist() == ["a", None]


@pytest.mark.parametrize("name", ["types-1", "types-2", "types-big", "nested-nulls"])
def test_inputs_of_the_reference_are_read_row_by_row(name: str):
    file = KAMU / "input" / f"{name}.parquet"
    result = read(ReadParquet(), file)
    assert result.to_pylist() == pq.ParquetFile(file).read().to_pylist()


def test_folders_that_look_like_partitions_add_no_column(tmp_path: Path):
    folder = tmp_path / "year=2024"
    folder.mkdir()
    assert read(ReadParquet(), write(folder / "x.parquet", pa.table({"a": [1]}))).column_names == ["a"]


def test_columns_are_taken_by_name(path: Path):
    write(path, pa.table({"b": ["x"], "other": [1], "a": [1]}))
    schema = DataSchema((*required(a=Int64()).fields, *optional(b=String(), c=List(Int64())).fields))
    result = read(ReadParquet(schema=schema), path)
    assert result.to_pylist() == [{"a": 1, "b": "x", "c": None}]
    assert [field.nullable for field in result.schema] == [False, True, True]


EXACT: list[tuple[pa.Array, DataType, list[Any]]] = [
    (pa.array([1, None]), Int8(), [1, None]),
    (pa.array([1.0]), Int64(), [1]),
    (pa.array([2**53]), Float64(), [2.0**53]),
    (pa.array([1.5, float("nan"), -0.0]), Float32(), [1.5, float("nan"), -0.0]),
    (pa.array([Dec(-5), None]), Int64(), [-5, None]),
    (pa.array([Dec("12.00")]), UInt8(), [12]),
    (pa.array([1e10, 2.0**53]), Int64(), [10**10, 2**53]),
    (pa.array([1e10], pa.float32()), Int64(), [10**10]),
    (pa.array([675_000]), String(), ["675000"]),
    (pa.array(["12"]), Int64(), [12]),
    (pa.array([12]), Decimal(4, 2), [Dec("12.00")]),
    (pa.array([Dec("1.500")]), Decimal(10, 1), [Dec("1.5")]),
    (pa.array(["2024-01-01T00:00:00+01:00"]), Timestamp(), [datetime(2023, 12, 31, 23, tzinfo=timezone.utc)]),
    (pa.array([date(2024, 1, 1)]), Timestamp(), [datetime(2024, 1, 1, tzinfo=timezone.utc)]),
    (pa.array([naive(2024, 1, 1)]), Date(), [date(2024, 1, 1)]),
    (
        pa.array([-1, 1_999_999]).cast(pa.timestamp("ns")),  # finer than milliseconds: downwards, also before 1970
        Timestamp(TimeUnit.MILLISECOND),
        [
            datetime(1969, 12, 31, 23, 59, 59, 999000, timezone.utc),
            datetime(1970, 1, 1, 0, 0, 0, 1000, timezone.utc),
        ],
    ),
]
INEXACT: list[tuple[pa.Array, DataType, str]] = [
    (pa.array([1, 128]), Int8(), "row 2: column 'v' has '128', which is not a valid Int8"),
    (pa.array([1.0, 1.5]), Int64(), "row 2: column 'v' has '1.5', which is not a valid Int64"),
    (pa.array([2**53 + 1]), Float64(), "row 1: column 'v' has '9007199254740993', which is not a valid Float64"),
    (pa.array([1.5, 0.1]), Float32(), "row 2: column 'v' has '0.1', which is not a valid Float32"),
    (pa.array([1, 2]), Bool(), "row 2: column 'v' has '2', which is not a valid Bool"),
    (pa.array([Dec("1.005")]), Decimal(10, 2), "row 1: column 'v' has '1.005', which is not a valid Decimal(10, 2)"),
    (pa.array([Dec("1.5")]), Int64(), "row 1: column 'v' has '1.5', which is not a valid Int64"),
    (pa.array([Dec(256)]), UInt8(), "row 1: column 'v' has '256', which is not a valid UInt8"),
    (pa.array([2.0**63]), Int64(), "row 1: column 'v' has '9.223372036854776e+18', which is not a valid Int64"),
    (pa.array([12_345]), Decimal(4, 2), "row 1: column 'v' has '12345', which is not a valid Decimal(4, 2)"),
    (
        pa.array([naive(2024, 1, 1, 1)]),
        Date(),
        "row 1: column 'v' has '2024-01-01 01:00:00', which is not a valid Date",
    ),
    (
        pa.array([1], pa.timestamp("ms")),
        Timestamp(TimeUnit.SECOND),
        "row 1: column 'v' has '1970-01-01 00:00:00.001000'",
    ),
    (pa.array(["x"]), Int64(), "row 1: column 'v' has 'x', which is not a valid Int64"),
]


@pytest.mark.parametrize(("array", "wanted", "values"), EXACT, ids=str)
def test_values_are_cast_exactly(path: Path, array: pa.Array, wanted: DataType, values: list[Any]):
    result = read(ReadParquet(schema=optional(v=wanted)), write(path, pa.table({"v": array})))
    assert list(map(str, result["v"].to_pylist())) == list(map(str, values))


@pytest.mark.parametrize(("array", "wanted", "message"), INEXACT, ids=str)
def test_what_would_lose_something_is_an_error(path: Path, array: pa.Array, wanted: DataType, message: str):
    write(path, pa.table({"v": array}))
    with pytest.raises(BadValue) as caught:
        read(ReadParquet(schema=optional(v=wanted)), path, name="input")
    assert caught.value.message.startswith(f"input, {message}")


def test_null_where_a_value_is_required(path: Path):
    write(path, pa.table({"a": [1, None]}))
    with pytest.raises(BadValue, match="row 2: column 'a' has no value, but Int64 is required"):
        read(ReadParquet(schema=required(a=Int64())), path)


def test_missing_required_column(path: Path):
    write(path, pa.table({"b": [1]}))
    with pytest.raises(BadValue, match="row 1: column 'a' has no value"):
        read(ReadParquet(schema=required(a=Int64())), path)


def test_members_of_structs_are_required_only_where_the_struct_is_there(path: Path):
    struct = pa.struct([("x", pa.int64()), ("y", pa.string())])
    array = pa.array([{"x": 1, "y": "a"}, None, {"x": 3, "y": None}], struct)
    write(path, pa.table({"s": array}))
    wanted = Struct((DataField("y", Option(String())), DataField("x", Int32())))
    result = read(ReadParquet(schema=optional(s=wanted)), path)
    assert result["s"].to_pylist() == [{"y": "a", "x": 1}, None, {"y": None, "x": 3}]
    required_y = Struct((DataField("y", String()),))
    with pytest.raises(BadValue, match=r"row 3: column 's\.y' has no value"):
        read(ReadParquet(schema=optional(s=required_y)), path)


def test_types_that_have_nothing_in_common(path: Path):
    write(path, pa.table({"v": [[1]]}))
    with pytest.raises(SchemaError, match=r"'v' is 'list.*' in the input and cannot become Int64"):
        read(ReadParquet(schema=optional(v=Int64())), path)


@pytest.mark.parametrize("content", [b"PAR1", b"not parquet", b"PAR1" + b"\0" * 100 + b"PAR1"])
def test_damaged_file_is_an_error(path: Path, content: bytes):
    path.write_bytes(content)
    with pytest.raises(IngestError, match="is not a readable Parquet file"):
        read(ReadParquet(), path)


def texts(*values: bytes) -> pa.Array:
    """What a file calls texts, whatever the bytes are."""
    return pa.array(values, pa.binary()).view(pa.string())


NO_TEXT = texts(b"good", b"\xff\xfe")


@pytest.mark.parametrize(
    ("column", "where", "shown", "wanted"),
    [
        (NO_TEXT, "v", r"\xff\xfe", "String"),
        (NO_TEXT.dictionary_encode(), "v", r"\xff\xfe", "String"),
        (pa.ListArray.from_arrays([0, 1, 2], NO_TEXT), "v[]", r"\xff\xfe", "String"),
        (pa.StructArray.from_arrays([NO_TEXT], ["m"]), "v.m", r"\xff\xfe", "String"),
        (pa.MapArray.from_arrays([0, 1, 2], texts(b"a", b"\xff"), pa.array([1, 2])), "v{}", r"\xff", "String"),
        (pa.array([0, 2**31 - 1], pa.int32()).cast(pa.date32()), "v", "2147483647 days since 1970", "Date"),
        (pa.array([0, 253402300800000]).cast(pa.timestamp("ms")), "v", "253402300800000 ms since 1970", "Timestamp"),
        (pa.array([0, -(10**15)]).cast(pa.timestamp("s")), "v", "-1000000000000000000 ms since 1970", "Timestamp"),
        (pa.array([0, 10**13]).cast(pa.time64("us")), "v", "10000000000000 us since midnight", "Time"),
        (pa.array([0, -1]).cast(pa.time64("ns")), "v", "-1 ns since midnight", "Time"),
    ],
)
def test_values_that_their_type_cannot_have_are_refused(
    path: Path, column: pa.Array, where: str, shown: str, wanted: str
):
    """Nobody could read a slice with them again."""
    write(path, pa.table({"v": column}))
    with pytest.raises(BadValue) as caught:
        read(ReadParquet(), path)
    assert f"row 2: column {where!r} has {shown!r}, which is not a valid {wanted}" in caught.value.message
    assert "Format`" not in str(caught.value.hint), "Parquet has no option for how times are written"


def test_bytes_that_are_no_text_become_nothing_else(path: Path):
    write(path, pa.table({"v": NO_TEXT}))
    with pytest.raises(BadValue, match="which is not a valid Int64"):
        read(ReadParquet(schema=optional(v=Int64())), path)


def test_want_of_memory_is_not_taken_for_damage(path: Path, monkeypatch: pytest.MonkeyPatch):
    def refuse(*args: object) -> None:
        raise pa.ArrowMemoryError("malloc of size 99 failed")

    write(path, pa.table({"v": [1]}))
    monkeypatch.setattr(pq.ParquetFile, "read", refuse)
    with pytest.raises(IngestError, match=r"^Not enough memory to read .*malloc of size 99 failed$"):
        read(ReadParquet(), path)


def test_empty_file_is_no_rows(path: Path):
    path.touch()
    assert read(ReadParquet(schema=required(a=Int64())), path).num_rows == 0
    assert read(ReadParquet(), path).num_columns == 0


ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "i": st.none() | st.integers(-(2**63), 2**63 - 1),
            "l": st.none() | st.lists(st.none() | st.text(st.characters(exclude_categories=["Cs"])), max_size=3),
            "s": st.none() | st.fixed_dictionaries({"x": st.booleans(), "y": st.none() | st.floats(allow_nan=False)}),
            "m": st.none() | st.lists(st.tuples(st.text("ab"), st.none() | st.integers(0, 9)), max_size=2),
        }
    ),
    max_size=10,
)
NESTED = pa.schema(
    [
        ("i", pa.int64()),
        ("l", pa.list_(pa.string())),
        ("s", pa.struct([pa.field("x", pa.bool_(), nullable=False), ("y", pa.float64())])),
        ("m", pa.map_(pa.string(), pa.int64())),
    ]
)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=ROWS, row_group_size=st.integers(1, 4))
def test_what_was_written_is_read(path: Path, rows: list[dict[str, Any]], row_group_size: int):
    table = pa.Table.from_pylist(rows, NESTED)
    result = read(ReadParquet(), write(path, table, row_group_size=row_group_size))
    assert result.to_pylist() == rows
    result.validate(full=True)
    sliced = pa.concat_tables([table.slice(1), table.slice(0, 1)])
    assert read(ReadParquet(), write(path, sliced)).to_pylist() == rows[1:] + rows[:1]


def test_checksums_of_pages_are_looked_at(path: Path):
    write(path, pa.table({"x": list(range(1000))}), write_page_checksum=True, compression="none", use_dictionary=False)
    content = path.read_bytes()
    assert read(ReadParquet(), path).num_rows == 1000
    path.write_bytes(content.replace((500).to_bytes(8, "little"), (501).to_bytes(8, "little"), 1))
    with pytest.raises(IngestError, match=r"is not a readable Parquet file: .*checksum"):
        read(ReadParquet(), path)
