"""Durations: as people write them, and as ISO 8601 does."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odfpy.data.duration import Duration
from odfpy.data.timestamp import Timestamp
from odfpy.errors import InvalidValue


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0s", 0),
        ("90s", 90),
        ("30m", 1800),
        ("12h", 43_200),
        ("1d", 86_400),
        ("2w", 1_209_600),
        ("1d12h", 129_600),
        ("1w2d3h4m5s", 788_645),
        ("PT1H", 3600),
        ("PT90M", 5400),
        ("P1D", 86_400),
        ("P1DT12H30M", 131_400),
        ("P2W", 1_209_600),
    ],
)
def test_texts(text: str, seconds: int) -> None:
    assert Duration.parse(text) == Duration(seconds)


@pytest.mark.parametrize(
    "text",
    [
        *("", "1", "d", "1 day", " 1d", "1d\n", "-1d", "1.5h", "1h1d", "1d1d", "1M", "1y", "1D", "1234567d"),
        *("P", "PT", "P1DT", "P1M", "T1H", "pt1h", "1dPT1H", "\u0661h"),
    ],
)
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(InvalidValue, match="Not a duration") as error:
        Duration.parse(text)
    assert error.value.hint == "Write a duration such as 30m, 12h, 1d or PT1H."


@given(st.integers(0, 10**9))
def test_the_short_form_is_read_back(seconds: int) -> None:
    assert Duration.parse(str(Duration(seconds))) == Duration(seconds)


def test_there_is_nothing_before_the_year_1() -> None:
    assert Duration(3600).before(Timestamp.parse("0001-01-01T01:00:00Z")) == Timestamp.parse("0001-01-01")
    assert Duration(3601).before(Timestamp.parse("0001-01-01T01:00:00Z")) is None
