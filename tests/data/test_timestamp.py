"""Instants: nanoseconds, both ways, from the year 1 to the year 9999."""

from __future__ import annotations

import contextlib
from calendar import isleap
from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from support.chains.values import times

from odfpy.data.timestamp import Timestamp
from odfpy.errors import InvalidValue

UTC = timezone.utc
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LEAST, GREATEST = Timestamp.parse("0001-01-01"), Timestamp.parse("9999-12-31T23:59:59.999999999Z")


# --- Against datetime ------------------------------------------------------------------------------------------------


@given(st.datetimes(timezones=st.just(UTC)))
def test_datetime_both_ways(value: datetime):
    timestamp = Timestamp.from_datetime(value)
    assert timestamp.nanos == (value - EPOCH) // timedelta(microseconds=1) * 1000
    assert timestamp.to_datetime() == value
    assert Timestamp.parse(value.isoformat()) == timestamp


@given(st.datetimes(timezones=st.just(UTC)), st.integers(-1439, 1439))
def test_zones(local: datetime, minutes: int):
    assume(2 <= local.year <= 9998)
    aware = local.replace(tzinfo=timezone(timedelta(minutes=minutes)))
    assert Timestamp.parse(aware.isoformat()) == Timestamp.from_datetime(aware)
    assert Timestamp.parse(aware.isoformat()).to_datetime() == aware


@given(st.datetimes())
def test_without_a_zone_it_is_utc(naive: datetime):
    assert Timestamp.from_datetime(naive) == Timestamp.from_datetime(naive.replace(tzinfo=UTC))
    assert Timestamp.parse(naive.isoformat()) == Timestamp.from_datetime(naive)


@given(times, times)
def test_order_is_that_of_time(first: Timestamp, second: Timestamp):
    assert (first < second) == (first.nanos < second.nanos)
    assert (first < second) == (first.to_ordinal() < second.to_ordinal())


# --- Text ------------------------------------------------------------------------------------------------------------


@given(times)
def test_text_both_ways(timestamp: Timestamp):
    assert Timestamp.parse(str(timestamp)) == timestamp


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("2024-03-01T12:00:00Z", "2024-03-01T12:00:00Z"),
        ("2024-03-01T12:00:00.5Z", "2024-03-01T12:00:00.500Z"),
        ("2024-03-01T12:00:00.000100Z", "2024-03-01T12:00:00.000100Z"),
        ("2024-03-01T12:00:00.123456789Z", "2024-03-01T12:00:00.123456789Z"),
        ("2024-03-01T12:00:00.000000001Z", "2024-03-01T12:00:00.000000001Z"),
        ("2024-03-01t12:00:00z", "2024-03-01T12:00:00Z"),
        ("2024-03-01 12:00:00", "2024-03-01T12:00:00Z"),
        ("2024-03-01 12:00", "2024-03-01T12:00:00Z"),
        ("2024-03-01", "2024-03-01T00:00:00Z"),
        ("  2024-03-01  ", "2024-03-01T00:00:00Z"),
        ("2024-03-01T12:00:00+05:30", "2024-03-01T06:30:00Z"),
        ("2024-03-01T12:00:00-0800", "2024-03-01T20:00:00Z"),
        ("2024-03-01 12:00:00 +00:00", "2024-03-01T12:00:00Z"),
        ("2024-02-29T23:59:59Z", "2024-02-29T23:59:59Z"),
        ("2024-02-29T23:59:59-00:01", "2024-03-01T00:00:59Z"),
        ("1969-12-31T23:59:59.999999999Z", "1969-12-31T23:59:59.999999999Z"),
        ("1900-02-28T00:00:00Z", "1900-02-28T00:00:00Z"),
        ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z"),
        ("9999-12-31T23:59:59.999999999Z", "9999-12-31T23:59:59.999999999Z"),
    ],
)
def test_forms_of_text(text: str, canonical: str):
    assert str(Timestamp.parse(text)) == canonical


@pytest.mark.parametrize(
    "text",
    [
        "", "now", "2024", "2024-03", "2024-3-1", "20240301", "2024-03-01T", "2024-03-01T12", "2024-03-01T12:00:00.Z",
        "2024-03-01T12:00:00.1234567890Z", "2024-03-01T24:00:00Z", "2024-03-01T12:60:00Z", "2024-03-01T12:00:60Z",
        "2024-13-01", "2024-00-01", "2024-02-30", "2023-02-29", "1900-02-29", "2024-04-31", "2024-03-00",
        "2024-03-01T12:00:00+24:00", "2024-03-01T12:00:00+05:60", "2024-03-01T12:00:00+5", "2024-03-01T12:00:00 UTC",
        "2024-03-01Z", "0000-01-01", "10000-01-01", "-2024-03-01", "+2024-03-01", "2024-03-01T12:00:00Z2024",
        "\N{ARABIC-INDIC DIGIT TWO}024-03-01", "202\N{FULLWIDTH DIGIT FOUR}-03-01", "2024-03-01\n12:00", "0001-01-01T00:00:00+00:01", "9999-12-31T23:59:59-00:01",
    ],
)  # fmt: skip
def test_what_is_no_time_is_refused(text: str):
    with pytest.raises(InvalidValue):
        Timestamp.parse(text)


