"""Spark's source `flight`: frames, writes and streams, over servers of our own and plain ones."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from flight.conftest import numbers
from support.servers.flight import OPEN, serving_flight, small_workspace
from support.servers.plain_flight import REFUSED, REUSE, Flight, PlainServer

from odfpy.flight import Filter, FlightSql, Request, filters_to_json

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def registered(spark: Any) -> Any:
    from odfpy.flight.spark import register

    register(spark)
    return spark


def reading(spark: Any, server: PlainServer, **options: Any) -> Any:
    named = {"arrow-flight.server": server.url, "arrow-flight.protocol": "json", "table": "numbers"}
    names = {name.replace("__", ".").replace("_", "-"): value for name, value in options.items()}
    return spark.read.format("flight").options(**{**named, **names})


def ids(frame: Any) -> list[int]:
    return sorted(row["id"] for row in frame.collect())


# --- Frames -----------------------------------------------------------------------------------------------------------


def test_one_partition_for_each_endpoint(registered: Any, server: PlainServer):
    frame = reading(registered, server).load()
    assert frame.schema.simpleString() == "struct<id:bigint,name:string>"
    assert frame.rdd.getNumPartitions() == 2
    assert ids(frame) == list(range(20))
    assert ids(frame) == list(range(20)), "tickets are redeemed again"


def test_columns_filters_and_limits_go_into_the_command(registered: Any, server: PlainServer):
    conditions = filters_to_json([("id", ">=", 10), ("name", "in", ["n1"])])
    frame = reading(registered, server, columns="name", filters=conditions, limit=5).load()
    assert frame.columns == ["name"]
    assert frame.count() == 20, "this server takes no notice of filters"
    assert json.loads(server.commands[-1]) == {
        "table": "numbers",
        "columns": ["name"],
        "filters": [["id", ">=", 10], ["name", "in", ["n1"]]],
        "limit": 5,
    }


def test_a_schema_of_the_user_picks_and_casts(registered: Any, server: PlainServer):
    frame = reading(registered, server).schema("name STRING, id INT").load()
    assert frame.where("id = 3").collect() == [("n3", 3)]
    assert json.loads(server.commands[-1])["columns"] == ["name", "id"]


def test_no_endpoints_are_no_rows(registered: Any, server: PlainServer):
    server.flights["empty"] = Flight([], declared=pa.schema([("id", pa.int64())]))
    assert reading(registered, server, table="empty").load().collect() == []


def test_tickets_that_can_be_redeemed_only_once(registered: Any, server: PlainServer):
    server.flights["numbers"].single_use = True
    frame = reading(registered, server).load()
    assert ids(frame) == list(range(20))
    with pytest.raises(Exception, match="this ticket has been redeemed"):
        frame.collect()
    frame = reading(registered, server, **{"arrow-flight.single-use-tickets": "true"}).load()
    assert frame.rdd.getNumPartitions() == 1
    assert [ids(frame), ids(frame)] == [list(range(20))] * 2


def test_locations_and_broken_streams(registered: Any, server: PlainServer):
    server.flights["numbers"].locations = [REFUSED, REUSE]
    server.faults.extend(["raise", "refuse"])  # both may meet one endpoint
    assert ids(reading(registered, server, **{"arrow-flight.rounds": "3"}).load()) == list(range(20))


def test_scans_of_one_load_do_not_see_the_filters_of_each_other(registered: Any, server: PlainServer):
    frame = reading(registered, server).load()
    assert frame.where("id = 1").count() == 1
    assert frame.count() == 20
    assert frame.where("id < 5").join(frame.where("id > 2"), "id").count() == 2


def test_errors_have_code_and_hint(registered: Any, server: PlainServer):
    with pytest.raises(Exception, match=r"no flight number \(E830\)"):
        reading(registered, server, table="number").load()
    with pytest.raises(Exception, match=r"There is no protocol 'sql' \(E100\)"):
        reading(registered, server, arrow_flight__protocol="x").options(**{"arrow-flight.protocol": "sql"}).load()
    server.faults.extend(["lie"] * 4)
    with pytest.raises(Exception, match=r"sends the columns id_, name_ instead of id, name.*\(E834\)"):
        reading(registered, server).load().collect()
    server.faults.clear()
    server.flights["odd"] = Flight([pa.table({"fine": [1], "odd": pa.array([1], pa.decimal256(50, 2))})])
    with pytest.raises(Exception, match=r"no type for column 'odd' of type decimal256\(50, 2\) \(E835\)"):
        reading(registered, server, table="odd").load()
    assert reading(registered, server, table="odd", columns="fine").load().collect() == [(1,)]


def test_many_types(registered: Any, server: PlainServer):
    noon = datetime(2024, 3, 1, 12, 0, 0, 1000, timezone.utc)
    columns = {
        "u8": pa.array([255], pa.uint8()),
        "u64": pa.array([2**64 - 1], pa.uint64()),
        "half": pa.array([0.5], pa.float16()),
        "view": pa.array(["v"], pa.string_view()),
        "large": pa.array([b"l"], pa.large_binary()),
        "words": pa.array(["w"]).dictionary_encode(),
        "runs": pa.compute.run_end_encode(pa.array([7])),
        "ms": pa.array([noon], pa.timestamp("ms", "Europe/Berlin")),
        "ns": pa.array([1_000_999], pa.timestamp("ns")),
        "day": pa.array([noon.date()], pa.date64()),
        "clock": pa.array([noon.time()], pa.time32("ms")),
        "span": pa.array([timedelta(seconds=1)], pa.duration("s")),
        "interval": pa.array([pa.MonthDayNano([1, 2, 3])]),
        "amount": pa.array([Decimal("1.50")], pa.decimal256(20, 2)),
        "map": pa.array([[("k", 1)]], pa.map_(pa.string(), pa.uint16())),
        "deep": pa.array([[{"a": [1, None]}]], pa.large_list(pa.struct([("a", pa.list_(pa.uint32(), 2))]))),
        "void": pa.nulls(1),
    }
    server.flights["types"] = Flight([pa.table(columns)])
    frame = reading(registered, server, table="types").load()
    kinds = dict(frame.dtypes)
    assert kinds["u64"] == "decimal(20,0)"
    assert kinds["clock"].startswith("time")
    assert kinds["deep"] == "array<struct<a:array<bigint>>>"
    casts = [f"CAST({name} AS STRING) AS {name}" for name in ("ms", "ns", "clock", "span")]
    (row,) = frame.selectExpr("* EXCEPT (ms, ns, clock, span, void)", *casts, "void IS NULL AS void").collect()
    assert row.asDict(recursive=True) == {
        "u8": 255,
        "u64": Decimal(2**64 - 1),
        "half": 0.5,
        "view": "v",
        "large": b"l",
        "words": "w",
        "runs": 7,
        "day": noon.date(),
        "interval": {"months": 1, "days": 2, "nanoseconds": 3},
        "amount": Decimal("1.50"),
        "map": {"k": 1},
        "deep": [{"a": [1, None]}],
        "ms": "2024-03-01 12:00:00.001",
        "ns": "1970-01-01 00:00:00.001",
        "clock": "12:00:00.001",
        "span": "INTERVAL '0 00:00:01' DAY TO SECOND",
        "void": True,
    }


# --- odfpy's own server -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with serving_flight(small_workspace(tmp_path_factory.mktemp("workspace"))) as served:
        yield served


def of_odf(spark: Any, served: Any, **options: str) -> Any:
    server = f"grpc://127.0.0.1:{served.server.port}"
    named = {"arrow-flight.server": server, "arrow-flight.protocol": "odf", "table": OPEN}
    return spark.read.format("flight").options(**named).options(**options)


def test_a_dataset_of_odfpy(registered: Any, served: Any):
    frame = of_odf(registered, served).load()
    assert sorted(row["offset"] for row in frame.collect()) == list(range(6))
    few = of_odf(registered, served, columns="offset", filters='[["offset", ">", 3]]').load()
    assert sorted(few.collect()) == [(4,), (5,)]


def test_a_dataset_as_it_was(registered: Any, served: Any):
    assert of_odf(registered, served, **{"odf.as-at": "3"}).load().count() < 6
    assert of_odf(registered, served, **{"odf.state": "current"}).load().count() == 6


def test_the_log_of_a_dataset_as_a_stream(registered: Any, served: Any, tmp_path: Path):
    named = {"arrow-flight.server": f"grpc://127.0.0.1:{served.server.port}", "arrow-flight.protocol": "odf"}
    stream = registered.readStream.format("flight").options(**named, table=OPEN).load()
    assert run(stream, tmp_path, registered)["offset"].to_pylist() == list(range(6))


# --- Streams ----------------------------------------------------------------------------------------------------------


def run(stream: Any, folder: Path, spark: Any) -> pa.Table:
    """Everything that is new, as rows in a file each; all rows so far."""
    query = (
        stream.writeStream.format("parquet")
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(folder / "rows"))
    )
    assert query.awaitTermination(60)
    return spark.read.parquet(str(folder / "rows")).orderBy(stream.columns[0]).toArrow()


def test_new_endpoints_are_new_rows(registered: Any, server: PlainServer, tmp_path: Path):
    named = {"arrow-flight.server": server.url, "arrow-flight.protocol": "json", "table": "numbers"}
    stream = registered.readStream.format("flight").options(**named).load()
    assert run(stream, tmp_path, registered)["id"].to_pylist() == list(range(20))
    server.flights["numbers"].parts.append(numbers(20, 25))
    assert run(stream, tmp_path, registered)["id"].to_pylist() == list(range(25))
    assert run(stream, tmp_path, registered)["id"].to_pylist() == list(range(25)), "nothing is new"


# --- Writes -----------------------------------------------------------------------------------------------------------


def writing(frame: Any, server: PlainServer, table: str, **options: str) -> Any:
    named = {"arrow-flight.server": server.url, "arrow-flight.protocol": "plain", "table": table}
    return frame.write.format("flight").mode("append").options(**named).options(**options)


def test_each_partition_is_a_call(registered: Any, server: PlainServer):
    frame = registered.range(10).repartition(2).selectExpr("id", "CAST(id AS STRING) AS name")
    writing(frame, server, "new").save()
    written = server.flights["new"]
    assert len(written.parts) == 2
    assert pa.concat_tables(written.parts).sort_by("id").to_pylist() == [{"id": n, "name": str(n)} for n in range(10)]
    attempts = [headers["flight-write-attempt"][0] for headers in server.headers if "flight-write-attempt" in headers]
    assert sorted(one.split("/", 1)[1] for one in attempts) == ["0/0", "1/0"]
    assert len({one.split("/", 1)[0] for one in attempts}) == 1


def test_a_server_that_refuses_rows(registered: Any, server: PlainServer):
    with pytest.raises(Exception, match=r"did not accept the rows for table 'forbidden': nobody writes here \(E836\)"):
        writing(registered.range(3), server, "forbidden").save()
    with pytest.raises(Exception, match=r"can only append rows \(E100\)"):
        writing(registered.range(3), server, "new").mode("overwrite").save()


def test_transactions_of_the_tasks_that_count(registered: Any, server: PlainServer):
    in_sql = {"arrow-flight.protocol": "flight-sql", "arrow-flight.transactions": "true"}
    writing(registered.range(10).repartition(2), server, "new", **in_sql).save()
    assert sorted(pa.concat_tables(server.flights["new"].parts).column("id").to_pylist()) == list(range(10))
    half = registered.range(10).repartition(2).selectExpr("IF(id = 7, raise_error('no sevens'), id) AS id")
    with pytest.raises(Exception, match="no sevens"):
        writing(half, server, "broken", **in_sql).save()
    assert "broken" not in server.flights


def test_overwriting_empties_the_table_first(registered: Any, server: PlainServer):
    for frame in (registered.range(10), registered.range(3)):
        writing(frame, server, "new", **{"arrow-flight.protocol": "flight-sql"}).mode("overwrite").save()
    assert sorted(pa.concat_tables(server.flights["new"].parts).column("id").to_pylist()) == [0, 1, 2]


def test_small_tables_are_sent_to_all_workers(registered: Any, server: PlainServer):
    from odfpy.flight.spark import load

    options = {"arrow-flight.server": server.url, "arrow-flight.protocol": "json", "table": "numbers"}
    small, large = load(registered, options), load(registered, options, broadcast_below=0)
    assert "broadcast" in plan_of(small)
    assert "broadcast" not in plan_of(large)
    assert small.join(large, "id").count() == 20


def plan_of(frame: Any) -> str:
    return str(frame._jdf.queryExecution().analyzed().toString()).lower()


# --- Why filters are options ------------------------------------------------------------------------------------------


def test_filters_that_spark_pushes_reach_other_scans_of_the_same_load(registered: Any):
    """As long as this is so, the source does not take filters from Spark (docs/adr/0041-flight-client.md)."""
    registered.dataSource.register(leaking())
    registered.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        frame = registered.read.format("leaking").load()
        assert frame.where("id = 1").count() == 1
        assert frame.count() == 1, "all ten rows should be there"
    finally:
        registered.conf.unset("spark.sql.python.filterPushdown.enabled")


def leaking() -> Any:
    """A source of ten rows that takes filters, made here, so that it is pickled whole."""
    from pyspark.sql.datasource import DataSource, DataSourceReader, EqualTo

    class Reader(DataSourceReader):
        wanted: Any = None

        def pushFilters(self, filters: list[Any]) -> Iterator[Any]:  # noqa: N802
            for one in filters:
                if isinstance(one, EqualTo):
                    self.wanted = one.value
                else:
                    yield one

        def read(self, partition: Any) -> Iterator[tuple[int]]:
            return ((number,) for number in range(10) if self.wanted in {None, number})

    class Leaking(DataSource):
        @classmethod
        def name(cls) -> str:
            return "leaking"

        def schema(self) -> str:
            return "id INT"

        def reader(self, schema: Any) -> DataSourceReader:
            return Reader()

    return Leaking


@pytest.mark.parametrize("text", [r"no such \' OR 1=1 -- ", r"C:\new", "50%", "a_b", "it's", '"', "\\"])
def test_sql_for_servers_like_spark_finds_exactly_what_is_wanted(spark: Any, text: str):
    rows = [text, f"{text}!", f"-{text}", "other", "C:\new", "500", "axb"]
    spark.createDataFrame([(row,) for row in rows], "name string").createOrReplaceTempView("texts")
    sql = FlightSql("`")
    for operator, meaning in (("=", str.__eq__), ("starts with", str.startswith), ("contains", str.__contains__)):
        found = spark.sql(sql.sql(Request("texts", filters=(Filter("name", operator, text),)))).collect()
        assert sorted(row["name"] for row in found) == sorted(row for row in rows if meaning(row, text)), operator
