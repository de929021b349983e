"""Pages of memory: large for tasks that add up many groups, small for everything else."""

from __future__ import annotations

import pytest

from odfpy.engine.spark.plan.catalyst import Catalyst
from odfpy.engine.spark.process.calls import calls_of
from odfpy.engine.spark.process.session import SMALL_PAGE, request_session, use_pages
from odfpy.engine.spark.rows.parallelism import Parallelism

pytestmark = pytest.mark.spark


def page(spark):
    return calls_of(spark._jvm).page_bytes()


def test_tasks_of_many_rows_have_large_pages(spark):
    session = request_session(spark)
    parallelism = Parallelism(Catalyst(session), 1_000_000)
    parallelism.set(1_000)
    assert page(spark) == SMALL_PAGE
    parallelism.set(5_000_000)
    assert page(spark) > SMALL_PAGE
    with parallelism.within(1_000):
        assert page(spark) == SMALL_PAGE
    assert page(spark) > SMALL_PAGE


def test_whoever_comes_next_begins_with_small_ones(spark):
    Parallelism(Catalyst(request_session(spark)), rows_in_one_task=1_000_000).set(5_000_000)
    request_session(spark)
    assert page(spark) == SMALL_PAGE


def test_a_task_keeps_room_for_all_of_its_pages(spark):
    java = spark._jvm.java.lang.Runtime.getRuntime()
    use_pages(spark, 1 << 40)
    try:
        assert SMALL_PAGE <= page(spark) <= java.maxMemory() // java.availableProcessors() // 32
    finally:
        use_pages(spark, SMALL_PAGE)


@pytest.mark.parametrize("size", [SMALL_PAGE, 16 * SMALL_PAGE])
def test_groups_are_the_same_with_any_page(size, spark):
    """More groups than one page, or than the map of a task, has room for."""
    session = request_session(spark)
    use_pages(session, size)
    try:
        rows = session.sql(
            "SELECT count(*), sum(n), sum(g), sum(s) FROM (SELECT id % 300000 AS g, count(*) AS n, sum(id) AS s "
            "FROM range(0, 900000, 1, 2) GROUP BY id % 300000)"
        ).collect()
    finally:
        use_pages(session, SMALL_PAGE)
    assert [tuple(row) for row in rows] == [(300_000, 900_000, 299_999 * 150_000, 899_999 * 450_000)]
