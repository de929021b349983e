"""The SQL for PostgreSQL, in a PostgreSQL server: the same answers as in duckdb, and nothing hidden there either."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st
from support.examples import examples
from support.federation.answers import answer_of, rows_of, sql_for
from support.federation.questions import questions
from support.federation.sketches import sketch_fragment, sketch_in, sketch_of, sketch_sql, values_of
from support.federation.transformations import transformed
from support.federation.worlds import World, quoted, worlds
from support.servers.postgres import postgres

from odfpy.federation.sql.columns import columns_of
from odfpy.federation.sql.engines import WRITERS
from odfpy.federation.sql.fragment import Fragment, Output
from odfpy.federation.sql.reading import named_columns, read_text
from odfpy.federation.sql.source import source_sql
from odfpy.federation.sql.split import split
from odfpy.sharing.decisions import View, VisiblePart


@pytest.fixture(scope="module")
def database() -> Iterator[psycopg.Connection[Any]]:
    with (
        postgres() as url,
        psycopg.connect(url.replace("+psycopg", ""), autocommit=True, prepare_threshold=None) as connection,
    ):
        yield connection


def run(database: psycopg.Connection[Any], sql: str, table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The answer to a query over the one table, with the types that were asked for."""
    columns = ", ".join(f"{quoted(field.name)} {WRITERS['postgres'].type_name(field.type)}" for field in table.schema)
    places = ", ".join(["%s"] * table.num_columns)
    with database.cursor() as cursor:
        cursor.execute("DROP TABLE IF EXISTS raw")
        cursor.execute(f"CREATE TABLE raw ({columns})")
        cursor.executemany(f"INSERT INTO raw VALUES ({places})", [tuple(row.values()) for row in table.to_pylist()])
        cursor.execute(sql)
        rows = cursor.fetchall()
        assert [column.name for column in cursor.description or ()] == schema.names
    return pa.table([pa.array([row[at] for row in rows], field.type) for at, field in enumerate(schema)], schema=schema)


@st.composite
def _asked(draw: st.DrawFn) -> tuple[World, str]:
    world = draw(worlds())
    return world, draw(questions(world.entities))


@settings(max_examples=examples(8, 25), suppress_health_check=list(HealthCheck))
@given(_asked())
def test_a_source_in_postgresql_gives_what_one_in_duckdb_gives(
    database: psycopg.Connection[Any], asked: tuple[World, str]
) -> None:
    world, question = asked
    for fragment in split(question, world.entities).fragments.values():
        whole = replace(fragment, limit=None)
        for source in world.sources[fragment.entity]:
            sql = sql_for(replace(source, engine="postgres"), whole)
            note(sql)
            found = run(database, sql, source.table, whole.schema)
            assert rows_of(found) == rows_of(answer_of(replace(source, engine="duckdb"), whole))


SCHEMA = pa.schema([("n", pa.int64()), ("t", pa.string()), ("x", pa.float64()), ("p", pa.bool_())])
ROWS = pa.table({"n": [1, 0], "t": ["1", "hidden"], "x": [0.5, 1e308], "p": [True, False]}, schema=SCHEMA)


@pytest.mark.parametrize(
    "where",
    ["CAST(t AS BIGINT) = 1", "1 / n > 0.5", "x * 1e10 > 1", "CAST(coalesce(t, 'x') AS BIGINT) > 0", "CAST(x AS SMALLINT) < 2",
     "CASE WHEN n IS NULL THEN CAST('x' || t AS BIGINT) > 0 ELSE TRUE END"],
)  # fmt: skip
def test_a_condition_never_fails_on_a_hidden_row(database: psycopg.Connection[Any], where: str) -> None:
    read = named_columns(columns_of(SCHEMA))
    fragment = Fragment("e", (Output("n", read_text("n", read)),), read_text(where, read))
    model = {name: transformed("{v}", name) for name in SCHEMA.names}
    view = View((VisiblePart(("n", "t", "x"), "p"),))
    sql = source_sql(fragment, model, "SELECT * FROM raw", view, {}, "postgres", schema=SCHEMA)
    assert run(database, sql, ROWS, fragment.schema).to_pylist() == [{"n": 1}]


def test_a_division_by_zero_is_that_of_doubles(database: psycopg.Connection[Any]) -> None:
    schema = pa.schema([("x", pa.float64()), ("y", pa.float64())])
    rows = pa.table({"x": [1.0, -1.0, 0.0, None, 3.0], "y": [0.0, 0.0, 0.0, 0.0, 2.0]})
    read = named_columns(columns_of(schema))
    fragment = Fragment("e", (Output("q", read_text("x / y", read)),))
    model = {name: transformed("{v}", name) for name in schema.names}
    sql = source_sql(fragment, model, "SELECT * FROM raw", View((VisiblePart(),)), {}, "postgres", schema=schema)
    found = run(database, sql, rows, fragment.schema).column("q").to_pylist()
    assert [str(one) for one in found] == ["inf", "-inf", "nan", "None", "1.5"]


@settings(max_examples=examples(8, 25), suppress_health_check=list(HealthCheck))
@given(values_of)
def test_a_sketch_of_postgresql_is_that_of_every_engine(
    database: psycopg.Connection[Any], drawn: tuple[pa.DataType, list[Any]]
) -> None:
    dtype, values = drawn
    fragment = sketch_fragment(dtype)
    raw = pa.table({"v": pa.array(values, dtype)})
    assert sketch_in(run(database, sketch_sql(fragment, dtype, "postgres"), raw, fragment.schema)) == sketch_of(values)


def test_a_sketch_does_not_depend_on_how_a_session_writes_dates(database: psycopg.Connection[Any]) -> None:
    values = [date(2020, 12, 31), date(1, 1, 1), None]
    raw = pa.table({"v": pa.array(values, pa.date32())})
    database.execute("SET DateStyle = 'German'")
    try:
        fragment = sketch_fragment(pa.date32())
        sql = sketch_sql(fragment, pa.date32(), "postgres")
        assert sketch_in(run(database, sql, raw, fragment.schema)) == sketch_of(values)
    finally:
        database.execute("RESET DateStyle")
