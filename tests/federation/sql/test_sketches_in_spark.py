"""Estimates that are put together in Spark: the same as those of DataFusion."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from support.federation.answers import answer_of, answered, rows_of
from support.federation.worlds import Hop, Source, Step, World

from odfpy.engine.frames import spark_frame
from odfpy.federation.sql.split import split

pytestmark = pytest.mark.spark

SCHEMA = pa.schema([("k", pa.int64()), ("n", pa.int64()), ("t", pa.string()), ("x", pa.float64())])
SAME = Hop("e", SCHEMA, {one.name: (one.name, Step("{v}", lambda value: value, one.type)) for one in SCHEMA})


@pytest.fixture(scope="module")
def world() -> World:
    rows = [{"k": at % 3, "n": at // 2, "t": f"text {at % 50}", "x": at % 4 / 2} for at in range(9_000)]
    overlapping = (rows[:6_000], rows[3_000:], [{"k": None, "n": None, "t": None, "x": None}])
    return World({"e": SCHEMA}, {"e": [Source((SAME,), tuple(one), ((None, None),)) for one in overlapping]})


@pytest.mark.parametrize(
    "question",
    [
        "SELECT {0}(n) AS n FROM e",
        "SELECT k, {0}(n) AS n, count(*) AS c, avg(n) AS a FROM e GROUP BY k HAVING {0}(n) >= 0 ORDER BY k",
        "SELECT {0}(n) AS n, {0}(t) FILTER (WHERE k = 1) AS t, {0}(x) AS x, count(DISTINCT k) AS k, sum(n) AS s FROM e",
        "SELECT {0}(n) AS n FROM e WHERE k > 9",
    ],
)
def test_spark_puts_the_same_estimates_together(spark: Any, world: World, question: str) -> None:
    parts = split(question.format("approx_count_distinct"), world.entities, "spark")
    for name, fragment in parts.fragments.items():
        moved = pa.concat_tables([answer_of(source, fragment) for source in world.sources["e"]])
        spark_frame(moved, spark).createOrReplaceTempView(name)
    found = spark.sql(parts.rest)
    own = spark.createDataFrame([(1,)], "n BIGINT").selectExpr("approx_count_distinct(n) AS n")
    assert found.schema["n"].dataType == own.schema["n"].dataType
    rows = rows_of(found.toArrow())
    for name in parts.fragments:  # other tests see what is left in the session
        spark.catalog.dropTempView(name)
    assert rows == rows_of(answered(world, question.format("approx_distinct")).table)
