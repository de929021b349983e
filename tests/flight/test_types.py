"""Arrow types as Spark takes them: each value stays what it is, or the column is named in an error."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odfpy.flight.conversion import plain_batch
from odfpy.flight.errors import NotForSpark
from odfpy.flight.spark.schema import arrow_schema, spark_schema
from odfpy.flight.types import plain_schema

NAIVE = st.datetimes(datetime.fromisoformat("1700-01-01"), datetime.fromisoformat("2200-01-01"))
SHORT = st.text(st.characters(exclude_categories=("Cs",)), max_size=5)
Typed = tuple[pa.DataType, st.SearchStrategy[Any], Callable[[Any], Any]]
"""A type, values of it, and what becomes of one."""


def same(value: Any) -> Any:
    return value


def typed(kind: pa.DataType, values: st.SearchStrategy[Any], become: Callable[[Any], Any] = same) -> Typed:
    return kind, values, become


def integers(bits: int, *, signed: bool = True) -> st.SearchStrategy[int]:
    return st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else st.integers(0, 2**bits - 1)


def in_seconds(value: Any) -> Any:
    return value.replace(microsecond=0)


def in_milliseconds(value: Any) -> Any:
    return value.replace(microsecond=value.microsecond // 1000 * 1000)


SIMPLE = [
    typed(pa.null(), st.none()),
    typed(pa.bool_(), st.booleans()),
    *(typed(getattr(pa, f"int{bits}")(), integers(bits)) for bits in (8, 16, 32, 64)),
    *(typed(getattr(pa, f"uint{bits}")(), integers(bits, signed=False)) for bits in (8, 16, 32)),
    typed(pa.uint64(), integers(64, signed=False), Decimal),
    typed(pa.float16(), st.floats(width=16, allow_nan=False)),
    typed(pa.float32(), st.floats(width=32, allow_nan=False)),
    typed(pa.float64(), st.floats(allow_nan=False)),
    *(typed(kind, SHORT) for kind in (pa.string(), pa.large_string(), pa.string_view())),
    *(typed(kind, st.binary(max_size=5)) for kind in (pa.binary(), pa.large_binary(), pa.binary_view())),
    typed(pa.binary(3), st.binary(min_size=3, max_size=3)),
    typed(pa.date32(), st.dates()),
    typed(pa.date64(), st.dates(date(1700, 1, 1), date(2200, 1, 1))),
    typed(pa.timestamp("s"), NAIVE.map(in_seconds)),
    typed(pa.timestamp("ms"), NAIVE.map(in_milliseconds)),
    typed(pa.timestamp("us"), NAIVE),
    typed(pa.timestamp("ns"), NAIVE),
    *(
        typed(pa.timestamp(unit, zone), NAIVE.map(in_seconds).map(lambda value: value.replace(tzinfo=timezone.utc)))
        for unit, zone in (("s", "UTC"), ("ms", "America/New_York"), ("us", "+05:30"), ("ns", "Europe/Berlin"))
    ),
    typed(pa.time32("s"), st.times().map(in_seconds)),
    typed(pa.time32("ms"), st.times().map(in_milliseconds)),
    typed(pa.time64("us"), st.times()),
    typed(pa.time64("ns"), st.times()),
    *(
        typed(pa.duration(unit), st.integers(-(10**6), 10**6).map(lambda seconds: timedelta(seconds=seconds)))
        for unit in ("s", "ms", "us", "ns")
    ),
    *(
        typed(kind, st.decimals(-99, 99, places=2))
        for kind in (pa.decimal32(5, 2), pa.decimal64(12, 2), pa.decimal128(38, 2), pa.decimal256(38, 2))
    ),
]


def nested(inner: st.SearchStrategy[Typed]) -> st.SearchStrategy[Typed]:
    lists = [pa.list_, pa.large_list, pa.list_view, pa.large_list_view]
    return (
        st.tuples(st.sampled_from(lists), inner).map(lambda found: list_of(*found))
        | inner.map(fixed_list)
        | st.lists(inner, min_size=1, max_size=3).map(struct_of)
        | inner.map(map_of)
    )


def list_of(make: Callable[[pa.DataType], pa.DataType], item: Typed) -> Typed:
    kind, values, become = item
    return typed(
        make(kind), st.lists(values | st.none(), max_size=3), lambda found: [kept(become, one) for one in found]
    )


def fixed_list(item: Typed) -> Typed:
    kind, values, become = item
    pairs = st.lists(values | st.none(), min_size=2, max_size=2)
    return typed(pa.list_(kind, 2), pairs, lambda found: [kept(become, one) for one in found])


def struct_of(items: list[Typed]) -> Typed:
    names = [f"f{number}" for number in range(len(items))]
    kind = pa.struct([(name, one[0]) for name, one in zip(names, items, strict=True)])
    values = st.fixed_dictionaries({name: one[1] | st.none() for name, one in zip(names, items, strict=True)})
    become = {name: one[2] for name, one in zip(names, items, strict=True)}
    return typed(kind, values, lambda found: {name: kept(become[name], value) for name, value in found.items()})


def map_of(item: Typed) -> Typed:
    kind, values, become = item
    entries = st.dictionaries(SHORT, values | st.none(), max_size=3).map(lambda found: list(found.items()))
    return typed(
        pa.map_(pa.string(), kind), entries, lambda found: [(key, kept(become, value)) for key, value in found]
    )


def kept(become: Callable[[Any], Any], value: Any) -> Any:
    return None if value is None else become(value)


COLUMNS = st.recursive(st.sampled_from(SIMPLE), nested, max_leaves=4)


@given(st.data(), st.lists(COLUMNS, min_size=1, max_size=4))
def test_values_stay_what_they_are_in_the_types_of_spark(data: st.DataObject, columns: list[Typed]):
    rows = data.draw(st.integers(0, 4))
    given_ = [data.draw(st.lists(values | st.none(), min_size=rows, max_size=rows)) for _, values, _ in columns]
    names = [f"c{number}" for number in range(len(columns))]
    arrays = [pa.array(values, kind) for (kind, _, _), values in zip(columns, given_, strict=True)]
    batch = pa.RecordBatch.from_arrays(arrays, names)
    start = data.draw(st.integers(0, rows))

    wanted = plain_schema(batch.schema)
    found = plain_batch(batch.slice(start), wanted)

    found.validate(full=True)
    for (_, _, become), before, after in zip(columns, given_, found.columns, strict=True):
        assert after.to_pylist() == [kept(become, one) for one in before[start:]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert arrow_schema(spark_schema(batch.schema)).equals(wanted), "what Spark asks for is what it gets"


def batch_of(column: pa.Array) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([column], ["c"])


def converted(column: pa.Array) -> pa.Array:
    batch = batch_of(column)
    return plain_batch(batch, plain_schema(batch.schema)).column(0)


def test_dictionaries_run_ends_and_extensions_are_laid_out():
    words = pa.array(["a", None, "a"])
    assert converted(words.dictionary_encode()) == words
    assert converted(pa.compute.run_end_encode(words)) == words
    assert converted(pa.ListArray.from_arrays([0, 2, 3], pa.compute.run_end_encode(words))).to_pylist() == [
        ["a", None],
        ["a"],
    ]
    assert converted(pa.ListArray.from_arrays([0, 2, 3], words.dictionary_encode())).to_pylist() == [["a", None], ["a"]]
    assert converted(pa.ExtensionArray.from_storage(pa.json_(), words)) == words
    assert converted(pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"0" * 16], pa.binary(16)))).to_pylist() == [
        b"0" * 16
    ]
    assert converted(pa.ExtensionArray.from_storage(pa.bool8(), pa.array([0, 2], pa.int8()))).to_pylist() == [
        False,
        True,
    ]


def test_intervals_are_structs():
    values = [pa.MonthDayNano([1, -2, 3]), None, pa.MonthDayNano([0, 0, -(10**12)])]
    found = converted(pa.array([None, *values], pa.month_day_nano_interval()).slice(1))
    assert found.to_pylist() == [
        {"months": 1, "days": -2, "nanoseconds": 3},
        None,
        {"months": 0, "days": 0, "nanoseconds": -(10**12)},
    ]


def test_what_is_finer_than_a_microsecond_is_cut_off():
    (found,) = converted(pa.array([1_999], pa.timestamp("ns", "UTC"))).to_pylist()
    assert found == datetime(1970, 1, 1, 0, 0, 0, 1, timezone.utc)
    assert converted(pa.array([[1_999]], pa.list_(pa.time64("ns")))).to_pylist() == [[time(0, 0, 0, 1)]]
    assert converted(pa.array([1_999], pa.duration("ns"))).to_pylist() == [timedelta(microseconds=1)]


@pytest.mark.parametrize(
    "kind",
    [
        pa.decimal256(39, 2),
        pa.decimal128(3, -2),
        pa.dense_union([pa.field("a", pa.int8())]),
        pa.struct([("a", pa.struct([("b", pa.sparse_union([pa.field("a", pa.int8())]))]))]),
        pa.struct([("a", pa.int8()), ("a", pa.int8())]),
        pa.map_(pa.string(), pa.list_(pa.decimal256(39, 2))),
    ],
    ids=str,
)
def test_types_that_spark_does_not_have_are_errors_with_the_name_of_the_column(kind: pa.DataType):
    with pytest.raises(NotForSpark, match="no type for column 'odd'"):
        plain_schema(pa.schema([("fine", pa.int8()), ("odd", kind)]))


def test_two_columns_of_one_name():
    with pytest.raises(NotForSpark, match="Two columns are called 'a'"):
        plain_schema(pa.schema([("a", pa.int8()), ("a", pa.int8())]))


def test_a_value_that_does_not_fit_names_the_column():
    batch = batch_of(pa.array([2**40]))
    with pytest.raises(NotForSpark, match="Column 'c' of type int64 has a value"):
        plain_batch(batch, pa.schema([("c", pa.int32())]))