@given(st.text(st.sampled_from("0123456789-+:.TZ "), max_size=40))
def test_random_text_is_read_or_refused(text: str):
    with contextlib.suppress(InvalidValue):
        assert LEAST <= Timestamp.parse(text) <= GREATEST


# --- Ordinal form ----------------------------------------------------------------------------------------------------


@given(times)
def test_ordinal_form_both_ways(timestamp: Timestamp):
    assert Timestamp.from_ordinal(*timestamp.to_ordinal()) == timestamp


@given(times)
def test_ordinal_form_is_that_of_the_calendar(timestamp: Timestamp):
    year, day, seconds, nanos = timestamp.to_ordinal()
    moment = timestamp.to_datetime()
    assert (year, day) == (moment.year, moment.timetuple().tm_yday)
    assert seconds == moment.hour * 3600 + moment.minute * 60 + moment.second
    assert nanos // 1000 == moment.microsecond


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("2024-12-31T00:00:00Z", (2024, 366, 0, 0)),
        ("2023-12-31T23:59:59.999999999Z", (2023, 365, 86_399, 999_999_999)),
        ("1969-12-31T23:59:59.000000001Z", (1969, 365, 86_399, 1)),
        ("2000-02-29T00:00:01Z", (2000, 60, 1, 0)),
        ("1900-03-01T00:00:00Z", (1900, 60, 0, 0)),
        ("0001-01-01T00:00:00Z", (1, 1, 0, 0)),
        ("9999-12-31T00:00:00Z", (9999, 365, 0, 0)),
    ],
)
def test_ordinal_form_of_some_days(text: str, parts: tuple[int, int, int, int]):
    assert Timestamp.parse(text).to_ordinal() == parts
    assert Timestamp.from_ordinal(*parts) == Timestamp.parse(text)


@given(st.integers(1, 9999))
def test_only_leap_years_have_a_day_366(year: int):
    if isleap(year):
        assert str(Timestamp.from_ordinal(year, 366, 0, 0)).endswith("-12-31T00:00:00Z")
    else:
        with pytest.raises(InvalidValue):
            Timestamp.from_ordinal(year, 366, 0, 0)


@pytest.mark.parametrize(
    "parts",
    [
        (0, 1, 0, 0), (10_000, 1, 0, 0), (-(2**31), 1, 0, 0), (2**31 - 1, 1, 0, 0), (2**70, 1, 0, 0), (2024, 0, 0, 0),
        (2024, -1, 0, 0), (2024, 367, 0, 0), (2024, 1, 86_400, 0), (2024, 1, -1, 0), (2024, 1, 0, 10**9),
        (2024, 1, 0, -1), (2024, 1, 2**32 - 1, 2**32 - 1),
    ],
)  # fmt: skip
def test_impossible_parts_are_refused(parts: tuple[int, int, int, int]):
    with pytest.raises(InvalidValue):
        Timestamp.from_ordinal(*parts)


# --- Milliseconds and bounds -----------------------------------------------------------------------------------------


@given(times)
def test_milliseconds_are_rounded_down_also_before_the_epoch(timestamp: Timestamp):
    floor = timestamp.floor_millis()
    assert floor.nanos % 1_000_000 == 0
    assert 0 <= timestamp.nanos - floor.nanos < 1_000_000
    assert Timestamp.from_millis(timestamp.millis) == floor


@pytest.mark.parametrize("nanos", [LEAST.nanos - 1, GREATEST.nanos + 1, -(2**100), 2**100])
def test_out_of_range_is_refused(nanos: int):
    with pytest.raises(InvalidValue, match="out of range"):
        Timestamp(nanos)


def test_the_bounds_themselves_are_fine():
    assert str(Timestamp(LEAST.nanos)) == "0001-01-01T00:00:00Z"
    assert str(Timestamp(GREATEST.nanos)) == "9999-12-31T23:59:59.999999999Z"
    with pytest.raises(InvalidValue):
        Timestamp.from_datetime(datetime.max.replace(tzinfo=timezone(timedelta(hours=-12))))


@given(st.integers(-(2**70), 2**70))
def test_the_nearest_time_is_the_time_itself_within_the_bounds(nanos: int):
    if LEAST.nanos <= nanos <= GREATEST.nanos:
        assert Timestamp.nearest(nanos) == Timestamp(nanos)
    else:
        assert Timestamp.nearest(nanos) == (LEAST if nanos < 0 else GREATEST)


def test_now_is_a_time_of_this_century():
    assert Timestamp.parse("2020-01-01") < Timestamp.now() < Timestamp.parse("2100-01-01")
