"""What is kept follows what can still matter, and gives the same as the whole history."""

from __future__ import annotations

import random
from datetime import timedelta

import pyarrow as pa
import pytest
from support.engine.pulls import START, Pulls, random_rows
from support.engine.requests import Source
from support.queries.cases import QUICK, Tuned

from odfpy.dataset.transform import TemporalTable
from odfpy.engine.checkpoint import read_manifest

pytestmark = pytest.mark.spark

COLUMNS = (pa.field("k", pa.string()), pa.field("v", pa.int64()))
FIRST = {
    "row_number": "select * from (select *, row_number() over (partition by k order by v desc) as n from a) where n <= 2",
    "rank": "select * from (select *, rank() over (partition by k order by v desc) as n from a) where 3 > n and v > 5",
    "limit": "select event_time, k, v from a order by v desc limit 3",
}


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("name", FIRST)
def test_the_first_rows_are_all_that_is_kept_until_one_is_taken_back(spark, tmp_path, name):
    dice = random.Random(name)
    source = Source(tmp_path, "a", COLUMNS)
    kept, fresh = (Pulls(Tuned(spark, **QUICK), tmp_path / one, FIRST[name]) for one in ("kept", "fresh"))
    there = [("+A", START, "x", 50), ("+A", START, "y", 50)]
    never = ("-R", START, "x", 1000)
    pulls = [
        [*there, *random_rows(dice, 10, late=False)],
        random_rows(dice, 11, late=False),
        [("-R", *there[0][1:]), never, *random_rows(dice, 12, late=False)],
        [("+A", *never[1:]), *random_rows(dice, 13, late=False)],
        random_rows(dice, 14, late=True),
    ]
    checkpoint = None
    for number, rows in enumerate(pulls):
        start = source.end
        source.add(rows)

        def inputs(*, history, start=start):
            return (source.input(start, history=history),)

        before = kept.asked
        found, checkpoint = kept.pull(number, inputs, checkpoint)
        assert (kept.asked > before) == (number == 2)
        assert not number or found == fresh.pull(number, inputs, None)[0]  # the first one has no checkpoint anyway
    assert 0 < num_kept(checkpoint) < 24


VERSIONS = (
    "select a.event_time, a.k, a.v, b.v as w from a left join b"
    " on a.k = b.k and a.event_time >= b.valid_from and a.event_time < b.valid_to"
)


def test_of_a_temporal_table_that_only_grows_what_is_in_force_is_all_that_is_kept(spark, tmp_path):
    dice = random.Random(0)
    sources = [Source(tmp_path, alias, COLUMNS) for alias in ("a", "b")]
    table = (TemporalTable("b", ("k",)),)
    kept, fresh = (Pulls(Tuned(spark, **QUICK), tmp_path / one, VERSIONS, temporal=table) for one in ("kept", "fresh"))
    checkpoint, watermark, sizes = None, None, []
    for number in range(4):
        starts = [source.end for source in sources]
        for source in sources:
            source.add(random_rows(dice, number * 6 + 6, late=number == 1 and source.alias == "b"))
        if number == 2:
            sources[1].add([("-R", START, "x", 1000)])
        now = str(START + timedelta(hours=number * 6 + 12)).replace(" ", "T")

        def inputs(*, history, starts=starts, before=watermark, now=now):
            return tuple(
                source.input(start, watermark=now, prev_watermark=before, history=history)
                for source, start in zip(sources, starts, strict=True)
            )

        before = kept.asked
        found, checkpoint = kept.pull(number, inputs, checkpoint)
        assert (kept.asked > before) == (number in (1, 2))
        if number >= 2:
            assert found == fresh.pull(number, inputs, None)[0]
        sizes.append(num_kept(checkpoint, "block-2-"))
        watermark = now
    assert sizes == [3, 3, 8 * 3 + 3, 8 * 4 + 3]


def num_kept(checkpoint, beginning=""):
    return sum(rows.count for rows in read_manifest(checkpoint).rows if rows.name.startswith(beginning))
