"""What stands between fetching, reading and merging; and what fetching costs to import."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from odfpy.chain.sources import (
    CompressionFormat,
    PrepDecompress,
    PrepPipe,
    ReadCsv,
    ReadEsriShapefile,
)
from odfpy.data.schema import DataSchema
from odfpy.dataset.transform import SqlQueryStep, TransformSql
from odfpy.errors import SchemaError, UnsupportedStep
from odfpy.ingest.prepare import prepare
from odfpy.ingest.preprocess import preprocess
from odfpy.ingest.read import read, schema_of

TABLE = pa.table({"a": [1]})


@pytest.mark.parametrize("steps", [None, ()])
def test_without_prepare_steps_the_file_is_read_as_fetched(steps: tuple[()] | None):
    assert prepare(steps, Path("x")) == Path("x")


@pytest.mark.parametrize(
    ("step", "kind"), [(PrepDecompress(CompressionFormat.ZIP), "Decompress"), (PrepPipe(("sed",)), "Pipe")]
)
def test_prepare_steps_are_part_of_a_later_release(step: PrepDecompress | PrepPipe, kind: str):
    with pytest.raises(UnsupportedStep, match=rf"^Prepare step {kind} is part of a later release \(0\.2\)$"):
        prepare((step,), Path("x"))


@pytest.mark.parametrize("step", [ReadEsriShapefile()])
def test_shapefiles_are_part_of_a_later_release(step: ReadEsriShapefile):
    with pytest.raises(UnsupportedStep, match=rf"^Read step {step.KIND} is part of a later release \(0\.2\)$"):
        read(step, Path("x"))


def test_schema_is_given_in_one_of_two_forms():
    assert schema_of(ReadCsv()) is None
    schema = DataSchema(())
    assert schema_of(ReadCsv(schema=schema)) is schema
    assert schema_of(ReadCsv(ddl_schema=("a BIGINT", "b STRING NOT NULL"))).names == ("a", "b")
    with pytest.raises(SchemaError, match="both `schema` and `ddlSchema`"):
        schema_of(ReadCsv(schema=schema, ddl_schema=()))


def test_without_a_query_rows_stay_as_they_are():
    assert preprocess(None, TABLE, lambda *_: pytest.fail("no engine is needed")) is TABLE


def test_the_query_sees_the_rows_as_input():
    def run(transform: TransformSql, tables: dict[str, pa.Table]) -> pa.Table:
        assert transform.queries == (SqlQueryStep(query="select 1"),)
        return tables["input"].rename_columns(["b"])

    assert preprocess(TransformSql("any", query="select 1"), TABLE, run).column_names == ["b"]


def test_importing_fetch_is_light():
    heavy = "print([m for m in ('pyarrow', 'numpy', 'ssl', 'http.client') if m in sys.modules])"
    code = f"import sys, odfpy.ingest.fetch, odfpy.ingest.prepare, odfpy.ingest.source_state; {heavy}"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
