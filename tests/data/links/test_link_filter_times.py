"""Files that are chosen by time, at any time that a column can have."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from odfpy.data.link_filter import LinkFilter
from odfpy.data.vocabulary import DEFAULT_VOCABULARY

YEARS = (-1500, 1, 1500, 1970, 2024, 2300, 2600, 9999)


def at(year: int, unit: str) -> int:
    days = (year - 1970) * 365
    return days * 86_400 * {"s": 1, "ms": 1_000, "us": 1_000_000}[unit]


@pytest.mark.parametrize("unit", ["s", "ms", "us"])
@pytest.mark.parametrize(
    ("text", "chosen"),
    [
        ("since=2023-01-01", (2024, 2300, 2600, 9999)),
        ("since=1600-01-01", (1970, 2024, 2300, 2600, 9999)),
        ("until=2300-01-01", (-1500, 1, 1500, 1970, 2024, 2300)),
        ("until=9999-12-31", YEARS),
        ("since=2000-01-01;until=2500-01-01", (2024, 2300)),
    ],
)
def test_no_century_wraps_around(unit: str, text: str, chosen: tuple[int, ...]) -> None:
    times: Any = pa.array([at(year, unit) for year in YEARS] + [None], pa.timestamp(unit, "UTC"))
    mask = LinkFilter.parse(text).mask(DEFAULT_VOCABULARY)
    assert mask is not None
    found = mask(pa.record_batch({"event_time": times})).to_pylist()
    assert [year for year, is_chosen in zip(YEARS, found, strict=False) if is_chosen] == list(chosen)
    assert found[-1] is False
