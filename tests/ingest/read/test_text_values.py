"""From text to typed values: exact, or not at all."""

from __future__ import annotations

import math
import struct
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odfpy.ingest.read.text import CastFailed, first_unfit, parse_texts

NANOS = pa.timestamp("ns", "UTC")
MILLIS = pa.timestamp("ms", "UTC")
MICROS = pa.timestamp("us", "UTC")
SECONDS = pa.timestamp("s", "UTC")


def utc(*args: int) -> datetime:
    return datetime(*args, tzinfo=timezone.utc)


FITS = [
    (pa.int64(), "1", 1),
    (pa.int64(), "-9223372036854775808", -(2**63)),
    (pa.int64(), "+7", 7),
    (pa.int64(), "007", 7),
    (pa.int8(), "-128", -128),
    (pa.uint8(), "255", 255),
    (pa.uint64(), "18446744073709551615", 2**64 - 1),
    (pa.float64(), "1.1", 1.1),
    (pa.float64(), "-0.0", -0.0),
    (pa.float64(), "1e10", 1e10),
    (pa.float64(), "+.5", 0.5),
    (pa.float64(), "inf", math.inf),
    (pa.float64(), "-Infinity", -math.inf),
    (pa.float64(), "1e-400", 0.0),
    (pa.float32(), "1.1", 1.100000023841858),
    (pa.float16(), "1.5", 1.5),
    (pa.decimal128(10, 2), "1.5", Decimal("1.50")),
    (pa.decimal128(10, 2), "-2.25", Decimal("-2.25")),
    (pa.decimal128(10, 2), "1e2", Decimal("100.00")),
    (pa.decimal128(10, 2), "1500e-3", Decimal("1.50")),
    (pa.decimal128(10, 2), "1.5000", Decimal("1.50")),
    (pa.decimal128(10, 2), "1." + "0" * 60, Decimal("1.00")),
    (pa.decimal128(10, 2), "0" * 60 + "1", Decimal("1.00")),
    (pa.decimal128(10, 2), "0e999", Decimal("0.00")),
    (pa.decimal128(10, 2), "99999999.99", Decimal("99999999.99")),
    (pa.decimal128(38, 0), "9" * 38, Decimal("9" * 38)),
    (pa.decimal128(38, 38), "-000.25", Decimal("-0.25")),
    (pa.decimal128(38, 36), "99.5", Decimal("99.5")),
    (pa.decimal128(5, -2), "12300", Decimal("1.23E+4")),
    (pa.decimal256(50, 2), "1e40", Decimal("1e40")),
    (pa.bool_(), "true", True),
    (pa.bool_(), "FALSE", False),
    (pa.date32(), "2024-02-29", date(2024, 2, 29)),
    (pa.date32(), "0001-01-01", date(1, 1, 1)),
    (pa.date32(), "9999-12-31", date(9999, 12, 31)),
    (pa.time32("ms"), "12:34:56.789", time(12, 34, 56, 789000)),
    (pa.time32("ms"), "12:34:56.789000", time(12, 34, 56, 789000)),
    (pa.time32("s"), "12:34", time(12, 34)),
    (pa.time64("us"), "23:59:59.999999", time(23, 59, 59, 999999)),
    (MILLIS, "2024-01-01T12:00:00+02:00", utc(2024, 1, 1, 10)),
    (MILLIS, "2024-01-01 12:00:00", utc(2024, 1, 1, 12)),
    (MILLIS, "1969-12-31T23:59:59.9999Z", utc(1969, 12, 31, 23, 59, 59, 999000)),
    (MILLIS, "2024-01-01T00:00:00.123456789123Z", utc(2024, 1, 1, 0, 0, 0, 123000)),
    (MILLIS, "9999-12-31T23:59:59.999999999Z", utc(9999, 12, 31, 23, 59, 59, 999000)),
    (MICROS, "2024-01-01T00:00:00.123456789Z", utc(2024, 1, 1, 0, 0, 0, 123456)),
    (SECONDS, "2024-01-01T00:00:01.0009Z", utc(2024, 1, 1, 0, 0, 1)),
    (pa.duration("ms"), "-5", timedelta(milliseconds=-5)),
    (pa.binary(), "00ff", b"\x00\xff"),
    (pa.binary(2), "00ff", b"\x00\xff"),
    (pa.string(), " as it is ", " as it is "),
]

DOES_NOT_FIT = [
    (
        pa.int64(),
        ["", " 1", "1 ", "1.0", "1.5", "1e2", "0x1F", "+0x10", "1_000", "9223372036854775808", "-", "one", "\u0661"],
    ),
    (pa.int8(), ["128", "0xFF"]),
    (pa.uint8(), ["-1", "256"]),
    (pa.float64(), ["", " 1", "1,5", "1e400", "-1e400", "1d", "0x1p3", "-nan", "nan(1)", "e5", "infinite"]),
    (pa.float32(), ["1e39", "3.4028236e38"]),
    (pa.float16(), ["65520"]),
    (pa.decimal128(10, 2), ["1.005", "1e-3", "1e-77", "1e-1000000000", "1e1000000000", "0e9999999999", "1e8", "nan"]),
    (pa.decimal128(38, 38), ["40130", "-61158794", "1", "0007.0"]),
    (pa.decimal128(38, 6), ["+9945463135140383919802278428148553270"]),
    (pa.decimal256(75, 60), ["842376565276402672353739.0"]),
    (pa.decimal128(10, 2), ["", " 1", ".", "1e", "100000000", "0." + "0" * 60 + "1", "1" * 200, "1_0"]),
    (pa.bool_(), ["", "1", "0", "yes", "t", " true"]),
    (pa.date32(), ["2024-02-30", "2024-1-5", "20240105", "2024-01-05T00:00:00", "0000-01-01", "10000-01-01"]),
    (pa.time32("ms"), ["12", "24:00:00", "12:34:56.7891", "12:34:56Z", "1:2:3", "23:59:60"]),
    (MILLIS, ["1704110400", "now", "2024-01-01T", "9999-12-31T23:59:59-01:00", "0001-01-01T00:00:00+01:00"]),
    (SECONDS, ["2024-01-01T00:00:00.001Z"]),
    (NANOS, ["2300-01-01T00:00:00Z"]),
    (pa.duration("ms"), ["1.5"]),
    (pa.binary(), ["0", "0g", "0x00", "00 ff"]),
    (pa.binary(2), ["00", "000000"]),
    (pa.null(), ["", "x"]),
]


