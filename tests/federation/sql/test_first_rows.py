"""The first rows of a source, in the order of a fragment, whatever its columns are called."""

from __future__ import annotations

import pyarrow as pa
import pytest
from support.federation.answers import run_datafusion, run_duckdb

from odfpy.federation.sql.columns import columns_of
from odfpy.federation.sql.expressions import Expression
from odfpy.federation.sql.fragment import Fragment, Order, Output
from odfpy.federation.sql.reading import named_columns, read_text
from odfpy.federation.sql.source import source_sql
from odfpy.federation.sql.types import INT, TEXT
from odfpy.sharing.decisions import ALL, View, VisiblePart

ENGINES = {"duckdb": run_duckdb, "datafusion": run_datafusion}
ROWS = pa.table({"a": pa.array([3, 1, 2, None], INT), "b": pa.array(["x", "1", "20", "7"], TEXT)})
SOME = View((VisiblePart(None, "a IS NULL OR a > 1"),))
ENTITY = {"a": INT, "b": INT, "__shows": INT, "o0": INT, "visible": INT}
WORDS = {"a": "char_length({v})", "b": "{v}", "__shows": "{v} + 1", "o0": "-{v}", "visible": "{v} * 2"}
"""What the entity's columns are, of the fields b, a, a, a, a: each has the name of something else."""


def of_fields() -> dict[str, Expression]:
    find = named_columns(columns_of({"a": INT, "b": TEXT}))
    return {name: read_text(text.replace("{v}", "b" if name == "a" else "a"), find) for name, text in WORDS.items()}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("view", [ALL, SOME], ids=["all", "some"])
@pytest.mark.parametrize("is_distinct", [False, True])
def test_rows_are_ordered_by_what_columns_are_and_not_by_what_they_are_called(
    engine: str, view: View, is_distinct: bool
) -> None:
    columns = named_columns(columns_of(ENTITY))
    outputs = tuple(Output(name, read_text(f'"{name}"', columns)) for name in ENTITY)
    order = tuple(Order(read_text(f'"{name}"', columns), descending=name == "o0") for name in ("a", "o0", "b"))
    fragment = Fragment("e", outputs, order=order, limit=3, is_distinct=is_distinct)
    relation = 'SELECT "a", "b" FROM "raw"'
    sql = source_sql(fragment, of_fields(), relation, view, {}, engine, schema=ROWS.schema)
    found = ENGINES[engine](sql, {"raw": ROWS})
    assert found.schema.names == list(ENTITY)
    rows = [tuple(row.values()) for row in found.to_pylist()]
    first = [(1, 1, 2, -1, 2)] if view is ALL else []
    assert rows == [*first, (1, 3, 4, -3, 6), (1, None, None, None, None), (2, 2, 3, -2, 4)][:3]


@pytest.mark.parametrize("engine", ENGINES)
def test_rows_are_ordered_by_what_is_no_column_of_theirs(engine: str) -> None:
    columns = named_columns(columns_of(ENTITY))
    outputs = (Output("b", read_text('"a"', columns)), Output("a", read_text('"o0"', columns)))
    order = (Order(read_text('"o0" * 2 + "__shows"', columns), descending=True, nulls_first=False),)
    sql = source_sql(
        Fragment("e", outputs, order=order, limit=2), of_fields(), 'SELECT "a", "b" FROM "raw"', SOME, {}, engine,
        schema=ROWS.schema,
    )  # fmt: skip
    assert ENGINES[engine](sql, {"raw": ROWS}).to_pydict() == {"b": [2, 1], "a": [-2, -3]}
