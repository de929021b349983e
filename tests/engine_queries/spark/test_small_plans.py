"""What a small pull does without: analysis of what is known, readers of files, messages to Java."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, functions
from pyspark.sql.types import LongType, StringType, StructField, StructType
from support.engine.requests import Source, success, transform_request

from odfpy.data.lru_cache import LruCache
from odfpy.data.offset_interval import OffsetInterval
from odfpy.data.timestamp import Timestamp
from odfpy.engine.spark.execution import row_by_row
from odfpy.engine.spark.execution.operations import transform
from odfpy.engine.spark.plan.catalyst import Catalyst, Node, column_id, columns, operator_name
from odfpy.engine.spark.plan.templates import Templates
from odfpy.engine.spark.process.session import request_session
from odfpy.engine.spark.rows.relation import parquet_rows
from odfpy.engine.spark.rows.tables import Table, scan
from odfpy.errors import EngineError

SCHEMA = StructType([StructField("k", StringType()), StructField("v", LongType())])


class Totals:
    """A query with the times that it was asked for."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self, rows: DataFrame) -> DataFrame:
        self.times += 1
        return rows.groupBy("k").agg(functions.sum("v").alias("total")).where("total > 1")


def rows_of(frame: DataFrame) -> set[tuple[Any, ...]]:
    return {tuple(row) for row in frame.collect()}


# --- Templates --------------------------------------------------------------------------------------------------------


@pytest.mark.spark
def test_a_query_is_analyzed_once_and_gives_the_same_over_all_rows(spark):
    templates = Templates()
    for number, values in enumerate(([("a", 1), ("a", 2), ("b", 1)], [("a", 9)], [(None, 5), ("b", None)])):
        catalyst = Catalyst(request_session(spark))  # each pull has its own
        query = Totals()
        rows = catalyst.plan(catalyst.spark.createDataFrame(values, SCHEMA))
        found = catalyst.dataframe(templates.over(catalyst, rows, "totals", query))
        assert query.times == (number == 0)
        assert rows_of(found) == rows_of(Totals()(catalyst.dataframe(rows)))
        assert found.schema == Totals()(catalyst.dataframe(rows)).schema


@pytest.mark.spark
def test_other_columns_and_other_purposes_have_templates_of_their_own(spark):
    catalyst = Catalyst(request_session(spark))
    templates, query = Templates(), Totals()
    required = StructType([StructField("k", StringType(), False), StructField("v", LongType(), False)])
    for schema, purpose, times in ((SCHEMA, "one", 1), (required, "one", 2), (SCHEMA, "two", 3), (SCHEMA, "one", 3)):
        rows = catalyst.plan(catalyst.spark.createDataFrame([("a", 7)], schema))
        assert rows_of(catalyst.dataframe(templates.over(catalyst, rows, purpose, query))) == {("a", 7)}
        assert query.times == times


@pytest.mark.spark
def test_of_many_templates_the_latest_stay(spark):
    catalyst = Catalyst(request_session(spark))
    templates, query = Templates(most=2), Totals()
    rows = catalyst.plan(catalyst.spark.createDataFrame([("a", 7)], SCHEMA))
    for purpose in (1, 2, 1, 3, 1, 2):
        templates.over(catalyst, rows, purpose, query)
    assert query.times == 4  # of 1, 2, 3, and of 2 once more


@pytest.mark.spark
def test_a_template_can_be_on_both_sides_of_a_union_and_of_a_join(spark):
    catalyst = Catalyst(request_session(spark))
    templates, query = Templates(), Totals()
    one, other = (
        templates.over(catalyst, catalyst.plan(catalyst.spark.createDataFrame(values, SCHEMA)), "totals", query)
        for values in ([("a", 2), ("b", 3)], [("b", 5)])
    )
    assert [column_id(column) for column in columns(one)] == [column_id(column) for column in columns(other)]
    assert rows_of(catalyst.dataframe(catalyst.union([one, other]))) == {("a", 2), ("b", 3), ("b", 5)}
    renamed = catalyst.project([catalyst.alias(column, f"o{at}") for at, column in enumerate(columns(other))], other)
    same = catalyst.expression("EqualNullSafe", columns(one)[0], columns(renamed)[0])
    assert rows_of(catalyst.dataframe(catalyst.semi_join(one, renamed, same))) == {("b", 3)}


@pytest.mark.spark
def test_a_query_may_give_columns_names_of_its_own_and_more_may_be_put_over_it(spark):
    catalyst = Catalyst(request_session(spark))
    twice = StructType([StructField("x", StringType()), StructField("x", LongType())])
    rows = catalyst.plan(catalyst.spark.createDataFrame([("a", 1), ("a", 2), ("b", 7)], twice))

    def renamed(plan: Node) -> Node:
        return catalyst.project([catalyst.alias(column, f"c{at}") for at, column in enumerate(columns(plan))], plan)

    found = catalyst.dataframe(Templates().over(catalyst, rows, "one", Totals(), names=["k", "v"], then=renamed))
    assert found.columns == ["c0", "c1"]
    assert rows_of(found) == {("a", 3), ("b", 7)}


