"""Answers as frames of a Spark of one's own."""

from __future__ import annotations

from datetime import date, datetime, time, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.chains.workspaces import feed, root, workspace_with

import odfpy
from odfpy.data.vocabulary import DEFAULT_VOCABULARY
from odfpy.engine.contract import SqlTable
from odfpy.engine.frames import spark_frame, spark_frame_of_slices
from odfpy.errors import SchemaError

pytestmark = pytest.mark.spark

TABLE = pa.table(
    {
        "u": pa.array([2**64 - 1, None], pa.uint64()),
        "t": pa.array([1_700_000_000_123_456_789, None], pa.timestamp("ns", "UTC")),
        "n": pa.array([0, None], pa.timestamp("ms")),
        "d": pa.array([date(2024, 2, 29), None]),
        "m": pa.array([Decimal("1.50"), None], pa.decimal128(10, 2)),
        "s": pa.array([{"x": 1, "y": ["a", None]}, None], pa.struct({"x": pa.uint8(), "y": pa.list_(pa.string())})),
        "k": pa.array([[("a", 1)], None], pa.map_(pa.string(), pa.int32())),
        "c": pa.array([time(1, 2, 3, 4), None], pa.time64("us")),
        "i": pa.array([{"t": [1_500]}, None], pa.struct({"t": pa.list_(pa.timestamp("ns", "UTC"))})),
    }
)


def test_rows_keep_their_values(spark: Any) -> None:
    frame = spark_frame(TABLE, spark)
    kinds = {name: str(kind) for name, kind in frame.dtypes}
    assert kinds["u"] == "decimal(20,0)"
    assert kinds["t"] == "timestamp"
    assert kinds["n"] == "timestamp_ntz"
    first, second = frame.toArrow().to_pylist()
    assert first == {
        "u": Decimal(2**64 - 1),
        "t": datetime(2023, 11, 14, 22, 13, 20, 123456, tzinfo=timezone.utc),
        "n": datetime(1970, 1, 1),  # noqa: DTZ001
        "d": date(2024, 2, 29),
        "m": Decimal("1.50"),
        "s": {"x": 1, "y": ["a", None]},
        "k": [("a", 1)],
        "c": time(1, 2, 3, 4),
        "i": {"t": [datetime(1970, 1, 1, microsecond=1, tzinfo=timezone.utc)]},
    }
    assert set(second.values()) == {None}


def test_an_answer_is_a_frame_of_the_active_session(spark: Any, tmp_path: Path) -> None:
    workspace = workspace_with(tmp_path, root("rates"))
    feed(workspace, "rates", "1 x", "2 y")
    rows = odfpy.connect(workspace)["rates"].current()
    assert sorted(row.name for row in rows.to_spark().collect()) == ["x", "y"]


def test_rows_that_lie_in_slices_are_read_by_spark_itself(spark: Any, tmp_path: Path) -> None:
    workspace = workspace_with(tmp_path, root("rates"))
    feed(workspace, "rates", "1 x", "2 y")
    feed(workspace, "rates", "2 z", day=2)
    for engine, quote in (("spark", "`"), ("datafusion", '"')):
        connection = odfpy.connect(workspace, engine=engine)
        renamed = f"SELECT name AS {quote}a.b{quote}, id FROM rates"
        for text in ("SELECT * FROM rates", renamed, "SELECT * FROM odf_changelog('rates')"):
            rows = connection.prepare(text)
            frame = rows.to_spark(spark)
            assert len(frame.inputFiles()) == 2
            assert frame.schema == spark_frame(rows.table, spark).schema
            assert sorted(frame.toArrow().to_pylist(), key=str) == sorted(rows.table.to_pylist(), key=str)
    for text in ("SELECT * FROM rates LIMIT 1", "SELECT * FROM rates ORDER BY offset", "SELECT id + 1 AS n FROM rates"):
        assert connection.prepare(text).to_spark(spark).inputFiles() == []


def test_slices_that_spark_does_not_read_come_through_memory(spark: Any, tmp_path: Path) -> None:
    slice_file, schema_file = tmp_path / "slice.parquet", tmp_path / "schema.parquet"
    columns = {
        "offset": pa.array([0], pa.int64()),
        "op": pa.array([0], pa.int32()),
        "system_time": pa.array([0], pa.timestamp("ms", "UTC")),
        "event_time": pa.array([0], pa.timestamp("ms", "UTC")),
        "fine": pa.array([{"t": 1}], pa.struct({"t": pa.timestamp("ns", "UTC")})),
    }
    pq.write_table(pa.table(columns), slice_file)
    pq.write_table(pa.table(columns).slice(0, 0), schema_file)
    source = SqlTable("ds", str(schema_file), (str(slice_file),), DEFAULT_VOCABULARY)
    assert spark_frame_of_slices(source, [("offset", "offset"), ("fine", "fine")], spark) is None
    frame = spark_frame_of_slices(source, [("offset", "n")], spark)
    assert frame is not None
    assert frame.toArrow().to_pylist() == [{"n": 0}]


def test_nan_is_found_in_a_session_that_compares_conditions_with_statistics(spark: Any, tmp_path: Path) -> None:
    slice_file = tmp_path / "slice.parquet"
    columns = {
        "offset": pa.array([0, 1], pa.int64()),
        "op": pa.array([0, 0], pa.int32()),
        "system_time": pa.array([0, 0], pa.timestamp("ms", "UTC")),
        "event_time": pa.array([0, 0], pa.timestamp("ms", "UTC")),
        "v": pa.array([float("nan"), 0.5]),
    }
    pq.write_table(pa.table(columns), slice_file)
    session = spark.newSession()
    session.conf.set("spark.sql.parquet.filterPushdown", "true")
    assert session.read.parquet(str(slice_file)).where("v > 1.0D").count() == 0, "else this tests nothing"
    source = SqlTable("ds", str(slice_file), (str(slice_file),), DEFAULT_VOCABULARY)
    frame = spark_frame_of_slices(source, [("offset", "offset"), ("v", "v")], session)
    assert frame is not None
    assert [row.offset for row in frame.where("v > 1.0D").collect()] == [0]


def test_types_that_spark_does_not_have_are_named(spark: Any) -> None:
    with pytest.raises(SchemaError, match=r"'big' of type decimal256\(76, 2\)"):
        spark_frame(pa.table({"big": pa.array([None], pa.decimal256(76, 2))}), spark)
