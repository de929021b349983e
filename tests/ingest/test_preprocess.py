"""Preprocessing of an ingest: by the engine that the source names, or by Spark after a translation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pytest

from odfpy.dataset.transform import SqlQueryStep, TransformSql
from odfpy.engine.datafusion.engine import DataFusionEngine
from odfpy.engine.registry import EngineRegistry
from odfpy.errors import EngineNotFound, InvalidQuery, NondeterministicQuery, OdfError, UnsupportedQuery
from odfpy.ingest.preprocess import preprocess

ROWS = pa.table({"id": [2, 1, 3], "Name": ["b", "a", None]})


@dataclass(frozen=True)
class FakeSpark(DataFusionEngine):
    """Remembers what it is asked and gives the rows back."""

    name: str = "spark"
    asked: list[TransformSql] = field(default_factory=list)

    def preprocess(
        self, transform: TransformSql, tables: Mapping[str, pa.Table], *, spool: Path | None = None
    ) -> pa.Table:
        self.asked.append(transform)
        return tables["input"]


@pytest.fixture
def spark() -> FakeSpark:
    return FakeSpark()


@pytest.fixture
def engines(spark: FakeSpark) -> EngineRegistry:
    return EngineRegistry({"datafusion": DataFusionEngine, "spark": lambda: spark})


def sql(engine: str, *queries: str | tuple[str, str]) -> TransformSql:
    steps = [SqlQueryStep(query=q) if isinstance(q, str) else SqlQueryStep(alias=q[0], query=q[1]) for q in queries]
    return TransformSql(engine, queries=tuple(steps))


# --- Which engine ----------------------------------------------------------------------------------------------------


def test_without_a_query_rows_stay_as_they_are(engines: EngineRegistry):
    assert preprocess(None, ROWS, engines) == (ROWS, ())


def test_an_empty_file_has_no_columns_that_a_query_could_name(engines: EngineRegistry):
    nothing = pa.table({})
    assert preprocess(sql("datafusion", "select id from input"), nothing, engines) == (nothing, ())


def test_datafusion_runs_its_queries_as_they_are(engines: EngineRegistry):
    steps = sql("DataFusion", ("big", "select * from input where id > 1"), 'select upper("Name") as name from big')
    rows, remarks = preprocess(steps, ROWS, engines)
    assert rows.to_pylist() == [{"name": "B"}, {"name": None}]
    assert remarks == ()


def test_spark_gets_its_queries_as_they_are(engines: EngineRegistry, spark: FakeSpark):
    transform = sql("spark", "select `Name` from input")
    assert preprocess(transform, ROWS, engines) == (ROWS, ())
    assert spark.asked == [transform]


@pytest.mark.parametrize(
    ("engine", "query", "expected"),
    [
        ("flink", "SELECT `Name`, CAST(id AS VARCHAR) AS Id FROM input", "`Name`, CAST(id AS STRING) AS Id"),
        ("risingwave", 'SELECT Id::varchar AS Id, "Name" FROM input', "CAST(id AS STRING) AS id, `Name`"),
        ("postgresql", "SELECT DATE_TRUNC('day', Day) AS d FROM input", "DATE_TRUNC('DAY', day) AS d"),
        ("duckdb", "SELECT strftime(t, '%Y') AS y FROM input", "DATE_FORMAT(t, 'yyyy') AS y"),
        ("bigquery", "SELECT SAFE_CAST(a AS INT64) AS a FROM `input`", "TRY_CAST(a AS BIGINT) AS a"),
    ],
)
def test_queries_for_other_engines_are_translated_with_a_remark(
    engines: EngineRegistry, spark: FakeSpark, engine: str, query: str, expected: str
):
    _, remarks = preprocess(TransformSql(engine, query=query), ROWS, engines)
    assert remarks == (
        f"the preprocessing query for {engine} was translated to Spark SQL: check that it means the same",
    )
    (transform,) = spark.asked
    assert transform.engine == "spark"
    assert expected in " ".join(transform.steps[0].query.split())


def test_names_of_steps_are_kept(engines: EngineRegistry, spark: FakeSpark):
    preprocess(sql("flink", ("a", "select * from input"), "select * from a"), ROWS, engines)
    assert [step.alias for step in spark.asked[0].steps] == ["a", None]


# --- Refused ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("transform", "error", "words"),
    [
        (sql("nosuch", "select 1"), EngineNotFound, "No engine is called 'nosuch', and its SQL is not known"),
        (sql("risingwave", ("a", "select 1"), "select from where"), InvalidQuery, r"line 1, column \d+ of step 2"),
        (sql("postgres", "select 1; select 2"), InvalidQuery, "not 2 statements"),
        (sql("postgres", "select id from input for update"), UnsupportedQuery, "FOR UPDATE/SHARE"),
        (sql("postgres", ("a", "select array_agg(a order by b) from input"), "select 1"), UnsupportedQuery, "step 1"),
    ],
)
def test_what_cannot_be_translated_is_refused_with_the_reason(
    engines: EngineRegistry, transform: TransformSql, error: type[OdfError], words: str
):
    with pytest.raises(error, match=words) as caught:
        preprocess(transform, ROWS, engines)
    assert "\x1b" not in caught.value.message


@pytest.mark.parametrize(
    ("bad", "error"),
    [
        ("select nope from first", InvalidQuery),
        ('select cast("Name" as int) as n from first', InvalidQuery),
        ("select random() as r from first", NondeterministicQuery),
        ("select id from first limit 1", NondeterministicQuery),
        ("explain select id from first", InvalidQuery),
    ],
)
def test_a_query_that_fails_names_its_step(engines: EngineRegistry, bad: str, error: type[OdfError]):
    transform = sql("datafusion", ("first", "select * from input"), ("second", bad), "select * from second")
    with pytest.raises(error, match=r"(?s)^Preprocessing with engine datafusion: .*step 2 \(`second`\)"):
        preprocess(transform, ROWS, engines)


@pytest.mark.parametrize("function", ["now()", "current_date", "random()", "uuid()"])
def test_datafusion_refuses_what_is_no_function_of_the_input(engines: EngineRegistry, function: str):
    with pytest.raises(NondeterministicQuery, match=function.removesuffix("()")):
        preprocess(sql("datafusion", f"select {function} as x, id from input"), ROWS, engines)


def test_temporal_tables_are_refused(engines: EngineRegistry, tmp_path: Path):
    from odfpy.dataset.transform import TemporalTable

    transform = TransformSql("datafusion", query="select 1", temporal_tables=(TemporalTable("input", ("id",)),))
    with pytest.raises(UnsupportedQuery, match="Temporal"):
        preprocess(transform, ROWS, engines)
