"""Ranges outside of which no row is looked at: they leave out no row that is wanted."""

from __future__ import annotations

import random
from datetime import date, datetime, timedelta, timezone

import pyarrow as pa
import pytest
from pyspark.sql.types import LongType, StructField, StructType, TimestampType

from odfpy.engine.spark.incremental.state.ranges import Range, of_partners, range_of, within
from odfpy.engine.spark.plan.catalyst import Catalyst
from odfpy.engine.spark.process.session import request_session

START = datetime(2024, 1, 1, tzinfo=timezone.utc)
MICROS = 1_704_067_200_000_000


@pytest.mark.parametrize(
    ("values", "found"),
    [
        (pa.array([3, 1, 2]), Range(1, 3)),
        (pa.array([7], pa.int8()), Range(7, 7)),
        (pa.array([START, START + timedelta(seconds=1)]), Range(MICROS, MICROS + 1_000_000)),
        (pa.array([date(2024, 1, 1)]), Range(MICROS, MICROS)),
        (pa.array([1, None]), None),
        (pa.array([], pa.int64()), None),
        (pa.array([1.5, float("nan")]), None),
        (pa.array(["a", "B"]), None),
    ],
)
def test_values_that_are_ordered_alike_everywhere_have_a_range(values, found):
    assert range_of(pa.chunked_array([values])) == found


FACTS = StructType([StructField("k", LongType()), StructField("t", TimestampType()), StructField("n", LongType())])
RATES = StructType(
    [StructField("r", LongType()), StructField("start", TimestampType()), StructField("stop", TimestampType())]
)
CONDITIONS = (
    "k = r and t >= start and t < stop",
    "t between start and stop",
    "k <=> r and start < t",
    "k + 1 >= r and t + interval 2 hours < stop",
    "k = r or t < stop",
    "k > 2 and cast(k as int) = r",
)


@pytest.mark.spark
@pytest.mark.parametrize("condition", CONDITIONS)
def test_rows_with_a_partner_are_in_the_ranges_of_partners(spark, condition):
    dice = random.Random(condition)
    catalyst = Catalyst(request_session(spark))

    def some(values, row):
        return [tuple(dice.choice([None, *values]) if dice.random() < 0.1 else one for one in row()) for _ in range(40)]

    def time():
        return START + timedelta(hours=dice.randrange(50))

    facts = some([0], lambda: (dice.randrange(8), time(), dice.randrange(99)))
    for rates in (some([None], lambda: (dice.randrange(3, 5), time(), time()))[:4], [(None, None, None)], []):
        rows, partners = (
            catalyst.plan(catalyst.spark.createDataFrame(some_rows, schema))
            for some_rows, schema in (
                ([(k, t if isinstance(t, datetime) else None, n) for k, t, n in facts], FACTS),
                (rates, RATES),
            )
        )
        joined = catalyst.dataframe(rows).join(catalyst.dataframe(partners), on=None, how="cross").where(condition)
        asked = next(
            node for node in _plans(catalyst.plan(joined)) if node.getClass().getSimpleName() == "Filter"
        ).condition()
        wanted = catalyst.semi_join(rows, partners, asked)
        near = within(catalyst, rows, of_partners(catalyst, rows, partners, asked))
        found = catalyst.semi_join(near, partners, asked)
        assert sorted(map(str, catalyst.dataframe(found).collect())) == sorted(
            map(str, catalyst.dataframe(wanted).collect())
        )


def _plans(plan):
    yield plan
    children = plan.children()
    for at in range(children.size()):
        yield from _plans(children.apply(at))
