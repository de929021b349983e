"""Rows that are sent to Java: tables, and what the engine has kept in small files; and many files at once."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.engine.spark_jobs import jobs_of

from odfpy.engine.spark.incremental.state import log
from odfpy.engine.spark.plan.catalyst import Catalyst, columns, operator_name
from odfpy.engine.spark.plan.types import spark_schema
from odfpy.engine.spark.process.session import request_session
from odfpy.engine.spark.rows import stored
from odfpy.engine.spark.rows.parallelism import gather_few, read_plan
from odfpy.engine.spark.rows.stored import read_stored, sent, table_rows
from odfpy.engine.spark.rows.write import batches_of
from odfpy.errors import EngineError

pytestmark = pytest.mark.spark

STRUCT = pa.struct([("a", pa.int64()), ("b", pa.list_(pa.string()))])
ROWS = pa.table(
    {
        "long": pa.array([1, None, -(2**63)], pa.int64()),
        "int": pa.array([None, 2**31 - 1, 0], pa.int32()),
        "short": pa.array([-1, None, 3], pa.int16()),
        "yes": pa.array([True, None, False]),
        "double": pa.array([0.1, -0.0, None], pa.float64()),
        "float": pa.array([float("inf"), None, 1.5], pa.float32()),
        "text": pa.array(["", None, "Größe, \U0001f9ea\n'\""]),
        "bytes": pa.array([b"\0\xff", b"", None]),
        "decimal": pa.array([Decimal("1.50"), None, Decimal("-99999999999999999999999999999999.99")], pa.decimal128(34, 2)),
        "small": pa.array([Decimal("-0.5"), Decimal("0.0"), None], pa.decimal128(5, 1)),
        "day": pa.array([dt.date(1, 1, 1), None, dt.date(9999, 12, 31)]),
        "time": pa.array([-1, None, 2**52], pa.timestamp("us", "UTC")),
        "local": pa.array([None, 0, -(2**52)], pa.timestamp("us")),
        "list": pa.array([[], None, [1, None, 3]], pa.list_(pa.int64())),
        "struct": pa.array([{"a": 1, "b": ["x", None]}, None, {"a": None, "b": None}], STRUCT),
        "structs": pa.array([[{"a": 1, "b": []}, None], [], None], pa.list_(STRUCT)),
    }
)  # fmt: skip


@pytest.fixture
def catalyst(spark: Any) -> Catalyst:
    found = Catalyst(request_session(spark))
    gather_few(found.spark, 1)
    return found


def told(catalyst: Catalyst, plan: Any) -> list[dict[str, Any]]:
    """What a plan results in."""
    return pa.Table.from_batches([*batches_of(catalyst.dataframe(plan))]).to_pylist()


def kept(folder: Path, table: pa.Table, name: str = "kept.parquet") -> Path:
    """A file of the engine."""
    pq.write_table(table, folder / name)
    return folder / name


def is_sent(plan: Any) -> bool:
    return operator_name(plan).endswith(".LogicalRDD")


def test_a_table_is_sent_as_it_is(catalyst):
    assert told(catalyst, sent(catalyst, ROWS)) == ROWS.to_pylist()
    many = pa.concat_tables([ROWS.slice(1)] * 5000)
    assert told(catalyst, sent(catalyst, many)) == many.to_pylist()


@pytest.mark.parametrize("rows", [ROWS.slice(0, 0), pa.Table.from_batches([], ROWS.schema)])
def test_a_table_without_rows_is_sent(catalyst, rows):
    plan = sent(catalyst, rows)
    assert catalyst.dataframe(plan).collect() == []
    assert catalyst.dataframe(plan).columns == ROWS.column_names


def test_small_files_are_sent_with_the_rows_that_a_scan_has(catalyst, tmp_path):
    paths = [kept(tmp_path, ROWS), kept(tmp_path, ROWS.slice(1), "year=2024.parquet")]
    schema = spark_schema(ROWS.schema, "rows")
    plan, scanned = read_stored(catalyst, schema, paths), read_plan(catalyst, schema, paths)
    assert is_sent(plan)
    assert not is_sent(scanned)
    assert told(catalyst, plan) == told(catalyst, scanned) == [*ROWS.to_pylist(), *ROWS.slice(1).to_pylist()]
    assert str(plan.schema().json()) == str(scanned.schema().json())


def test_columns_of_files_are_found_by_their_names(catalyst, tmp_path):
    path = kept(tmp_path, ROWS.select(["text", "day", "long"]))
    schema = spark_schema(ROWS.select(["long", "text"]).schema, "rows")
    plan = read_stored(catalyst, schema, [path])
    assert is_sent(plan)
    assert told(catalyst, plan) == ROWS.select(["long", "text"]).to_pylist()


def test_large_files_and_those_of_many_rows_are_scanned(spark, catalyst, tmp_path, monkeypatch):
    path, schema = kept(tmp_path, ROWS), spark_schema(ROWS.schema, "rows")
    assert not is_sent(read_stored(Catalyst(request_session(spark)), schema, [path]))
    monkeypatch.setattr(stored, "_MAX_BYTES", path.stat().st_size)
    assert is_sent(read_stored(catalyst, schema, [path]))
    monkeypatch.setattr(stored, "_MAX_BYTES", path.stat().st_size - 1)
    plan = read_stored(catalyst, schema, [path])
    assert not is_sent(plan)
    assert told(catalyst, plan) == ROWS.to_pylist()


def test_small_files_with_much_in_them_are_scanned(catalyst, tmp_path):
    table = pa.table({"text": ["x" * 10_000] * 2_000})
    path = kept(tmp_path, table)
    assert path.stat().st_size < stored._MAX_BYTES
    plan = read_stored(catalyst, spark_schema(table.schema, "rows"), [path])
    assert not is_sent(plan)
    assert catalyst.dataframe(plan).count() == 2_000


def test_a_table_is_sent_or_goes_to_a_file(spark, catalyst, tmp_path, monkeypatch):
    schema, path = spark_schema(ROWS.select(["long", "text"]).schema, "rows"), tmp_path / "rows.parquet"
    plan = table_rows(catalyst, schema, ROWS, path)
    assert is_sent(plan)
    assert not path.exists()
    assert told(catalyst, plan) == ROWS.select(["long", "text"]).to_pylist()
    many = table_rows(Catalyst(request_session(spark)), schema, ROWS, path)
    monkeypatch.setattr(stored, "_MAX_IN_MEMORY", ROWS.nbytes - 1)
    large = table_rows(catalyst, schema, ROWS, path)
    assert [is_sent(many), is_sent(large)] == [False, False]
    assert told(catalyst, large) == told(catalyst, plan)


LOG = {
    "c0": pa.array(["late", "first", "gone", "both", "text"]),
    log.LOG_TIME: pa.array([5, 50, 70, 60, 60], pa.timestamp("us", "UTC")),
    log.LOG_COMMIT: pa.array([300, 100, 200, 400, 400], pa.timestamp("us", "UTC")),
    log.LOG_SOURCE: pa.array([0, 0, 0, 0, 1], pa.int32()),
    log.LOG_BRANCH: pa.array([0, 0, 0, 1, 0], pa.int32()),
    log.LOG_OFFSET: pa.array([7, 0, 1, 8, 0], pa.int64()),
    log.LOG_OP: pa.array([0, 0, 1, 3, 2], pa.int32()),
}


@pytest.mark.parametrize(("rows", "latest"), [(5, None), (5, 10), (5, 60), (5, 1_000_000), (0, None), (0, 7)])
def test_few_rows_of_a_log_are_told_the_time_as_many_are(spark, catalyst, rows, latest):
    table = pa.table(LOG).slice(0, rows)
    found = []
    for session in (catalyst, Catalyst(request_session(spark))):
        data = columns(session.empty(spark_schema(table.select(["c0"]).schema, "rows")))
        changes = log._as_changes(session, sent(session, table), (*data, *log.marks(session)), latest)
        frame = session.dataframe(changes.plan)
        found.append((sorted(frame.collect()), changes.latest, frame.schema))
    assert found[0] == found[1]
    assert len(found[0][0]) == rows


def test_files_without_rows_are_sent(catalyst, tmp_path):
    plan = read_stored(catalyst, spark_schema(ROWS.schema, "rows"), [kept(tmp_path, ROWS.slice(0, 0))])
    assert is_sent(plan)
    assert catalyst.dataframe(plan).collect() == []


def test_files_that_are_damaged_or_lost_are_told_as_those_of_a_scan(catalyst, tmp_path):
    schema = spark_schema(ROWS.schema, "rows")
    with pytest.raises(EngineError, match="is not there"):
        read_stored(catalyst, schema, [tmp_path / "none.parquet"])
    path = kept(tmp_path, ROWS)
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(Exception, match=r"kept\.parquet"):
        told(catalyst, read_stored(catalyst, schema, [path]))


def test_what_is_sent_can_be_joined_with_itself(catalyst):
    rows = sent(catalyst, ROWS.select(["long", "text"]))
    one = catalyst.dataframe(rows)
    assert one.alias("a").join(one.alias("b"), "long").count() == 2
    assert one.union(one).count() == 6


def test_many_files_are_looked_at_without_a_job(spark, tmp_path):
    catalyst, table = Catalyst(request_session(spark)), ROWS.select(["long"])
    paths = [kept(tmp_path, table, f"{number}.parquet") for number in range(100)]
    before = jobs_of(spark)
    frame = catalyst.dataframe(read_plan(catalyst, spark_schema(table.schema, "rows"), paths))
    assert frame.rdd.getNumPartitions() <= spark.sparkContext.defaultParallelism
    assert jobs_of(spark) == before
    assert frame.count() == 300
