"""Rows are there or not by what they are, not by the statistics of the row group that they stand in.

Statistics of Parquet leave out NaN, and have a time in the unit of its column.
"""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from itertools import product

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from pyspark.sql.types import DoubleType, FloatType, IntegerType, StructField, StructType, TimestampType
from support.queries.cases import QUICK, Tuned

from odfpy.engine.datafusion.datasets import in_one_order, name_dataset
from odfpy.engine.datafusion.session import name_rows, new_session
from odfpy.engine.spark.plan.catalyst import Catalyst
from odfpy.engine.spark.process.session import request_session
from odfpy.engine.spark.rows.relation import parquet_rows

START = datetime(2024, 1, 1, tzinfo=timezone.utc)
NAN = float("nan")
FRACTIONS = [NAN, 0.5, 0.75, NAN, -0.0, 0.0, 2.0, None, NAN, -1.0]
TIMES = [START + timedelta(milliseconds=5 + number // 2) for number in range(len(FRACTIONS))]
ROWS = pa.table(
    {
        "n": pa.array(range(len(FRACTIONS)), pa.int32()),
        "v": pa.array(FRACTIONS, pa.float64()),
        "f": pa.array(FRACTIONS, pa.float32()),
        "t": pa.array(TIMES, pa.timestamp("ms", "UTC")),
    }
)
OPERATORS = ("<", "<=", "=", "<>", ">", ">=")
NUMBERS = ("-0.0", "0.6", "1.0", "2.0")


@pytest.fixture
def file(tmp_path):
    pq.write_table(ROWS, tmp_path / "file", row_group_size=2)
    return tmp_path / "file"


def counts(rows, conditions):
    """How many rows meet each condition, each read by a scan of its own; in a few jobs, as each takes its time."""
    rows.createOrReplaceTempView("stored")
    found = [0] * len(conditions)
    for start in range(0, len(conditions), 24):
        some = enumerate(conditions[start : start + 24], start)
        query = " union all ".join(f"select {at} as at from stored where {condition}" for at, condition in some)
        for row in rows.sparkSession.sql(query).collect():
            found[row["at"]] += 1
    return found


@pytest.mark.spark
def test_spark_looks_at_rows_and_not_at_statistics(spark, file):
    fields = [("n", IntegerType()), ("v", DoubleType()), ("f", FloatType()), ("t", TimestampType())]
    schema = StructType([StructField(name, kind) for name, kind in fields])
    catalyst = Catalyst(request_session(Tuned(spark, **QUICK)))
    stored = catalyst.dataframe(parquet_rows(catalyst, schema, [str(file)]))
    known = catalyst.spark.createDataFrame([tuple(row.values()) for row in ROWS.to_pylist()], schema)
    numbers = [f"{number}D" for number in NUMBERS] + ["double('NaN')", "double('Infinity')"]
    conditions = [f"{column} {op} {number}" for column, op, number in product("vf", OPERATORS, numbers)]
    times = [f"timestamp'2024-01-01 00:00:00.00{digits}'" for digits in ("5", "55", "6999", "9")]
    conditions += [f"t {op} {time}" for op, time in product(OPERATORS, times)]
    conditions += [f"not ({condition})" for condition in conditions]
    wanted = list(known.selectExpr(*(f"count_if({one}) as c{at}" for at, one in enumerate(conditions))).first())
    found = counts(stored, conditions)
    assert dict(zip(conditions, found, strict=True)) == dict(zip(conditions, wanted, strict=True))


def test_datafusion_has_one_order_of_fractions_wherever_a_condition_is_applied(file):
    context = new_session(deterministic=False)
    name_rows(context, "known", ROWS.schema, ROWS.to_batches())
    name_dataset(context, "stored", ds.dataset(str(file), ROWS.schema, format="parquet"), ROWS.schema)
    context.register_parquet("file", file.as_uri(), file_extension="")
    context.register_view("read", in_one_order(context, "file", ROWS.schema))
    numbers = [*NUMBERS, "'NaN'::double", "'Infinity'::double"]
    conditions = [f"{column} {op} {number}" for column, op, number in product("vf", OPERATORS, numbers)]
    for condition in [*conditions, *(f"not ({condition})" for condition in conditions)]:
        known, stored, read = (
            [row for batch in context.sql(f"select n from {table} where {condition}").collect() for row in batch["n"]]
            for table in ("known", "stored", "read")
        )
        assert stored == known, condition
        assert read == known, condition


def test_fractions_of_a_dataset_are_what_they_were(file):
    context = new_session(deterministic=False)
    halves = ROWS.append_column("h", ROWS["f"].cast(pa.float16()))
    name_dataset(context, "stored", ds.dataset(halves), halves.schema)
    (found,) = context.sql("select * from stored").collect()
    assert found.schema.types == halves.schema.types
    assert str(found.to_pylist()) == str(halves.to_pylist())  # NaN is NaN, and -0.0 is not 0.0
