"""Joins of tables whose columns have the same names: DataFusion must not take one for the other."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st
from support.examples import examples
from support.federation.answers import rows_of, run_datafusion, run_duckdb

from odfpy.errors import InvalidQuery
from odfpy.federation.sql.fragment import explained
from odfpy.federation.sql.split import split
from odfpy.federation.sql.splitting.own_names import with_own_names

Tables = Mapping[str, pa.Table]


def answer(sql: str, tables: Tables) -> pa.Table:
    """The answer by the fragments of a query, where each of them is the rows of its columns."""
    parts = split(sql, {name: table.schema for name, table in tables.items()})
    read = {
        name: run_duckdb(explained(fragment), {fragment.entity: tables[fragment.entity]}).cast(fragment.schema)
        for name, fragment in parts.fragments.items()
    }
    return run_datafusion(with_own_names(parts.rest), read)


def numbers(*values: int | None) -> pa.Array:
    return pa.array(values, pa.int64())


ITEM = pa.table({"k": numbers(1, 2, 3), "x": numbers(9, 5, None)})
OTHER = pa.table({"k": numbers(1, -2, 3), "x": numbers(2, 4, None)})
NARROW = OTHER.cast(pa.schema([("k", pa.int64()), ("x", pa.int32())]))


@pytest.mark.parametrize("other", [OTHER, NARROW], ids=["wrong rows", "an error of types"])
@pytest.mark.parametrize("join", ["RIGHT JOIN", "FULL JOIN", "LEFT JOIN", "JOIN"])
def test_a_condition_is_about_the_table_that_it_names(join: str, other: pa.Table) -> None:
    sql = f"SELECT a.k, b.k AS r FROM a {join} b ON a.k = b.k WHERE b.k < 0 OR (a.x = 9 AND b.x = 2)"
    tables = {"a": ITEM, "b": other}
    found = answer(sql, tables)
    assert rows_of(found) == rows_of(run_duckdb(sql, tables))
    assert found.schema.names == ["k", "r"]


def test_a_join_with_itself_in_a_subquery_too() -> None:
    sql = (
        "WITH t AS (SELECT a.k, b.x FROM a RIGHT JOIN a AS b ON a.k = b.x)"
        " SELECT s.k, t.x, (SELECT max(x) FROM b WHERE b.k = t.x) AS m FROM t FULL JOIN t AS s ON t.k = s.x"
        " WHERE t.x IS NULL OR (s.x = 9 AND t.k = 2) OR EXISTS (SELECT 1 FROM b JOIN a ON a.x = b.x WHERE a.k = t.x)"
        " ORDER BY t.x, s.k LIMIT 5"
    )
    tables = {"a": ITEM, "b": OTHER}
    assert rows_of(answer(sql, tables)) == rows_of(run_duckdb(sql, tables))


@pytest.mark.parametrize(
    "sql",
    [
        'SELECT "_0"."a" AS "a" FROM "f1" AS "_0" WHERE "_0"."b" > 1',
        'SELECT 1 AS "one"',
    ],
)
def test_a_query_without_joins_stays_as_it_is(sql: str) -> None:
    assert with_own_names(sql) == sql


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM a JOIN b ON a.k = b.k",
        "SELECT a.k, b.k FROM a JOIN b ON a.k = b.k",
        "SELECT a.x AS k, a.k FROM a",
        "SELECT t.k FROM (SELECT a.k, b.k FROM a JOIN b ON a.k = b.k) AS t",
        "WITH t AS (SELECT a.k, b.k FROM a JOIN b ON a.k = b.k) SELECT * FROM t",
        "SELECT a.x, a.k FROM a UNION ALL SELECT b.k, b.k FROM b",
    ],
)
def test_two_columns_of_one_name_are_told_in_the_words_of_the_query(sql: str) -> None:
    with pytest.raises(InvalidQuery, match="have the name 'k'"):
        answer(sql, {"a": ITEM, "b": OTHER})


def test_spark_takes_two_columns_of_one_name() -> None:
    entities = {"a": ITEM.schema, "b": OTHER.schema}
    split("SELECT a.k, b.k FROM a JOIN b ON a.k = b.k", entities, "spark")
    with pytest.raises(InvalidQuery, match="A star stands for columns"):
        split("SELECT * FROM (SELECT a.k, a.x AS k FROM a) AS t JOIN b ON b.k = t.k", entities, "spark")


# --- Any joins --------------------------------------------------------------------------------------------------------

COLUMNS = ("k", "x", "y")
small = st.none() | st.integers(1, 4)


@st.composite
def tables(draw: st.DrawFn) -> Tables:
    found = {}
    for name in ("t1", "t2"):
        rows = draw(st.lists(st.tuples(small, small, small), min_size=1, max_size=6))
        found[name] = pa.table({one: numbers(*(row[at] for row in rows)) for at, one in enumerate(COLUMNS)})
    return found


@st.composite
def conditions(draw: st.DrawFn, names: tuple[str, ...], depth: int = 2) -> str:
    if depth and draw(st.integers(0, 4)):
        one, other = draw(conditions(names, depth - 1)), draw(conditions(names, depth - 1))
        return f"({one} {draw(st.sampled_from(('AND', 'OR')))} {other})"
    column = f"{draw(st.sampled_from(names))}.{draw(st.sampled_from(COLUMNS))}"
    number = draw(st.integers(1, 4))
    return draw(st.sampled_from((f"{column} = {number}", f"{column} < {number}", f"{column} IS NULL")))


@st.composite
def joins(draw: st.DrawFn) -> str:
    names = ("a", "b", "c")[: draw(st.sampled_from((2, 2, 3)))]
    table = st.sampled_from(("t1", "t2"))
    column = st.sampled_from(COLUMNS)
    text = f"{draw(table)} AS a"
    for at, name in enumerate(names[1:], 1):
        kind = draw(st.sampled_from(("RIGHT JOIN", "FULL JOIN", "LEFT JOIN", "JOIN")))
        text += f" {kind} {draw(table)} AS {name} ON {draw(st.sampled_from(names[:at]))}.{draw(column)}"
        text += f" = {name}.{draw(column)}"
    shown = ", ".join(f"{name}.{draw(column)} AS {name}_shown" for name in names)
    return f"SELECT {shown} FROM {text} WHERE {draw(conditions(names))}"


@settings(max_examples=examples(60, 300))
@given(tables(), joins())
def test_any_join_gives_what_another_engine_gives(known: Tables, sql: str) -> None:
    note(sql)
    assert rows_of(answer(sql, known)) == rows_of(run_duckdb(sql, known))
