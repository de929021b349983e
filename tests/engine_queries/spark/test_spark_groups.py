"""Groups that are remembered by partial results: as if all of their rows were there."""

from __future__ import annotations

import random
from datetime import datetime, timedelta, timezone
from decimal import Decimal

import pyarrow as pa
import pytest
from support.engine.pulls import Pulls
from support.engine.requests import Source
from support.queries.cases import QUICK, Tuned

pytestmark = pytest.mark.spark

START = datetime(2024, 1, 1, tzinfo=timezone.utc)
COLUMNS = (
    pa.field("k", pa.string()),
    pa.field("v", pa.int64()),
    pa.field("d", pa.float64()),
    pa.field("m", pa.decimal128(12, 2)),
)
ADDED = "count(*) as n, count(d) as nd, sum(v) as v, avg(v) as av, sum(d) as d, avg(d) as ad, sum(m) as m"
VALUES = "min(d) as least, max(m) as most, bool_or(v > 3) as some"
WINDOW = "window(event_time, '6 hours')"
QUERIES = {
    "added up by window": f"select window.end as event_time, k, {ADDED} from a group by {WINDOW}, k",
    "values by key": f"select max(event_time) as event_time, k, {ADDED}, {VALUES} from a group by k",
    "values by window": f"select window.end as event_time, k, {VALUES} from a group by {WINDOW}, k",
    "one of all": f"select timestamp '2024-01-01' as event_time, {ADDED} from a",
    "distinct": "select distinct event_time, k from a",
    "added up by key": "select timestamp '2024-01-01' as event_time, k, count_if(v > 4) as c, "
    "sum(d) filter (where k = 'x') as d, avg(v) as a from a group by k",
}
ODD = (float("inf"), float("-inf"), float("nan"), -0.0, 1e300, 1e-300, 0.1, None)
MONEY = (Decimal("0.01"), Decimal("-9999999999.99"), None)


class Changelog:
    """Random rows, and what takes some of them away again."""

    def __init__(self, name):
        self.dice = random.Random(name)
        self.there = []

    def row(self, hour):
        time = START + timedelta(hours=hour, minutes=self.dice.randrange(60))
        number = self.dice.choice((None, 1 << 55, -3, *range(6)))
        double = self.dice.choice((*ODD, self.dice.uniform(-5, 5)))
        return time, self.dice.choice("xy"), number, double, self.dice.choice((*MONEY, Decimal(self.dice.randrange(9))))

    def added(self, first_hour, count=10):
        rows = [self.row(self.dice.randrange(max(0, first_hour - 9), first_hour + 6)) for _ in range(count)]
        self.there += rows
        return [("+A", *row) for row in rows]

    def retracted(self):
        self.dice.shuffle(self.there)
        gone = [self.there.pop() for _ in range(len(self.there) // 2)]
        return [("-R", *row) for row in gone]


def inputs_of(source, start, watermark, prev_watermark):
    def inputs(*, history):
        return (source.input(start, watermark=watermark, prev_watermark=prev_watermark, history=history),)

    return inputs


def at(hours):
    return str(START + timedelta(hours=hours)).replace(" ", "T")


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("name", QUERIES)
def test_what_is_kept_gives_what_all_rows_give(spark, tmp_path, name):
    changelog, source = Changelog(name), Source(tmp_path, "a", COLUMNS)
    kept, fresh = (Pulls(Tuned(spark, **QUICK), tmp_path / folder, QUERIES[name]) for folder in ("kept", "fresh"))
    checkpoint, watermark = None, None
    for number in range(3):
        start = source.end
        rows = changelog.added(6 * number)
        source.add(rows + changelog.retracted() if number == 1 else rows)
        inputs = inputs_of(source, start, at(6 * number + 5), watermark)
        found, checkpoint = kept.pull(number, inputs, checkpoint)
        if number:  # one with a retraction, and one after it
            assert found == fresh.pull(number, inputs, None)[0]
        watermark = at(6 * number + 5)
    assert fresh.asked == 2
    # Values are not known by what is kept until one is taken away.
    assert kept.asked == (1 if "values" in name else 0)


def test_windows_that_are_not_correctable_any_more_are_not_kept(spark, tmp_path):
    changelog, source = Changelog("forgotten"), Source(tmp_path, "a", COLUMNS)
    query = (
        f"select /*+ correctable('3h') */ window.end as event_time, count(*) as n, sum(v) as v from a group by {WINDOW}"
    )
    kept, fresh = (Pulls(Tuned(spark, **QUICK), tmp_path / folder, query) for folder in ("kept", "fresh"))
    checkpoint, watermark, groups = None, None, []
    for number in range(5):
        start = source.end
        source.add(changelog.added(6 * number, 12), watermark)
        inputs = inputs_of(source, start, at(6 * number + 5), watermark)
        found, checkpoint = kept.pull(number, inputs, checkpoint)
        assert number < 4 or found == fresh.pull(number, inputs, None)[0]
        groups.append(kept.num_kept(number))
        watermark = at(6 * number + 5)
    assert kept.asked == 0
    assert max(groups) <= 3


def test_all_rows_are_taken_away_again(spark, tmp_path):
    changelog, source = Changelog("all"), Source(tmp_path, "a", COLUMNS)
    pulls = Pulls(Tuned(spark, **QUICK), tmp_path / "pulls", QUERIES["values by key"])
    rows = changelog.added(6)
    source.add(rows)
    _, checkpoint = pulls.pull(0, inputs_of(source, 0, at(5), None), None)
    source.add([("-R", *row[1:]) for row in rows])
    found, checkpoint = pulls.pull(1, inputs_of(source, len(rows), at(5), at(5)), checkpoint)
    assert found is not None
    start = source.end
    source.add(rows[:1])
    assert pulls.pull(2, inputs_of(source, start, at(5), at(5)), checkpoint)[0] is not None
    assert pulls.rows(2)[0]["n"] == 1


def test_a_retraction_of_what_is_not_there_counts_against_its_group(spark, tmp_path):
    """Until what it retracts is there: the result does not depend on what comes first."""
    source = Source(tmp_path, "a", COLUMNS)
    pulls = Pulls(
        spark, tmp_path / "pulls", "select timestamp '2024-01-01' as event_time, k, sum(v) as v from a group by k"
    )
    kept, gone = ((START, "x", value, None, None) for value in (3, 4))
    found = []
    checkpoint = None
    for number, row in enumerate([("+A", *kept), ("-R", *gone), ("+A", *gone)]):
        source.add([row])
        _, checkpoint = pulls.pull(number, inputs_of(source, number, at(5), at(5) if number else None), checkpoint)
        found.append([(row["op"], row["v"]) for row in pulls.rows(number)])
    assert found == [[(0, 3)], [(1, 3)], [(0, 3)]]
