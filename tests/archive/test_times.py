"""Times as people and programs write them."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odfpy.archive.times import FIRST, LAST, iso, parse_time
from odfpy.data.timestamp import Timestamp
from odfpy.errors import InvalidValue

NOON = 1_709_294_400_000
NAIVE = datetime.fromisoformat("2024-03-01T12:00")


@pytest.mark.parametrize(
    "text",
    [
        "2024-03-01T12:00:00Z",
        "2024-03-01T12:00:00",
        "2024-03-01 12:00",
        "2024-03-01T14:00:00+02:00",
        "2024-03-01T12:00:00.000Z",
        "Fri Mar  1 12:00:00 UTC 2024",
        "Fri, 01 Mar 2024 12:00:00 +0000",
        "1 March 2024 12:00",
        "20240301T120000Z",
        "1709294400",
        "1709294400.0",
        "1709294400000",
        " 2024-03-01T12:00:00Z\n",
    ],
)
def test_many_forms_of_one_time(text: str) -> None:
    assert parse_time(text) == NOON


@pytest.mark.parametrize("value", [NOON, NOON / 1000, NAIVE, datetime(2024, 3, 1, 12, tzinfo=timezone.utc)])
def test_numbers_and_datetimes(value: float | datetime) -> None:
    assert parse_time(value) == NOON


def test_a_date_is_its_midnight_in_utc_and_milliseconds_are_kept() -> None:
    assert parse_time("2024-03-01") == NOON - 12 * 3_600_000
    assert parse_time("2015-03-20T00:05:32.345Z") == 1_426_809_932_345


def test_a_time_in_another_zone_is_the_same_instant() -> None:
    zone = timezone(timedelta(hours=-7))
    assert parse_time(datetime(2024, 3, 1, 5, tzinfo=zone)) == NOON


def test_now_is_between_before_and_after() -> None:
    before = Timestamp.now().millis
    assert before <= parse_time("now") <= Timestamp.now().millis


@pytest.mark.parametrize(
    "value",
    [
        "",
        "notaninteger",
        "2024-13-01",
        "2024-02-30",
        "12:99",
        "nan",
        "inf",
        "1e300",
        "-1e308",
        "99999-01-01",
        True,
        float("nan"),
        "yesterday-ish",
        "12:00",
        "March 1",
        "March 2024",
        "Friday",
        "2024-03-01 12:00 PST",
        "2024-03-01 12:00 CET",
        "a" * 10_000,
    ],
)
def test_what_is_no_time_is_refused(value: str) -> None:
    with pytest.raises(InvalidValue):
        parse_time(value)


@pytest.mark.parametrize("value", [10**400, -(10**400), -1e308, float("nan")])
def test_what_is_no_number_of_a_time_is_refused(value: float) -> None:
    with pytest.raises(InvalidValue, match="Not a time"):
        parse_time(value)


@given(st.integers(100_000_000_001, LAST) | st.integers(FIRST, -1_000))
def test_the_text_of_a_time_is_that_time(millis: int) -> None:
    assert parse_time(iso(millis) or "") == millis


def test_no_time_has_no_text() -> None:
    assert iso(None) is None
