"""Projections on Spark are what their reference models say, as those in DataFusion are; what Spark hands back."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.queries import changelogs
from support.queries.changelogs import A, logs, moment, sql_table

from odfpy.data.vocabulary import DEFAULT_VOCABULARY
from odfpy.engine.contract import Projection, SqlRequest, SqlResponseSuccess, SqlTable
from odfpy.engine.spark.execution import operations
from odfpy.query.generated_rows import output_schema
from odfpy.query.log_query import LogQuery

pytestmark = pytest.mark.spark

DAY = 3


def projections(log: changelogs.Log) -> dict[Projection, list[changelogs.Event]]:
    """All projections of a log, and what they are."""
    wanted = {
        Projection(None): changelogs.current(log, keyed=False),
        Projection(("key",)): changelogs.current(log, keyed=True),
        Projection(("value",)): [row for row in {row.value: row for row in log}.values() if row.gains],  # by a window
        Projection(None, moment(DAY)): changelogs.as_of(log, DAY, keyed=False),
        Projection(("key",), moment(DAY)): changelogs.as_of(log, DAY, keyed=True),
    }
    if all(row.op is A for row in log):
        wanted[Projection(("key",), moment(DAY), only_appends=True)] = changelogs.as_of(log, DAY, keyed=True)
        wanted[Projection(None, moment(DAY), only_appends=True)] = changelogs.as_of(log, DAY, keyed=False)
    return wanted


@settings(max_examples=1, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(several=st.lists(logs(most=30), min_size=2, max_size=2))
def test_projections_are_their_models(spark: Any, tmp_path: Path, several: list[list[changelogs.Event]]) -> None:
    folder = tmp_path / str(random.getrandbits(32))
    tables, parts, wanted = [], [], set()
    for log in several:
        for projection, rows in projections(log).items():
            name = f"t{len(tables)}"
            tables.append(sql_table(folder / name, log, projection, name))
            parts.append(f"SELECT '{name}' AS name, `offset`, key, value FROM {name}")
            wanted |= {(name, row.offset, row.key, row.value) for row in rows}
    found = ask(spark, folder, SqlRequest(" UNION ALL ".join(parts), tuple(tables), str(folder / "result")))
    assert set(zip(*(column.to_pylist() for column in found.columns), strict=True)) == wanted
    assert found.num_rows == len(wanted)


def ask(spark: Any, folder: Path, request: SqlRequest) -> pa.Table:
    assert isinstance(operations.sql(spark, request), SqlResponseSuccess)
    return pa.ipc.open_stream((folder / "result").read_bytes()).read_all()


TYPES = (
    pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64(), pa.float32(),
    pa.float64(), pa.string(), pa.binary(), pa.binary(4), pa.date32(), pa.timestamp("ms"), pa.timestamp("ms", "UTC"),
    pa.timestamp("us", "Europe/Berlin"), pa.decimal128(10, 2), pa.list_(pa.int32()),
    pa.struct([("a", pa.int32()), ("b", pa.timestamp("ms", "UTC"))]),
)  # fmt: skip


def test_rows_straight_from_slices_have_the_columns_that_spark_gives(spark: Any, tmp_path: Path) -> None:
    schema = pa.schema([pa.field(f"c{at}", kind, nullable=bool(at % 2)) for at, kind in enumerate(TYPES)])
    file = str(tmp_path / "schema")
    pq.write_table(schema.empty_table(), file)
    table = SqlTable("t", file, (), DEFAULT_VOCABULARY)
    found = ask(spark, tmp_path, SqlRequest("SELECT * FROM t", (table,), str(tmp_path / "result")))
    assert output_schema(LogQuery("t"), schema, "spark") == found.schema
