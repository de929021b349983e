"""Answers as frames of a Spark of one's own."""

from __future__ import annotations

from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.workspaces import feed, root, workspace_with

import odfpy
from odfpy.engine.frames import spark_frame
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
    }
    assert set(second.values()) == {None}


def test_an_answer_is_a_frame_of_the_active_session(spark: Any, tmp_path: Path) -> None:
    workspace = workspace_with(tmp_path, root("rates"))
    feed(workspace, "rates", "1 x", "2 y")
    rows = odfpy.connect(workspace)["rates"].current()
    assert sorted(row.name for row in rows.to_spark().collect()) == ["x", "y"]


def test_types_that_spark_does_not_have_are_named(spark: Any) -> None:
    with pytest.raises(SchemaError, match=r"'big' of type decimal256\(76, 2\)"):
        spark_frame(pa.table({"big": pa.array([None], pa.decimal256(76, 2))}), spark)
