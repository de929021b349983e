"""What stands between fetching, reading and merging; and what fetching costs to import."""

from __future__ import annotations

import subprocess
import sys

import pytest

from odfpy.chain.read_steps import ReadCsv
from odfpy.data.schemas.schema import DataSchema
from odfpy.errors import SchemaError
from odfpy.ingest.read import schema_of


def test_schema_is_given_in_one_of_two_forms():
    assert schema_of(ReadCsv()) is None
    schema = DataSchema(())
    assert schema_of(ReadCsv(schema=schema)) is schema
    assert schema_of(ReadCsv(ddl_schema=("a BIGINT", "b STRING NOT NULL"))).names == ("a", "b")
    with pytest.raises(SchemaError, match="both `schema` and `ddlSchema`"):
        schema_of(ReadCsv(schema=schema, ddl_schema=()))


def test_importing_fetch_is_light():
    heavy = "print([m for m in ('pyarrow', 'numpy', 'ssl', 'http.client') if m in sys.modules])"
    code = f"import sys, odfpy.ingest.fetch, odfpy.ingest.prepare, odfpy.ingest.source_state; {heavy}"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