# --- Row by row -------------------------------------------------------------------------------------------------------


@pytest.mark.spark
def test_a_transform_row_by_row_is_analyzed_once_over_the_same_columns(spark, tmp_path: Path, monkeypatch):
    classify, analyzed = row_by_row.classify_transform, []

    def classified(*of: Any) -> Any:
        analyzed.append(of)
        return classify(*of)

    def pulls(*, again: bool) -> list[str]:
        """The logical hashes of two pulls; the second one may be analyzed anew."""
        folder = tmp_path / str(again)
        folder.mkdir()
        source, made = Source(folder, "a", [pa.field("k", pa.string()), pa.field("v", pa.int64())]), []
        for hour, value in enumerate((7, 9)):
            if again:
                monkeypatch.setattr(row_by_row, "_KNOWN", LruCache(4))
            start = source.end
            source.add([("+A", f"2024-01-01T{hour:02d}:00", "x", value), ("+A", "2024-01-01", None, 1)])
            wanted = source.input(start, watermark=f"2024-01-01T{hour:02d}:00:00Z")
            response = success(transform(spark, transform_request(folder, query, wanted, next_offset=2 * hour)))
            assert response.new_watermark == Timestamp.parse(f"2024-01-01T{hour:02d}:00:00Z")
            made.append(str(response.slices[0].logical_hash))
        return made

    query = "select event_time, k, v + 1 as w from a union all select event_time, upper(k), v from a where v > 1"
    monkeypatch.setattr(row_by_row, "_KNOWN", LruCache(4))
    monkeypatch.setattr(row_by_row, "classify_transform", classified)
    known = pulls(again=False)
    assert len(analyzed) == 1
    assert pulls(again=True) == known
    assert len(analyzed) == 3


# --- Files ------------------------------------------------------------------------------------------------------------


@pytest.mark.spark
@pytest.mark.parametrize("name", ["plain", "with space", "100%25", "a#b?c=d", "*[x]{y}", "v=1/inside", "ü"])
def test_a_file_is_read_whatever_its_name_is(spark, tmp_path: Path, name: str):
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    pq.write_table(pa.table({"v": [1, None], "k": ["x", "y"]}), path)
    catalyst = Catalyst(request_session(spark))
    rows = parquet_rows(catalyst, SCHEMA, [str(path)])
    assert operator_name(rows).endswith("LogicalRelation")
    found = catalyst.dataframe(rows)
    assert found.columns == ["k", "v"]  # none of the name of the folder
    assert rows_of(found) == {("x", 1), ("y", None)}


@pytest.mark.spark
def test_columns_that_a_file_lacks_are_null_and_required_ones_may_be(spark, tmp_path: Path):
    path = tmp_path / "file"
    pq.write_table(pa.table({"v": [1]}), path)
    catalyst = Catalyst(request_session(spark))
    required = StructType([StructField("k", StringType(), False), StructField("v", LongType(), False)])
    assert rows_of(catalyst.dataframe(parquet_rows(catalyst, required, [str(path)]))) == {(None, 1)}


@pytest.mark.spark
def test_a_file_that_is_missing_is_an_error_and_not_left_out(spark, tmp_path: Path):
    path = tmp_path / "there"
    pq.write_table(pa.table({"k": ["x"], "v": [1]}), path)
    with pytest.raises(EngineError, match="gone is not there"):
        parquet_rows(Catalyst(request_session(spark)), SCHEMA, [str(path), str(tmp_path / "gone")])


@pytest.mark.spark
def test_of_the_settings_of_hadoop_few_are_copied_for_each_scan(spark):
    hadoop = spark.sparkContext._jsc.hadoopConfiguration()
    assert hadoop.get("io.file.buffer.size") == "65536"
    assert hadoop.size() < 20


@pytest.mark.spark
@pytest.mark.parametrize(("first", "last"), [(0, 5), (0, 4), (1, 5), (2, 3), (0, 9)])
def test_offsets_are_looked_at_only_where_an_interval_cuts_a_slice(spark, tmp_path: Path, first: int, last: int):
    source = Source(tmp_path, "a", (pa.field("v", pa.int64()),))
    for number in range(2):
        source.add([("+A", Timestamp.parse("2024-01-01T00:00:00Z").to_datetime(), number * 3 + at) for at in range(3)])
    table = Table.of(replace(source.input(0), offset_interval=OffsetInterval(first, last)))
    catalyst = Catalyst(request_session(spark))
    rows = scan(catalyst, table, tmp_path)
    cuts = first > 0 or last < 5
    assert (operator_name(rows).rpartition(".")[2] == "Filter") == cuts
    assert sorted(row.v for row in catalyst.dataframe(rows).collect()) == list(range(first, min(last, 5) + 1))
