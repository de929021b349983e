"""Plain values become again what they were, whatever their type."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from odfpy.data.rows.from_plain import array_of
from odfpy.errors import InvalidValue
from odfpy.query.wire.layouts import DataFormat, laid_out

POINT = pa.struct([pa.field("x", pa.int8()), pa.field("y", pa.list_(pa.string()))])
VALUES: list[tuple[pa.DataType, list[Any]]] = [
    (pa.null(), [None, None]),
    (pa.bool_(), [True, None, False]),
    (pa.int8(), [-128, None, 127]),
    (pa.uint64(), [2**64 - 1, 0]),
    (pa.float32(), [0.1, None, float("inf"), -0.0]),
    (pa.float64(), [1e300, float("-inf"), None]),
    (pa.decimal128(38, 10), [Decimal("-12345678901234567890.0123456789"), None]),
    (pa.decimal256(76, 2), [Decimal("1" * 70 + ".25")]),
    (pa.string(), ["", None, "žluťoučký\n\0"]),
    (pa.binary(), [b"", b"\x00\xff", None]),
    (pa.binary(2), [b"ab", None]),
    (pa.date32(), [date(1, 1, 1), date(9999, 12, 31), None]),
    (pa.list_(pa.int32()), [[], None, [1, None], [2]]),
    (pa.list_(pa.list_(pa.string())), [[["a"], None], [[]], None]),
    (pa.list_(pa.int64(), 2), [[1, 2], None, [3, None]]),
    (POINT, [{"x": 1, "y": ["a", None]}, None, {"x": None, "y": None}]),
    (pa.list_(POINT), [[{"x": 1, "y": []}], None, []]),
    (pa.map_(pa.string(), pa.int32()), [[("a", 1), ("b", None)], None, []]),
    (pa.map_(pa.int64(), POINT), [[(1, {"x": 2, "y": ["z"]})], None]),
]
COUNTED = [
    *(pa.timestamp(unit, zone) for unit in ("s", "ms", "us", "ns") for zone in (None, "UTC")),
    *(pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns")),
    *(pa.duration(unit) for unit in ("s", "ms", "us", "ns")),
]


def there_and_back(array: pa.Array, layout: DataFormat) -> pa.Array:
    rows = laid_out(pa.table({"c": array}), layout)
    return array_of([row["c"] if isinstance(row, dict) else row[0] for row in rows], array.type)


@pytest.mark.parametrize("layout", [DataFormat.ARRAY_OF_ARRAYS, DataFormat.ARRAY_OF_STRUCTURES])
@pytest.mark.parametrize(("kind", "values"), VALUES, ids=lambda value: str(value)[:40])
def test_values(kind: pa.DataType, values: list[Any], layout: DataFormat) -> None:
    array = pa.array(values, kind)
    assert there_and_back(array, layout).equals(array)
    assert there_and_back(array.slice(1), layout).equals(array.slice(1))


@pytest.mark.parametrize("kind", COUNTED, ids=str)
def test_times(kind: pa.DataType) -> None:
    counts = [0, 1, None, 86_399]
    if not pa.types.is_time(kind):
        counts += [-1, -86_401, 2**40]
    array = pa.array(counts, pa.int64()).cast(pa.int32() if kind.bit_width == 32 else pa.int64()).view(kind)
    assert there_and_back(array, DataFormat.ARRAY_OF_ARRAYS).equals(array)


def test_times_that_no_calendar_has() -> None:
    array = pa.array([2**62, -(2**62)], pa.int64()).view(pa.timestamp("s", "UTC"))
    assert there_and_back(array, DataFormat.ARRAY_OF_ARRAYS).equals(array)
    days = pa.array([2**30], pa.int32()).view(pa.date32())
    assert there_and_back(days, DataFormat.ARRAY_OF_ARRAYS).equals(days)


@pytest.mark.parametrize(
    ("kind", "value"), [(pa.int8(), 300), (pa.timestamp("ms"), "soon"), (pa.binary(), "xy"), (POINT, 3)]
)
def test_values_of_another_type_are_refused(kind: pa.DataType, value: Any) -> None:
    with pytest.raises((InvalidValue, ValueError, TypeError, ArithmeticError, pa.ArrowException)):
        array_of([value], kind)
