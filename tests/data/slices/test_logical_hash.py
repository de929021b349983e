"""Logical hash: equal to a slow, obvious model, to the reference implementation, and blind to all layouts."""

from __future__ import annotations

import hashlib
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.arrow_limits import as_far_as_arrow_can
from support.examples import examples
from support.fixtures import KAMU, KAMU_DATASETS

from odfpy.data.multihash import ARROW0_SHA3_256
from odfpy.data.slices import packing
from odfpy.data.slices.logical_hash import LogicalHasher, ambiguous_columns, logical_hash, logical_hash_of_parquet
from odfpy.errors import IntegrityError, ObjectNotFound, SchemaError

RECORDED = [
    (name, match[2], match[1])
    for name in KAMU_DATASETS
    for match in re.finditer(r"logicalHash: (\S+)\s+physicalHash: (\S+)", (KAMU / name / "log.yaml").read_text())
]

COMPILED = packing.compiled
PACKINGS = {"portable": None} | ({"compiled": COMPILED} if COMPILED else {})


@pytest.fixture(scope="module", autouse=True, params=PACKINGS.values(), ids=PACKINGS.keys())
def packed(request: pytest.FixtureRequest) -> Iterator[None]:
    """Hash with numpy and Arrow, and with the compiled module, where it could be built."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packing, "compiled", request.param)
        yield


# --- The model: one value after the other, as the specification says it ----------------------------------------------


def u64(number: int) -> bytes:
    return struct.pack("<Q", number % (1 << 64))


def u16(number: int) -> bytes:
    return struct.pack("<H", number)


@dataclass(frozen=True)
class Fixed:
    """Values are the bytes as stored."""

    arrow: pa.DataType
    header: bytes

    @property
    def width(self) -> int:
        return self.arrow.bit_width // 8


INTEGERS = [
    Fixed(getattr(pa, f"{sign}int{bits}")(), u16(1) + bytes([sign == ""]) + u64(bits))
    for sign in ("", "u")
    for bits in (8, 16, 32, 64)
]
FLOATS = [Fixed(getattr(pa, f"float{bits}")(), u16(2) + u64(bits)) for bits in (16, 32, 64)]
DECIMALS = [
    Fixed(pa.decimal32(9, 2), u16(6) + u64(32) + u64(9) + u64(2)),
    Fixed(pa.decimal64(18, 4), u16(6) + u64(64) + u64(18) + u64(4)),
    Fixed(pa.decimal128(38, -3), u16(6) + u64(128) + u64(38) + u64(-3)),
    Fixed(pa.decimal256(50, 7), u16(6) + u64(256) + u64(50) + u64(7)),
]
DATES = [Fixed(pa.date32(), u16(7) + u64(32) + u16(0)), Fixed(pa.date64(), u16(7) + u64(64) + u16(1))]
TIMES = [
    Fixed(pa.time32("s"), u16(8) + u64(32) + u16(0)),
    Fixed(pa.time32("ms"), u16(8) + u64(32) + u16(1)),
    Fixed(pa.time64("us"), u16(8) + u64(64) + u16(2)),
    Fixed(pa.time64("ns"), u16(8) + u64(64) + u16(3)),
]
TIMESTAMPS = [
    Fixed(pa.timestamp(unit, zone), u16(9) + u16(number) + (u64(len(zone)) + zone.encode() if zone else b"\0"))
    for number, unit in enumerate(("s", "ms", "us", "ns"))
    for zone in (None, "UTC", "Europe/Berlin")
]


@dataclass(frozen=True)
class Bool:
    arrow = pa.bool_()
    header = u16(5)


@dataclass(frozen=True)
class Text:
    arrow = pa.string()
    header = u16(4)


@dataclass(frozen=True)
class Binary:
    arrow = pa.binary()
    header = u16(3)


@dataclass(frozen=True)
class FixedBinary:
    width: int

    @property
    def arrow(self) -> pa.DataType:
        return pa.binary(self.width)

    header = u16(3)


@dataclass(frozen=True)
class ListOf:
    item: Any

    @property
    def arrow(self) -> pa.DataType:
        return pa.list_(self.item.arrow)

    @property
    def header(self) -> bytes:
        return u16(11) + self.item.header


@dataclass(frozen=True)
class StructOf:
    """Values are (present, values of the fields): what is under a null struct exists, but must not matter."""

    fields: tuple[tuple[str, Any], ...]

    @property
    def arrow(self) -> pa.DataType:
        return pa.struct([(name, kind.arrow) for name, kind in self.fields])


def model_value(kind: Any, value: Any) -> bytes:
    if value is None:
        return b"\0"
    if isinstance(kind, Fixed):
        return value
    if isinstance(kind, Bool):
        return b"\2" if value else b"\1"
    if isinstance(kind, Text):
        return u64(len(value.encode())) + value.encode()
    if isinstance(kind, (Binary, FixedBinary)):
        return u64(len(value)) + value
    return u64(len(value)) + b"".join(model_value(kind.item, item) for item in value)


def model_leaves(kind: Any, values: list[Any]) -> list[bytes]:
    if isinstance(kind, StructOf):
        leaves = []
        for at, (_, child) in enumerate(kind.fields):
            below = [
                (row[0] and row[1][at][0], row[1][at][1])
                if isinstance(child, StructOf)
                else row[1][at]
                if row[0]
                else None
                for row in values
            ]
            leaves += model_leaves(child, below)
        return leaves
    stream = kind.header + b"".join(model_value(kind, value) for value in values)
    return [hashlib.sha3_256(stream).digest()]


def model_names(name: str, kind: Any, level: int) -> bytes:
    below = kind.fields if isinstance(kind, StructOf) else ()
    return (
        u64(len(name.encode())) + name.encode() + u64(level) + b"".join(model_names(n, k, level + 1) for n, k in below)
    )


def model_hash(columns: list[tuple[str, Any, list[Any]]]) -> bytes:
    names = b"".join(model_names(name, kind, 0) for name, kind, _ in columns)
    leaves = [digest for _, kind, values in columns for digest in model_leaves(kind, values)]
    return hashlib.sha3_256(names + b"".join(leaves)).digest()


# --- Random columns, as values and as Arrow arrays whose null slots hold garbage --------------------------------------


def flat_kinds() -> st.SearchStrategy[Any]:
    fixed = st.sampled_from(INTEGERS + FLOATS + DECIMALS + DATES + TIMES + TIMESTAMPS)
    return st.one_of(
        fixed, st.just(Bool()), st.just(Text()), st.just(Binary()), st.builds(FixedBinary, st.integers(1, 5))
    )


def list_kinds() -> st.SearchStrategy[Any]:
    return st.recursive(flat_kinds(), lambda item: st.builds(ListOf, item), max_leaves=2)


def kinds() -> st.SearchStrategy[Any]:
    def structs(child: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        fields = st.lists(child, min_size=1, max_size=3)
        return fields.map(lambda types: StructOf(tuple((f"f{at}", kind) for at, kind in enumerate(types))))

    return st.recursive(list_kinds(), structs, max_leaves=4)


def values_of(kind: Any) -> st.SearchStrategy[Any]:
    if isinstance(kind, StructOf):
        return st.tuples(st.booleans(), st.tuples(*(values_of(child) for _, child in kind.fields)))
    if isinstance(kind, ListOf):
        some = st.lists(values_of(kind.item), max_size=4)
    elif isinstance(kind, Bool):
        some = st.booleans()
    elif isinstance(kind, Text):
        some = st.one_of(st.text(max_size=6), st.text("ab", min_size=250, max_size=300))
    elif isinstance(kind, Binary):
        some = st.binary(max_size=6)
    else:
        some = st.binary(min_size=kind.width, max_size=kind.width)
    return st.one_of(st.none(), some, some)


@st.composite
def columns(draw: st.DrawFn, max_rows: int = 12) -> list[tuple[str, Any, list[Any]]]:
    rows = draw(st.integers(0, max_rows))
    names = draw(st.lists(st.text(max_size=4), min_size=1, max_size=3, unique=True))
    chosen = [(name, draw(kinds())) for name in names]
    return [(name, kind, draw(st.lists(values_of(kind), min_size=rows, max_size=rows))) for name, kind in chosen]


def to_array(kind: Any, values: list[Any]) -> pa.Array:
    if isinstance(kind, StructOf):
        children = [to_array(child, [row[1][at] for row in values]) for at, (_, child) in enumerate(kind.fields)]
        mask = pa.array([not present for present, _ in values], pa.bool_())
        return pa.StructArray.from_arrays(children, fields=list(kind.arrow.fields), mask=mask)
    if isinstance(kind, ListOf):
        garbage = [None, None]
        offsets, items = [0], []
        for value in values:
            items += garbage if value is None else value
            offsets.append(len(items))
        mask = pa.array([value is None for value in values], pa.bool_())
        return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), to_array(kind.item, items), mask=mask)
    if isinstance(kind, (Fixed, FixedBinary)):
        stored = b"".join(b"\xab" * kind.width if value is None else value for value in values)
        validity = pc.is_valid(pa.array([None if value is None else True for value in values], pa.bool_())).buffers()[1]
        return pa.Array.from_buffers(kind.arrow, len(values), [validity, pa.py_buffer(stored)])
    return pa.array(values, kind.arrow)


def to_table(data: list[tuple[str, Any, list[Any]]]) -> pa.Table:
    return pa.table([to_array(kind, values) for _, kind, values in data], names=[name for name, _, _ in data])


# --- Layouts ---------------------------------------------------------------------------------------------------------


def layouts(array: pa.Array) -> list[pa.Array]:
    """The same values in other layouts, as far as Arrow has them."""
    arrow, found = array.type, [array]
    if pa.types.is_string(arrow):
        found += [array.cast(pa.large_string()), array.cast(pa.string_view()), array.dictionary_encode()]
    elif pa.types.is_binary(arrow):
        found += [array.cast(pa.large_binary()), array.cast(pa.binary_view()), array.dictionary_encode()]
    elif pa.types.is_integer(arrow) or pa.types.is_boolean(arrow):
        found += [pc.run_end_encode(array), array.dictionary_encode()]
    elif pa.types.is_struct(arrow):
        children = [layouts(array.field(at))[-1] for at in range(arrow.num_fields)]
        found.append(pa.StructArray.from_arrays(children, arrow.names, mask=array.is_null()))
    elif pa.types.is_list(arrow):
        found += [array.cast(pa.large_list(arrow.value_type)), list_view(array)]
        found.append(array.cast(pa.list_(pa.field("element", arrow.value_type))))
    return found


def list_view(array: pa.Array) -> pa.Array:
    """Views into the items of two copies, those of odd rows into the second, so that they are out of order."""
    starts, ends = array.offsets.to_pylist()[:-1], array.offsets.to_pylist()[1:]
    second = [len(array.values) * (row % 2) for row in range(len(array))]
    offsets = pa.array([start + more for start, more in zip(starts, second, strict=True)], pa.int32())
    sizes = pa.array([end - start for start, end in zip(starts, ends, strict=True)], pa.int32())
    twice = pa.concat_arrays([array.values, array.values])
    return pa.ListViewArray.from_arrays(offsets, sizes, twice, mask=array.is_null())


@settings(max_examples=examples(30, 150), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(columns())
def test_equals_the_model(data):
    assert logical_hash(to_table(data)).digest == model_hash(data)


@settings(max_examples=examples(20, 75), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(columns(), st.data())
def test_ignores_batches_and_offsets_into_buffers(data, draw):
    table = to_table(data)
    cuts = sorted(draw.draw(st.lists(st.integers(0, len(table)), max_size=4)))
    bounds = [0, *cuts, len(table)]
    hasher = LogicalHasher(table.schema, threads=draw.draw(st.sampled_from([1, 2])))
    for start, end in pairwise(bounds):
        hasher.update(table.slice(start, end - start))
    assert hasher.finish().digest == model_hash(data)


@settings(max_examples=examples(20, 75), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(columns(), st.data())
def test_ignores_layouts(data, draw):
    arrays = [draw.draw(st.sampled_from(layouts(to_array(kind, values)))) for _, kind, values in data]
    table = pa.table(arrays, names=[name for name, _, _ in data])
    start = draw.draw(st.integers(0, len(table)))
    part = [(name, kind, values[start:]) for name, kind, values in data]
    assert logical_hash(table.slice(start)).digest == model_hash(part)


@pytest.mark.parametrize("rows", [0, 1, 7, 8, 9, 32_767, 32_768, 32_769, 70_001])
def test_ignores_where_pieces_end(rows):
    texts = [None if row % 11 == 0 else "x" * (row % 300) for row in range(rows)]
    numbers = [None if row % 7 == 0 else row.to_bytes(8, "little") for row in range(rows)]
    data = [
        ("text", Text(), texts),
        ("number", INTEGERS[3], numbers),
        ("flag", Bool(), [row % 3 == 0 for row in range(rows)]),
    ]
    table = to_table(data)
    assert logical_hash(table).digest == model_hash(data)
    hasher = LogicalHasher(table.schema, threads=2)
    for batch in table.to_batches(max_chunksize=9_999):
        hasher.update(batch)
    assert hasher.finish().digest == model_hash(data)


def test_lengths_of_every_magnitude_are_written():
    texts = ["", "a", "b" * 255, "c" * 256, "d" * 65_535, "e" * 65_536, None, "f" * (1 << 24)]
    data = [("text", Text(), texts)]
    assert logical_hash(to_table(data)).digest == model_hash(data)


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_a_large_column_is_hashed_on_threads(threads):
    texts = [None if row % 13 == 0 else f"text {row}" for row in range(200_000)]
    table = to_table([("text", Text(), texts)])
    hasher = LogicalHasher(table.schema, threads=threads)
    for start in (0, 150_000):
        hasher.update(table.slice(start, 150_000))
    assert hasher.finish().digest == model_hash([("text", Text(), texts)])


@pytest.mark.parametrize("start", range(17))
def test_booleans_begin_at_any_bit(start):
    flags = [None if row % 5 == 0 else row % 3 == 0 for row in range(40)]
    table = to_table([("flag", Bool(), flags), ("known", Bool(), [flag is True for flag in flags])])
    part = [("flag", Bool(), flags[start:]), ("known", Bool(), [flag is True for flag in flags[start:]])]
    assert logical_hash(table.slice(start)).digest == model_hash(part)


def test_fixed_size_lists_are_lists():
    values = [[1, 2], None, [3, None]]
    plain = pa.table({"a": pa.array(values, pa.list_(pa.int8()))})
    fixed = pa.table({"a": pa.array(values, pa.list_(pa.int8(), 2))})
    assert logical_hash(plain) == logical_hash(fixed)
    assert logical_hash(plain.slice(1)) == logical_hash(fixed.slice(1))


def test_null_lists_of_required_items_have_no_items():
    required = pa.list_(pa.field("item", pa.list_(pa.field("item", pa.int8(), nullable=False), 1), nullable=False), 1)
    values = [None, [[1]], None, [[2]]]
    nullable = pa.table({"a": pa.array(values, pa.list_(pa.list_(pa.int8())))})
    assert logical_hash(pa.table({"a": pa.array(values, required)})) == logical_hash(nullable)
    assert logical_hash(pa.table({"a": pa.array(values, required)}).slice(2)) == logical_hash(nullable.slice(2))


def test_nullability_and_metadata_do_not_matter():
    field = pa.field("a", pa.int32(), nullable=False, metadata={"k": "v"})
    annotated = pa.table([pa.array([1, 2], pa.int32())], schema=pa.schema([field], metadata={"x": "y"}))
    assert logical_hash(annotated) == logical_hash(pa.table({"a": pa.array([1, 2], pa.int32())}))


@pytest.mark.parametrize(
    "arrow",
    [
        pa.null(),
        pa.duration("ms"),
        pa.month_day_nano_interval(),
        pa.map_(pa.string(), pa.int8()),
        pa.list_(pa.struct([("x", pa.int8())])),
        pa.dense_union([pa.field("x", pa.int8())]),
    ],
    ids=str,
)
def test_types_without_a_definition_are_refused_by_name(arrow):
    schema = pa.schema([("fine", pa.int8()), ("outer", pa.struct([("odd", arrow)]))])
    with pytest.raises(SchemaError, match=r"'outer\.odd'"):
        LogicalHasher(schema)


def test_a_list_of_what_has_no_hash_is_told_as_a_whole() -> None:
    with pytest.raises(
        SchemaError, match=r"Column 'l' has type list<item: struct<a: int32>>, for which no logical hash"
    ):
        logical_hash(pa.table({"l": pa.array([], pa.list_(pa.struct([("a", pa.int32())])))}))


def test_other_columns_or_types_are_refused():
    hasher = LogicalHasher(pa.schema([("a", pa.int32())]))
    with pytest.raises(SchemaError, match="'b'"):
        hasher.update(pa.table({"b": pa.array([1], pa.int32())}))
    with pytest.raises(SchemaError, match="int64 where int32"):
        hasher.update(pa.table({"a": pa.array([1], pa.int64())}))


# --- Files -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("dataset", "file", "recorded"), RECORDED, ids=lambda value: value[-12:])
def test_equals_what_the_reference_recorded(dataset, file, recorded):
    path = KAMU / dataset / "data" / file
    assert logical_hash(pq.read_table(path)) == logical_hash_of_parquet(path)
    if dataset == "nested-nulls":
        assert str(logical_hash_of_parquet(path)) != recorded
        assert ambiguous_columns(path) == ["s.x", "s.y"]
    else:
        assert str(logical_hash_of_parquet(path)) == recorded
        assert ambiguous_columns(path) == []


@settings(
    max_examples=examples(20, 60),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(data=columns(), row_group=st.integers(1, 5), threads=st.sampled_from([1, 2]))
def test_a_file_has_the_hash_of_its_rows(tmp_path, data, row_group, threads):
    table = to_table([column for column in data if not _lost_in_parquet(column[1])] or [("a", Bool(), [None])])
    path = tmp_path / "file.parquet"
    with as_far_as_arrow_can():
        pq.write_table(table, path, row_group_size=row_group)
        assert logical_hash_of_parquet(path, threads=threads) == logical_hash(table)


def test_large_files_are_hashed_on_threads(tmp_path):
    rows = 200_000
    table = pa.table(
        {"a": pa.array(range(rows)), "a.b": [str(row) for row in range(rows)], "c": [{"b": row} for row in range(rows)]}
    )
    path = tmp_path / "file.parquet"
    pq.write_table(table, path, row_group_size=30_000)
    hashes = {logical_hash_of_parquet(path, threads=threads) for threads in (1, 2, 5)}
    assert hashes == {logical_hash(table)}
    assert next(iter(hashes)).code == ARROW0_SHA3_256.code


def test_missing_and_damaged_files_are_named(tmp_path):
    with pytest.raises(ObjectNotFound, match="nowhere"):
        logical_hash_of_parquet(tmp_path / "nowhere")
    path = tmp_path / "damaged"
    path.write_bytes(b"PAR1 this is not a Parquet file PAR1")
    with pytest.raises(IntegrityError, match="damaged"):
        logical_hash_of_parquet(path)


def _lost_in_parquet(kind: Any) -> bool:
    """Types that Parquet cannot hold, or gives back as another."""
    if isinstance(kind, StructOf):
        return any(_lost_in_parquet(child) for _, child in kind.fields)
    if isinstance(kind, ListOf):
        return _lost_in_parquet(kind.item)
    if not isinstance(kind, Fixed):
        return False
    arrow = kind.arrow
    return (
        kind in DECIMALS or arrow == pa.date64() or (pa.types.is_temporal(arrow) and getattr(arrow, "unit", "") == "s")
    )


# --- Ambiguity -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "ambiguous"),
    [
        ([{"x": 1}, {"x": None}], []),
        ([{"x": 1}, None], []),
        ([{"x": 1}, None, {"x": None}], ["s.x"]),
        ([{"x": 1}] + [None] + [{"x": 1}] * 9_998 + [{"x": None}], []),
        ([{"x": 1}] + [None] + [{"x": 1}] * 9_997 + [{"x": None}], ["s.x"]),
    ],
    ids=["only leaves", "only structs", "both", "in two batches", "in one batch"],
)
def test_columns_are_ambiguous_where_a_struct_and_its_leaf_have_nulls_in_one_batch(tmp_path, rows, ambiguous):
    table = pa.table({"a": range(len(rows)), "s": rows})
    assert ambiguous_columns(table) == ambiguous
    pq.write_table(table, tmp_path / "file", row_group_size=3_000)  # batches go across row groups
    assert ambiguous_columns(tmp_path / "file") == ambiguous


def test_ambiguity_is_found_in_nested_structs():
    rows = [None, {"t": None, "y": 1}, {"t": {"x": None}, "y": 1}, {"t": {"x": 1}, "y": 2}]
    assert ambiguous_columns(pa.table({"s": rows})) == ["s.t.x"]
