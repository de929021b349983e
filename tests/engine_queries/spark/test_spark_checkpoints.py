"""Checkpoints are a cache: with them, without them, and with some of them lost, every pull gives the same slice."""

from __future__ import annotations

import random
from datetime import timedelta

import pyarrow as pa
import pytest
from support.engine.pulls import START, Pulls, random_rows
from support.engine.requests import Source
from support.queries.cases import QUICK, Tuned

pytestmark = pytest.mark.spark

COLUMNS = (pa.field("k", pa.string()), pa.field("v", pa.int64()))
QUERIES = {
    "session": "select session_window.end as event_time, k, count(*) as n from a group by session_window(event_time, '2 hours'), k",
    "outer join": (
        "select a.event_time, a.k, a.v, b.v as w from a left join b on a.k = b.k"
        " and b.event_time >= a.event_time and b.event_time < a.event_time + interval 3 hours"
    ),
    "steps": [
        ("daily", "select window.start as event_time, k, sum(v) as s from a group by window(event_time, '6 hours'), k"),
        (None, "select event_time, k, sum(s) over (partition by k order by event_time) as total from daily"),
    ],
}
NEVER_ASKS = ("steps",)
"""Late rows are added to partial results (see also `test_spark_groups.py`)."""


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("name", QUERIES)
def test_a_pull_gives_the_same_with_and_without_a_checkpoint(spark, tmp_path, name):
    dice = random.Random(name)
    sources = [Source(tmp_path, alias, COLUMNS) for alias in ("a", "b")]
    sources = sources if "join" in name else sources[:1]
    kept = Pulls(Tuned(spark, **QUICK), tmp_path / "kept", QUERIES[name])
    fresh = Pulls(Tuned(spark, **QUICK), tmp_path / "fresh", QUERIES[name])
    checkpoint, watermark = None, None
    for number in range(3):
        is_late = number == 1
        starts = [source.end for source in sources]
        for source in sources:
            earlier = [] if number else random_rows(dice, 0, late=False)
            source.add(earlier + random_rows(dice, number * 6 + 6, late=is_late))
        now = str(START + timedelta(hours=number * 6 + 11)).replace(" ", "T")

        def inputs(*, history, starts=starts, before=watermark, now=now):
            return tuple(
                source.input(start, watermark=now, prev_watermark=before, history=history)
                for source, start in zip(sources, starts, strict=True)
            )

        before = kept.asked
        found, checkpoint = kept.pull(number, inputs, checkpoint)
        assert (kept.asked > before) == (is_late and name not in NEVER_ASKS)
        assert not number or found == fresh.pull(number, inputs, None)[0]  # the first one has no checkpoint anyway
        watermark = now
    assert fresh.asked == 2
