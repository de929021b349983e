"""A dataset whose schema has grown, read by Spark: what went in comes out."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from support.grown import data_of, expected, grown

from odfpy.coordinator.slices import schema_file, slice_paths, slices_of
from odfpy.engine.contract import SqlRequest, SqlResponseSuccess, SqlTable
from odfpy.engine.spark import operations

pytestmark = pytest.mark.spark


def test_spark_sql_shows_what_went_in(spark, tmp_path: Path):
    workspace = grown(tmp_path / "workspace")
    dataset = workspace.storage.get("grown")
    paths = slice_paths(dataset.layout.data, slices_of(dataset.chain.in_order()))
    assert dataset.state.schema is not None
    table = SqlTable("grown", str(schema_file(workspace.storage, dataset.state.schema)), tuple(map(str, paths)))
    out = tmp_path / "result"
    answer = operations.sql(spark, SqlRequest("select * from grown order by at", (table,), str(out)))
    assert answer == SqlResponseSuccess(2)
    with pa.OSFile(str(out)) as file, pa.ipc.open_stream(file) as reader:
        assert data_of(reader.read_all()) == expected()