@pytest.mark.parametrize(("wanted", "text", "value"), FITS, ids=str)
def test_text_gives_the_value(wanted: pa.DataType, text: str, value: Any):
    array = parse_texts(pa.array([text, None]), wanted)
    assert array.type == wanted
    assert array.to_pylist() == [value, None]
    if isinstance(value, float):
        assert math.copysign(1, array[0].as_py()) == math.copysign(1, value)


@pytest.mark.parametrize(
    ("wanted", "text"), [(wanted, text) for wanted, texts in DOES_NOT_FIT for text in texts], ids=str
)
def test_text_does_not_fit(wanted: pa.DataType, text: str):
    with pytest.raises(CastFailed):
        parse_texts(pa.array([text]), wanted)


def test_nan_has_one_bit_pattern():
    (value,) = parse_texts(pa.array(["NaN"]), pa.float64()).to_pylist()
    assert struct.pack(">d", value).hex() == "7ff8000000000000"


def test_nanoseconds_are_kept_where_the_type_has_them():
    (value,) = parse_texts(pa.array(["2024-01-01T00:00:00.123456789Z"]), NANOS).cast(pa.int64()).to_pylist()
    assert value % 10**9 == 123456789


def test_a_zone_of_the_type_does_not_change_the_instant():
    texts = pa.array(["2024-01-05T00:00:01Z", "2024-01-05T00:00:01"])
    there = parse_texts(texts, pa.timestamp("ms", "America/Vancouver"))
    assert there.cast(pa.int64()).to_pylist() == [1704412801000, 1704412801000]


def test_first_text_that_does_not_fit_is_found():
    texts = pa.array(["1", None, "2", "x", "3", "y"])
    assert first_unfit(texts, lambda part: parse_texts(part, pa.int64())) == 3


MOMENTS = st.sampled_from(
    [
        "2024-01-01",
        "2024-01-01T12",
        "2024-01-01T12:30",
        "2024-01-01T12:30:00Z",
        "2024-01-01 12:30:00.5",
        "2024-01-01T12:30:00.123456+02:00",
        "2024-01-01T12:30:00.123456789",
        "2024-01-01T12:30:00 Z",
        "1500-01-01T00:00:00.0000001Z",
        "2024-13-01",
        "nonsense",
        None,
    ]
)
NUMBERS = st.sampled_from(
    ["1", "+1", "-0", "0x1", "1e2", "1e-77", "1.5", "1.005", "inf", "1e400", "nan", "", "007", None]
)


@given(texts=st.lists(MOMENTS, max_size=6), wanted=st.sampled_from([SECONDS, MILLIS, MICROS, NANOS]))
def test_a_time_fits_or_not_whatever_stands_beside_it(texts: list[str | None], wanted: pa.DataType):
    check_each_alone(texts, wanted)


@given(
    texts=st.lists(NUMBERS, max_size=6),
    wanted=st.sampled_from([pa.int64(), pa.float64(), pa.float32(), pa.decimal128(10, 2), pa.bool_()]),
)
def test_a_number_fits_or_not_whatever_stands_beside_it(texts: list[str | None], wanted: pa.DataType):
    check_each_alone(texts, wanted)


def check_each_alone(texts: list[str | None], wanted: pa.DataType) -> None:
    def alone(text: str | None) -> str:
        return parse_texts(pa.array([text], pa.string()), wanted).to_pylist().__repr__()

    try:
        together = [repr([value]) for value in parse_texts(pa.array(texts, pa.string()), wanted).to_pylist()]
    except CastFailed:
        with pytest.raises(CastFailed):
            [alone(text) for text in texts]
    else:
        assert together == [alone(text) for text in texts]


@given(st.lists(st.decimals(allow_nan=False, allow_infinity=False, places=3, min_value=-(10**7), max_value=10**7)))
def test_decimals_come_back_in_any_notation(values: list[Decimal]):
    for texts in ([str(v) for v in values], [f"{v:e}" for v in values], [f"{v:f}000" for v in values]):
        assert parse_texts(pa.array(texts, pa.string()), pa.decimal128(12, 3)).to_pylist() == values


@given(st.lists(st.floats()))
def test_floats_come_back_bit_by_bit(values: list[float]):
    parsed = parse_texts(pa.array([repr(value) for value in values], pa.string()), pa.float64()).to_pylist()
    assert list(map(repr, parsed)) == list(map(repr, values))


@given(st.lists(st.integers(-(2**63), 2**63 - 1)))
def test_integers_come_back(values: list[int]):
    assert parse_texts(pa.array(list(map(str, values)), pa.string()), pa.int64()).to_pylist() == values
