"""Joins in DataFusion give the rows that DuckDB gives, also where both sides have columns of the same names."""

from __future__ import annotations

from collections import Counter
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odfpy.engine.datafusion.session import new_session

SCHEMA = pa.schema([("k", pa.int64()), ("x", pa.int64())])
JOINS = ["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"]
ON = ["a.k = b.k", "a.k = b.x", "a.k = b.k AND a.x = b.x", "a.k = b.k AND a.x < b.x", "a.k < b.k"]

tables = st.lists(st.tuples(st.sampled_from([None, 1, 2, -1]), st.sampled_from([None, 2, 9])), max_size=6).map(
    lambda rows: pa.table([pa.array([row[i] for row in rows], pa.int64()) for i in range(2)], schema=SCHEMA)
)
columns = st.sampled_from(["a.k", "a.x", "b.k", "b.x"])
atoms = st.builds("{} {} {}".format, columns, st.sampled_from(["=", "<", ">=", "<>"]), st.integers(-1, 9)) | st.builds(
    "{} IS {}NULL".format, columns, st.sampled_from(["", "NOT "])
)
conditions = st.recursive(
    atoms,
    lambda inner: st.builds("({} {} {})".format, inner, st.sampled_from(["AND", "OR"]), inner),
    max_leaves=5,
)


def rows_of(query: str, a: pa.Table, b: pa.Table) -> Counter[tuple[Any, ...]]:
    session = new_session(deterministic=True)
    for name, table in (("a", a), ("b", b)):
        batches = table.to_batches() or [pa.RecordBatch.from_pylist([], schema=SCHEMA)]
        session.register_record_batches(name, [batches])
    return Counter(tuple(row.values()) for batch in session.sql(query).collect() for row in batch.to_pylist())


@given(a=tables, b=tables, join=st.sampled_from(JOINS), on=st.sampled_from(ON), where=conditions)
def test_joins_of_tables_with_columns_of_the_same_names(
    a: pa.Table, b: pa.Table, join: str, on: str, where: str
) -> None:
    query = f"SELECT a.k, a.x, b.k AS bk, b.x AS bx FROM a {join} b ON {on} WHERE {where}"
    assert rows_of(query, a, b) == Counter(duckdb.sql(query).fetchall())


@pytest.mark.parametrize("join", JOINS)
def test_a_condition_on_both_sides_loses_no_row(join: str) -> None:
    a = pa.table([pa.array([1, 2, -3]), pa.array([9, 9, 9])], schema=SCHEMA)
    b = pa.table([pa.array([1, 2, -3, -4]), pa.array([2, 3, 2, 5])], schema=SCHEMA)
    query = f"SELECT a.k, b.k AS r FROM a {join} b ON a.k = b.k WHERE b.k < 0 OR (a.x = 9 AND b.x = 2)"
    assert rows_of(query, a, b) == Counter(duckdb.sql(query).fetchall())
