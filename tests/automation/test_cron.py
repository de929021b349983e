"""Times by cron: beside a plain walk, minute by minute, also where the clock changes."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.examples import examples

from odfpy.coordinator.schedules.cron import check_cron, next_time, zone_named
from odfpy.errors import InvalidValue

BERLIN = ZoneInfo("Europe/Berlin")
DAYS = 5


def at(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def utc(seconds: float | None) -> str:
    assert seconds is not None
    return datetime.fromtimestamp(seconds, timezone.utc).isoformat()[:16]


def times(cron: str, zone: str, after: str, count: int) -> list[str]:
    found, now = [], at(after)
    for _ in range(count):
        following = next_time(cron, zone_named(zone), now)
        assert following is not None
        now = following
        found.append(utc(now))
    return found


# --- Beside a plain walk ---------------------------------------------------------------------------------------------

numbers = st.integers


@st.composite
def fields(draw: st.DrawFn) -> tuple[str, set[int], set[int], set[int]]:
    """A cron expression of fixed times, with the minutes, hours and days of the week that it stands for."""
    minutes = draw(st.sets(numbers(0, 59), min_size=1, max_size=3))
    hours = draw(st.sets(numbers(0, 23), min_size=1, max_size=3))
    days = draw(st.one_of(st.just(set(range(7))), st.sets(numbers(0, 6), min_size=1, max_size=6)))
    week = "*" if len(days) == 7 else ",".join(map(str, sorted(days)))
    return f"{_listed(minutes)} {_listed(hours)} * * {week}", minutes, hours, days


def _listed(values: set[int]) -> str:
    return ",".join(map(str, sorted(values)))


def walked(minutes: set[int], hours: set[int], days: set[int], zone: ZoneInfo, start: datetime) -> list[float]:
    """The times of some days, by the clock on the wall: one that is skipped is at the end of the gap, none comes twice."""
    found: set[float] = set()
    first = start.astimezone(zone).replace(tzinfo=None, hour=0, minute=0)
    for minute in range(DAYS * 24 * 60):
        wall = first + timedelta(minutes=minute)
        if wall.minute in minutes and wall.hour in hours and (wall.weekday() + 1) % 7 in days:
            moved = wall
            while moved.replace(tzinfo=zone).astimezone(timezone.utc).astimezone(zone).replace(tzinfo=None) != moved:
                moved += timedelta(minutes=1)  # that minute is not on any clock
            found.add(moved.replace(tzinfo=zone).timestamp())
    return sorted(one for one in found if one > start.timestamp())


@settings(max_examples=examples(50, 150), deadline=None)
@given(
    fields=fields(),
    zone=st.sampled_from(
        ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Sao_Paulo", "Asia/Kolkata"]
    ),
    day=st.sampled_from(
        ["2026-03-07", "2026-03-27", "2026-04-03", "2026-10-02", "2026-10-23", "2026-10-31", "2026-07-01"]
    ),
    minute=numbers(0, 2 * 24 * 60),
)
def test_fixed_times_are_those_of_a_walk_minute_by_minute(
    fields: tuple[str, set[int], set[int], set[int]], zone: str, day: str, minute: int
) -> None:
    cron, minutes, hours, days = fields
    start = datetime.fromisoformat(day).replace(tzinfo=timezone.utc) + timedelta(minutes=minute)
    wanted = walked(minutes, hours, days, ZoneInfo(zone), start)[:20]
    found, now = [], start.timestamp()
    for _ in wanted:
        now = next_time(cron, ZoneInfo(zone), now) or 0.0
        found.append(now)
    assert found == wanted


@settings(max_examples=examples(40, 100), deadline=None)
@given(
    step=st.sampled_from([1, 5, 15, 20, 30]),
    minute=numbers(0, 4 * 24 * 60),
    day=st.sampled_from(["2026-03-27", "2026-10-23"]),
)
def test_each_part_of_an_hour_is_one_of_real_time(step: int, minute: int, day: str) -> None:
    start = (datetime.fromisoformat(day).replace(tzinfo=timezone.utc) + timedelta(minutes=minute)).timestamp()
    for _ in range(50):
        following = next_time(f"*/{step} * * * *", BERLIN, start)
        assert following == start - start % (60 * step) + 60 * step
        start = following


@given(minute=numbers(0, 3 * 24 * 60))
def test_the_next_time_is_always_later(minute: int) -> None:
    start = at("2026-10-24T00:00:00+00:00") + 60 * minute
    for cron in ("30 2 * * *", "0,30 1-3 * * *", "*/7 2 * * *", "15 */2 * * *"):
        assert (next_time(cron, BERLIN, start) or 0) > start


# --- Summer time, in words -------------------------------------------------------------------------------------------


def test_a_time_that_is_skipped_is_at_the_end_of_the_gap() -> None:
    assert times("30 2 * * *", "Europe/Berlin", "2026-03-28T00:00:00+00:00", 3) == [
        "2026-03-28T01:30",
        "2026-03-29T01:00",  # there is no 02:30; it is 03:00 by summer time
        "2026-03-30T00:30",
    ]


def test_a_time_that_comes_twice_counts_once() -> None:
    assert times("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00+00:00", 2) == [
        "2026-10-25T00:30",
        "2026-10-26T01:30",
    ]
    within = utc(next_time("30 2 * * *", BERLIN, at("2026-10-25T01:10:00+00:00")))  # 02:10 for the second time
    assert within == "2026-10-26T01:30"


def test_parts_of_an_hour_that_comes_twice_come_twice() -> None:
    assert times("*/30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00+00:00", 5) == [
        "2026-10-25T00:00", "2026-10-25T00:30", "2026-10-25T01:00", "2026-10-25T01:30", "2026-10-26T01:00",
    ]  # fmt: skip


def test_half_an_hour_of_summer_time_too() -> None:
    assert times("15 2 * * *", "Australia/Lord_Howe", "2026-10-03T00:00:00+00:00", 2) == [
        "2026-10-03T15:30",
        "2026-10-04T15:15",
    ]


# --- What is wrong ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cron", "said"),
    [
        ("61 * * * *", "wrong minute"),
        ("* 24 * * *", "wrong hour"),
        ("* * 32 * *", "wrong day of month"),
        ("* * * 13 *", "wrong month"),
        ("* * * * 8", "wrong day of week"),
        ("* * * *", "4 fields, not 5"),
        ("0 0 * * * *", "6 fields, not 5"),
        ("", "0 fields, not 5"),
        ("0 0 30 2 *", "wrong day of month"),
        ("*/0 * * * *", "wrong minute"),
        ("5-1 * * * *", "wrong minute"),
        ("a b c d e", "wrong minute"),
        ("٣ * * * *", "wrong minute"),
    ],
)
def test_a_wrong_expression_is_told_by_its_field(cron: str, said: str) -> None:
    with pytest.raises(InvalidValue, match=said):
        check_cron(cron)


def test_words_for_expressions_are_told_in_fields() -> None:
    with pytest.raises(InvalidValue) as told:
        check_cron("@daily")
    assert told.value.hint == "Write '0 0 * * *'."


@pytest.mark.parametrize("name", ["Europe/Berln", "", "../../etc/passwd", "Europe", "x" * 5000, "\0"])
def test_an_unknown_time_zone_is_refused(name: str) -> None:
    with pytest.raises(InvalidValue, match="No such time zone"):
        zone_named(name)
