"""Watermark policies: what they say, and that a watermark never goes back whatever happens."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odfpy.data.duration import Duration
from odfpy.data.timestamp import Timestamp
from odfpy.data.watermark import WatermarkPolicy

DAY = 86_400


def at(text: str) -> Timestamp:
    return Timestamp.parse(text)


def policy(lag: str = "0s", idle: str | None = None) -> WatermarkPolicy:
    return WatermarkPolicy(Duration.parse(lag), None if idle is None else Duration.parse(idle))


def test_by_default_it_is_the_greatest_event_time() -> None:
    assert policy().after_rows(None, [at("2024-03-02"), at("2024-03-01")]) == at("2024-03-02")
    assert policy().after_rows(at("2024-03-05"), [at("2024-03-02")]) == at("2024-03-05")
    assert policy().after_rows(None, []) is None


def test_a_lag_keeps_it_behind_the_greatest_event_time() -> None:
    assert policy("1d12h").after_rows(None, [at("2024-03-02")]) == at("2024-02-29T12:00:00Z")
    assert policy("1d").after_rows(at("2024-03-01T12:00:00Z"), [at("2024-03-02")]) == at("2024-03-01T12:00:00Z")
    assert policy("2w").after_rows(None, [at("0001-01-02")]) is None


@pytest.mark.parametrize(
    ("last_rows", "watermark"),
    [
        ("2024-03-10T11:00:01Z", "2024-03-01"),  # not for long enough
        ("2024-03-10T11:00:00.123456789Z", "2024-03-10T11:30:00.123Z"),
        ("2024-03-01T00:00:00Z", "2024-03-10T11:30:00.123Z"),
        (None, "2024-03-01"),  # there never were any
    ],
)
def test_an_idle_source_follows_system_time_less_the_lag(last_rows: str | None, watermark: str) -> None:
    now = at("2024-03-10T12:00:00.123456789Z")
    since = None if last_rows is None else at(last_rows)
    assert policy("30m", idle="1h").when_idle(at("2024-03-01"), since, now) == at(watermark)


def test_without_idle_a_silent_source_stays_where_it_is() -> None:
    assert policy("30m").when_idle(at("2024-03-01"), at("2024-03-01"), at("2024-06-01")) == at("2024-03-01")


# --- Whatever happens ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Happening:
    """A commit at some system time, of rows with these event times; or a look at a source that had nothing."""

    policy: WatermarkPolicy
    waited: int
    event_times: tuple[Timestamp, ...]


durations = st.builds(Duration, st.integers(0, 5 * DAY) | st.integers(0, 10**12))
policies = st.builds(WatermarkPolicy, durations, st.none() | durations)
times = st.builds(Timestamp, st.integers(0, 100 * DAY).map(lambda second: second * 10**9))
happenings = st.builds(Happening, policies, st.integers(0, 2 * DAY), st.lists(times, max_size=3).map(tuple))


@given(st.lists(happenings, max_size=12))
def test_it_never_goes_back_nor_from_set_to_unset(story: list[Happening]) -> None:
    watermark, last_rows, now = None, None, at("1970-02-01")
    for happening in story:
        now = Timestamp(now.nanos + happening.waited * 10**9)
        if happening.event_times:
            moved, last_rows = happening.policy.after_rows(watermark, happening.event_times), now
        else:
            moved = happening.policy.when_idle(watermark, last_rows, now)
        assert watermark is None or (moved is not None and moved >= watermark)
        watermark = moved


@given(policies, st.none() | times, st.lists(times), st.data())
def test_it_is_the_same_however_rows_are_cut_into_commits(
    rule: WatermarkPolicy, before: Timestamp | None, event_times: list[Timestamp], data: st.DataObject
) -> None:
    cut = data.draw(st.integers(0, len(event_times)))
    in_two = rule.after_rows(rule.after_rows(before, event_times[:cut]), event_times[cut:])
    assert rule.after_rows(before, event_times) == in_two
    if event_times:
        assert rule.after_rows(before, [max(event_times)]) == in_two


@given(durations, st.none() | times, times)
def test_an_idle_watermark_is_never_later_than_system_time_less_the_lag(
    lag: Duration, before: Timestamp | None, now: Timestamp
) -> None:
    moved = WatermarkPolicy(lag, Duration()).when_idle(before, Timestamp(0), now)
    assert moved == max((time for time in (before, lag.before(now)) if time is not None), default=None)
