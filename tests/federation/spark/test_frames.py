"""Spark's source `odf-web` and `odfpy.web.spark_sql`, over real relays."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.federation.served import NA, ServedRelay, ServedWeb, linked_web, served_web

import odfpy.web
from odfpy.federation.authority import Issued
from odfpy.federation.relay.errors import IncompleteAnswer
from odfpy.federation.spark.broadcast import SMALL

pytestmark = pytest.mark.spark

ROWS = [
    (1, 10.5, "N"),
    (2, 20.5, "R"),
    (3, 7.25, "N"),
    (10, 15.0, "N"),
    (11, 9.0, "R"),
    (12, None, "N"),
    (20, 300.0, "N"),
]
QUERIES = [
    "SELECT flag, count(*) AS n, sum(price) AS s, avg(price) AS a FROM item GROUP BY flag ORDER BY flag",
    "SELECT a.flag, count(*) AS n, max(b.price) AS m FROM item a JOIN item b ON a.flag = b.flag WHERE b.id < 12 GROUP BY 1 ORDER BY 1",
    "SELECT DISTINCT flag FROM item ORDER BY flag",
    "SELECT id, '{braces} f1' AS word FROM item ORDER BY price DESC NULLS LAST LIMIT 2",
    "SELECT count(*) AS n, sum(price) AS s FROM item WHERE id > 1000",
    "SELECT 1 + 1 AS two",
]


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedWeb]:
    """na and apac ask global, global asks both; prices are percents at global. ann sees all rows, but at apac."""
    with linked_web(tmp_path_factory.mktemp("web"), apac=True) as made:
        yield made


@pytest.fixture(scope="module")
def ann(web: ServedWeb) -> Issued:
    return web.known_user("ann")


@pytest.fixture(scope="module")
def options(web: ServedWeb, ann: Issued, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return options_of(web, ann, web.relays["na"], tmp_path_factory.mktemp("keys"))


def options_of(web: ServedWeb, issued: Issued, relay: ServedRelay, folder: Path) -> dict[str, str]:
    paths = {name: folder / f"{name}.pem" for name in ("cert", "key", "ca")}
    issued.write(paths["cert"], paths["key"])
    paths["ca"].write_text(web.issued.facts.pem)
    return {"relay": relay.server.location, **{name: str(path) for name, path in paths.items()}}


@pytest.fixture(scope="module")
def reading(spark: Any, options: dict[str, str]) -> Any:
    from odfpy.federation.spark import register

    register(spark)

    def read(entity: str | None = "item", **more: str) -> Any:
        reader = spark.read.format("odf-web").options(**options)
        named = reader.options(**{name.replace("_", "-"): value for name, value in more.items()})
        return named.load(entity) if entity else named.load()

    return read


def rows_of(frame: Any) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in frame.collect())


def test_an_entity_is_a_frame_with_a_partition_for_each_part(reading: Any) -> None:
    frame = reading()
    assert frame.schema.simpleString() == "struct<id:bigint,price:double,flag:string>"
    assert rows_of(frame) == ROWS
    assert frame.rdd.getNumPartitions() == 3, "one for each relay"
    assert rows_of(frame) == ROWS, "tickets are redeemed again"


def test_columns_and_conditions_are_done_by_the_relays(reading: Any) -> None:
    frame = reading(columns="flag,id", filter="price > 10 AND flag = 'N'")
    assert rows_of(frame) == [("N", 1), ("N", 10), ("N", 20)]
    assert rows_of(reading(None, query="SELECT id * 2 AS twice FROM item WHERE id BETWEEN 2 AND 10")) == [
        (4,),
        (6,),
        (20,),
    ]
    assert len(reading(limit="1").collect()) == 3, "a row of each source"


def test_a_schema_of_the_user_picks_and_casts(spark: Any, options: dict[str, str], reading: Any) -> None:
    del reading  # which registers the source
    frame = spark.read.format("odf-web").options(**options).schema("flag STRING, id INT").load("item")
    assert rows_of(frame.where("id < 3")) == [("N", 1), ("R", 2)]


def test_frames_of_two_loads_are_joined_in_spark(reading: Any) -> None:
    left, right = reading(columns="id,flag"), reading(columns="flag,price", filter="price > 20")
    assert rows_of(left.join(right, "flag").groupBy("flag").count()) == [("N", 5), ("R", 2)]


@pytest.mark.parametrize("small", [0, SMALL])
@pytest.mark.parametrize("query", QUERIES)
def test_queries_give_what_datafusion_gives(spark: Any, web: ServedWeb, ann: Issued, query: str, small: int) -> None:
    asked = web.asks(ann, "na")
    with asked.sql(query, require_complete=True) as answer:
        expected = answer.to_arrow()
    tables = spark.catalog.listTables()  # of other tests
    frame = odfpy.web.spark_sql(spark, asked, query, small=small)
    assert frame.columns == expected.column_names
    assert [tuple(row) for row in frame.collect()] == [tuple(row.values()) for row in expected.to_pylist()]
    assert spark.catalog.listTables() == tables


def test_aggregates_travel_and_rows_do_not(spark: Any, web: ServedWeb, ann: Issued) -> None:
    query = "SELECT flag, sum(price) AS s FROM item GROUP BY flag"
    frame = odfpy.web.spark_sql(spark, web.asks(ann, "na"), query, small=0)
    assert re.search(r"BatchScan odf-web-asked\[g0#\d+, p1#\d+\]", plan_of(frame)), "groups and partial sums"
    assert rows_of(frame) == [("N", 332.75), ("R", 29.5)]


def test_small_answers_are_sent_to_all_workers_and_large_ones_are_read_by_tasks(
    spark: Any, web: ServedWeb, ann: Issued
) -> None:
    query = "SELECT a.id, b.flag FROM item AS a JOIN item AS b ON a.id = b.id AND b.flag = 'R'"
    frame = odfpy.web.spark_sql(spark, web.asks(ann, "na"), query, small=40)
    assert rows_of(frame) == [(2, "R"), (11, "R")]
    plan = plan_of(frame)
    assert "BroadcastHashJoin" in plan
    assert re.search(r"BatchScan odf-web-asked\[id#\d+L\]", plan), "ids of all rows are more than 40 bytes"
    assert "LocalTableScan [id" in plan, "those of two rows are not"


def plan_of(frame: Any) -> str:
    return str(frame._jdf.queryExecution().toString())


def test_credentials_are_shown_nowhere(
    spark: Any, reading: Any, web: ServedWeb, ann: Issued, options: dict[str, str]
) -> None:
    secret = ann.key_pem.splitlines()[1]
    with pytest.raises(Exception, match="E777") as caught:
        reading(filter="nope = 1")
    asked = odfpy.web.spark_sql(spark, web.asks(ann, "na"), "SELECT id FROM item", small=0)
    texts = [str(caught.value), *(plan_of(frame) for frame in (reading(), asked)), str(spark.sparkContext.getConf())]
    for text in texts:
        assert secret not in text
        assert "PRIVATE KEY" not in text
        assert options["key"] not in text


def test_rows_that_are_missing_are_an_error_that_names_whose(spark: Any, reading: Any, tmp_path: Path) -> None:
    with served_web(tmp_path) as other:
        other.relay("alone", "price", NA)
        other.relay("gone", "price", NA)
        other.link("alone", "gone", "{v}")
        other.relays["gone"].server.shutdown()
        issued = other.user("ann")
        there = {**options_of(other, issued, other.relays["alone"], tmp_path), "timeout": "10"}
        with pytest.raises(Exception, match=r"Rows are missing: gone: .*\(E789\).*require-complete"):
            reading(**there).collect()
        assert rows_of(reading(**there, require_complete="false"))[0] == (1, 10.5, "N")
        asked = other.asks(issued, "alone")
        with pytest.raises(IncompleteAnswer, match="gone"):
            odfpy.web.spark_sql(spark, asked, "SELECT id FROM item", seconds=10)
        with pytest.warns(UserWarning, match="Rows are missing: gone"):
            frame = odfpy.web.spark_sql(spark, asked, "SELECT id FROM item", seconds=10, require_complete=False)
        assert rows_of(frame) == [(1,), (3,)]


def test_a_source_that_breaks_fails_the_task(web: ServedWeb, reading: Any) -> None:
    frame = reading()
    assert rows_of(frame) == ROWS
    file = web.relays["apac"].workspace.root / "web" / "items.csv"
    kept = file.read_bytes()
    try:
        file.unlink()
        with pytest.raises(Exception, match=r"E78[67]"):
            frame.collect()
    finally:
        file.write_bytes(kept)
    assert rows_of(frame) == ROWS, "a task that is done again reads again"


def test_tickets_that_are_good_once_say_so(reading: Any) -> None:
    frame = reading(single_use="true")
    assert rows_of(frame) == ROWS
    with pytest.raises(Exception, match=r"already used.*load\(\) again"):
        frame.collect()


def test_errors_have_code_and_hint(reading: Any) -> None:
    with pytest.raises(Exception, match=r"no entity 'itm' \(E771\). Did you mean item"):
        reading("itm")
    with pytest.raises(Exception, match=r"no option 'colums' \(E100\). Did you mean columns"):
        reading(colums="id")
    with pytest.raises(Exception, match=r"cannot be reached \(E786\)"):
        reading(relay="grpc+tls://localhost:1")
