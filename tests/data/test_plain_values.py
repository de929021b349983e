"""Values of data as text: nothing is rounded, nothing is out of range."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.fixtures import KAMU

from odfpy.coordinator.workspace import Workspace
from odfpy.data.rows.plain_values import columns_of, is_number, plain, plain_columns_of
from odfpy.data.timestamp import Timestamp


def values(array: pa.Array) -> list[Any]:
    table = pa.table({"x": array})
    (column,), (plain_column,) = columns_of(table), plain_columns_of(table)
    found = [plain(value) for value in column]
    assert plain_column == found
    return found


@pytest.mark.parametrize(
    ("kind", "counts", "texts"),
    [
        (pa.timestamp("ns", "UTC"), [1, -1, 10**18], [
            "1970-01-01T00:00:00.000000001Z", "1969-12-31T23:59:59.999999999Z", "2001-09-09T01:46:40Z"]),
        (pa.timestamp("us"), [1_500_000], ["1970-01-01T00:00:01.500"]),
        (pa.timestamp("ms", "Europe/Berlin"), [1_000], ["1970-01-01T00:00:01Z"]),
        (pa.timestamp("s", "UTC"), [-62_135_596_800, 253_402_300_799], ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"]),
        (pa.timestamp("s", "UTC"), [2**62], ["4611686018427387904 s from 1970"]),
        (pa.date32(), [0, -719_162, 2**31 - 1], ["1970-01-01", "0001-01-01", "2147483647 days from 1970"]),
        (pa.date64(), [86_400_000], ["1970-01-02"]),
        (pa.time32("s"), [86_399], ["23:59:59"]),
        (pa.time32("ms"), [1], ["00:00:00.001"]),
        (pa.time64("ns"), [1], ["00:00:00.000000001"]),
        (pa.duration("ns"), [1, -1_500_000_000], ["0.000000001s", "-1.500000000s"]),
        (pa.duration("s"), [10**12], ["1000000000000s"]),
    ],
)  # fmt: skip
def test_times_of_every_resolution_and_range(kind: pa.DataType, counts: list[int], texts: list[str]) -> None:
    array = pa.array([*counts, None], kind if not pa.types.is_date(kind) else None)
    if pa.types.is_date(kind):
        array = pa.array([*counts, None], f"int{kind.bit_width}").view(kind)
    assert values(array) == [*texts, None]


def test_other_values() -> None:
    assert values(pa.array([2**63 - 1, None])) == [2**63 - 1, None]
    assert values(pa.array([1.5, float("nan"), float("inf"), float("-inf")])) == [1.5, "nan", "inf", "-inf"]
    assert values(pa.array([1.5, None], pa.float16())) == [1.5, None]
    assert values(pa.array([0.1, 1e38, None, float("nan")], pa.float32())) == [0.1, 1e38, None, "nan"]
    assert values(pa.array([[0.1]], pa.list_(pa.float32()))) == [[0.1]]
    assert values(pa.array([Decimal("1.10")], pa.decimal256(50, 2))) == ["1.10"]
    assert values(pa.array([Decimal(0), Decimal("-1e-10")], pa.decimal128(38, 10))) == ["0.0000000000", "-0.0000000001"]
    assert values(pa.array([b"\x00\xff"])) == ["00ff"]
    assert values(pa.array([True, None])) == [True, None]
    assert values(pa.nulls(2)) == [None, None]
    assert values(pa.array(["a", "b", "a"]).dictionary_encode()) == ["a", "b", "a"]


def test_times_inside_of_other_values() -> None:
    nanos = pa.timestamp("ns", "UTC")
    kind = pa.struct([("at", pa.list_(nanos)), ("by", pa.map_(pa.string(), nanos)), ("odd", pa.map_(pa.int8(), nanos))])
    first = {"at": [1, None], "by": [("a", 1)], "odd": [(7, 1)]}
    array = pa.array([first, None, {"at": None, "by": [], "odd": None}], kind)
    time = "1970-01-01T00:00:00.000000001Z"
    expected = [
        {"at": [time, None], "by": {"a": time}, "odd": [{"key": 7, "value": time}]},
        None,
        {"at": None, "by": {}, "odd": []},
    ]
    expected[2]["odd"] = None  # type: ignore[index]
    assert values(array) == expected
    assert values(array.slice(1)) == expected[1:]
    assert values(pa.array([[1, 2], None], pa.list_(nanos, 2)))[1] is None


@given(st.integers(-62_135_596_800_000, 253_402_300_799_999))
def test_instants_are_written_as_everywhere_else(millis: int) -> None:
    assert values(pa.array([millis], pa.timestamp("ms", "UTC"))) == [str(Timestamp.from_millis(millis))]


@given(
    st.sampled_from(["s", "ms", "us", "ns"]),
    st.sampled_from([None, "UTC", "Europe/Berlin"]),
    st.lists(st.none() | st.integers(-(2**62), 2**62) | st.integers(-(2**36), 2**36), min_size=1, max_size=50),
)
def test_many_instants_are_written_as_each_by_itself(unit: str, zone: str | None, counts: list[int | None]) -> None:
    few = pa.array(counts, pa.timestamp(unit, zone))
    repeats = 1000 // len(counts)
    many = pa.concat_arrays([few] * repeats)
    assert values(many) == repeats * [values(few.slice(number, 1))[0] for number in range(len(counts))]
    assert values(many.slice(1)) == values(many)[1:]


def test_only_numbers_are_numbers() -> None:
    assert is_number([1, None, 2.5, Decimal(1)])
    assert not is_number([None, None])
    assert not is_number([1, "2"])
    assert not is_number([True])


@pytest.mark.parametrize("name", ["types", "nested-nulls", "changes"])
def test_every_type_of_the_reference_becomes_json(name: str, tmp_path: Any) -> None:
    workspace = Workspace.init(tmp_path)
    (result,) = workspace.pull([str(KAMU / name)])
    assert result.error is None
    for column in columns_of(workspace.tail(name, 1000)):
        json.dumps([plain(value) for value in column], allow_nan=False)
