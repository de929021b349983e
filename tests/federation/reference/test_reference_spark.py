"""The reference web asked by Spark: the same figures, in frames of an entity and in whole queries."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
from support.federation.reference import ASKED, SECONDS, USERS, oracle, tax_above, tpch

import odfpy.web
from odfpy.federation.demo.documents import GUEST
from odfpy.federation.demo.running import RunningWeb
from odfpy.federation.spark.broadcast import SMALL

pytestmark = [
    pytest.mark.spark,
    pytest.mark.parametrize("relay", ASKED),
    pytest.mark.parametrize("user", USERS),
]


@pytest.fixture(scope="module")
def registered(spark: Any) -> Any:
    from odfpy.federation.spark import register

    register(spark)
    return spark


def asked(spark: Any, web: RunningWeb, relay: str, user: str, sql: str, **more: Any) -> list[Any]:
    """The rows of a query, without those of the relay that never answers."""
    with web.connect(relay, user) as connected, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        frame = odfpy.web.spark_sql(spark, connected, sql, require_complete=False, seconds=SECONDS, **more)
        assert ["offline" in str(one.message) for one in caught] == [True]
        return list(frame.collect())


@pytest.mark.slow_after(1)
def test_each_source_is_a_partition_and_gives_as_many_rows_as_are_wanted(
    registered: Any, web: RunningWeb, relay: str, user: str
) -> None:
    folder = web.folder
    options = {
        "relay": web.locations[relay],
        "cert": str(folder.certificate(user)),
        "key": str(folder.key(user)),
        "ca": str(folder.authorities),
        "filter": tax_above(relay, 3),
        "timeout": str(SECONDS),
        "require-complete": "false",
        "columns": "linenumber",
    }
    reader = registered.read.format("odf-web").options(**options)
    frame = reader.option("limit", "10").load("lineitem")
    assert frame.rdd.getNumPartitions() == 6
    assert frame.count() == (53 if user == GUEST else 54)
    assert reader.option("limit", "10000").load("lineitem").count() == (50_003 if user == GUEST else 50_004)


def test_tpch_q1_over_the_whole_web(registered: Any, web: RunningWeb, relay: str, user: str) -> None:
    rows = asked(registered, web, relay, user, tpch(relay, 1))
    lines = {(row.returnflag, row.linestatus): row for row in rows}
    names = ("sum_qty", "sum_base_price", "sum_disc_price", "sum_charge", "count_order")
    cut = {key: tuple(int(row[name]) for name in names) for key, row in lines.items()}
    assert cut["N", "F"] == (44_855, 61_924_006, 58_991_286, 61_412_425, 1_740)
    assert cut["N", "O"] == (3_714_106, 5_207_661_950, 4_948_827_476, 5_147_237_314, 145_908)
    count = sum(row.count_order for row in rows)
    assert count == (147_648 if user == GUEST else 296_539)
    mean = sum(row.avg_qty * row.count_order for row in rows) / count
    assert mean == pytest.approx(25.4589361183355 if user == GUEST else 25.5228115020284, rel=1e-14)


@pytest.mark.slow_after(2)
def test_tpch_q3_as_duckdb_answers_it_over_the_rows_that_the_user_may_see(
    registered: Any, web: RunningWeb, relay: str, user: str
) -> None:
    small = 0 if relay == "na" else SMALL
    rows = asked(registered, web, relay, user, tpch(relay, 3), small=small)
    wanted = oracle(web, user, tpch("global", 3))
    for name in ("orderkey", "orderdate", "shippriority"):
        assert [row[name] for row in rows] == wanted.column(name).to_pylist()
    assert [row.revenue for row in rows] == pytest.approx(wanted.column("revenue").to_pylist(), rel=1e-12)
