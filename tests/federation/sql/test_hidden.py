"""What is hidden has no influence: not on answers, not on schemas, not on errors, whatever a fragment calculates.

Two worlds that differ in hidden cells and rows only give the same, in the engines that sources run in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st
from support.examples import examples
from support.federation.answers import answer_of, rows_of, run_datafusion, run_duckdb
from support.federation.questions import questions
from support.federation.transformations import transformed
from support.federation.worlds import Source, World, value_of, worlds

from odfpy.federation.sql.columns import columns_of
from odfpy.federation.sql.expressions import Expression
from odfpy.federation.sql.fragment import Fragment, Order, Output
from odfpy.federation.sql.reading import named_columns, read_text
from odfpy.federation.sql.source import source_sql
from odfpy.federation.sql.split import split
from odfpy.sharing.decisions import View, VisiblePart

ENGINES = {"duckdb": run_duckdb, "datafusion": run_datafusion}
each_engine = pytest.mark.parametrize("engine", ENGINES)


# --- Random worlds ---------------------------------------------------------------------------------------------------


@st.composite
def _two_worlds(draw: st.DrawFn) -> tuple[World, World, str]:
    """A world, another one with other hidden cells, and a question."""
    world = draw(worlds())
    other = {name: [draw(_otherwise(source)) for source in sources] for name, sources in world.sources.items()}
    return world, replace(world, sources=other), draw(questions(world.entities))


@st.composite
def _otherwise(draw: st.DrawFn, source: Source) -> Source:
    """The same source with different values where these are hidden, and with other hidden rows.

    Conditions may read hidden cells, so that only changes count after which the same shows.
    """
    visible = source.shown()
    rows: list[dict[str, Any]] = []
    for row in source.rows:
        shown = replace(source, rows=(row,)).shown()
        changed = {field.name: draw(value_of(field.type)) for field in source.schema}
        if not shown:
            candidate = changed
        else:
            [cells] = shown
            candidate = {name: changed[name] if cells[name] is None else row[name] for name in row}
        is_same = repr(replace(source, rows=(candidate,)).shown()) == repr(shown)
        rows.append(candidate if is_same else row)
    hidden = {field.name: draw(value_of(field.type)) for field in source.schema}
    if not replace(source, rows=(hidden,)).shown():
        rows.append(hidden)
    found = replace(source, rows=tuple(rows))
    assert repr(found.shown()) == repr(visible)
    return found


@settings(max_examples=examples(15, 60), suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(_two_worlds())
def test_two_worlds_with_the_same_visible_cells_give_the_same(asked: tuple[World, World, str]) -> None:
    world, other, question = asked
    note(question)
    for fragment in split(question, world.entities).fragments.values():
        whole = replace(fragment, limit=None)  # which of equal rows come first may depend on anything
        for one, changed in zip(world.sources[fragment.entity], other.sources[fragment.entity], strict=True):
            assert rows_of(answer_of(one, whole)) == rows_of(answer_of(changed, whole))


# --- Whatever could fail on a hidden value ---------------------------------------------------------------------------

ROWS = {
    "n": pa.array([1, 2, 0, 9223372036854775807], pa.int64()),
    "d": pa.array([1.0, 2.0, 0.0, 1e308]),
    "t": pa.array(["1", "2", "hidden", "hidden too"]),
    "p": pa.array([True, True, False, False]),
}
HIDDEN_GONE = {name: values[:2] for name, values in ROWS.items()}
SCHEMA = pa.table(ROWS).schema
ROW_GRANT = View((VisiblePart(("n", "d", "t"), "p"),))
CELL_GRANT = View((VisiblePart(("n", "d", "t"), "p"), VisiblePart(("p",), None)))
EXPRESSIONS = {name: transformed("{v}", name) for name in SCHEMA.names}

CONDITIONS = (
    "CAST(t AS BIGINT) > 1",
    "CAST(t AS DOUBLE) IS NULL OR n > 0",
    "n * n > 1",
    "n + n > 1",
    "1 / n > 0.1",
    "CAST(d * 1e10 AS BIGINT) > 5",
    "CAST(n AS SMALLINT) = 1",
    "CAST(n AS DECIMAL(3, 0)) = 1",
    "CAST(coalesce(t, 'x') AS BIGINT) > 0",
    "CASE WHEN n IS NULL THEN CAST('x' || t AS BIGINT) > 0 ELSE TRUE END",
    "CAST(coalesce(t, upper(coalesce(t, 'x'))) AS DOUBLE) > 0",
)
NUMBERS = ("CAST(t AS BIGINT)", "n * n", "CAST(coalesce(t, 'x') AS BIGINT)", "CAST(n AS TINYINT)")


def read(text: str) -> Expression:
    return read_text(text, named_columns(columns_of(SCHEMA)))


def fragment_of(
    where: str | None = None, outputs: Sequence[Output] = (Output("n", read("n")),), **more: Any
) -> Fragment:
    return Fragment("e", tuple(outputs), None if where is None else read(where), **more)


def answer(fragment: Fragment, view: View, engine: str, rows: dict[str, pa.Array]) -> Any:
    """The rows or the error of a source."""
    sql = source_sql(fragment, EXPRESSIONS, "SELECT * FROM raw", view, {}, engine, schema=SCHEMA)
    try:
        found = ENGINES[engine](sql, {"raw": pa.table(rows)})
    except Exception as error:  # noqa: BLE001 - of either engine
        return type(error).__name__, str(error)
    return found.schema, rows_of(found)


@each_engine
@pytest.mark.parametrize("where", CONDITIONS)
def test_a_condition_never_fails_on_a_hidden_row(engine: str, where: str) -> None:
    fragment = fragment_of(where)
    found = answer(fragment, ROW_GRANT, engine, ROWS)
    assert found == answer(fragment, ROW_GRANT, engine, HIDDEN_GONE)


@each_engine
@pytest.mark.parametrize("where", [one for one in CONDITIONS if "coalesce" not in one and "CASE" not in one])
def test_a_condition_never_fails_on_a_hidden_cell_of_a_row_that_shows(engine: str, where: str) -> None:
    blank = {
        name: pa.array([value if show else None for value, show in zip(column.to_pylist(), (1, 1, 0, 0), strict=True)], column.type)
        for name, column in ROWS.items()
    } | {"p": ROWS["p"]}  # fmt: skip
    fragment = fragment_of(where)
    found = answer(fragment, CELL_GRANT, engine, ROWS)
    assert found == answer(fragment, CELL_GRANT, engine, blank)
    assert not isinstance(found[1], str), "nothing of it fails"


@each_engine
@pytest.mark.parametrize("number", NUMBERS)
def test_no_output_group_order_or_aggregate_fails_on_a_hidden_row(engine: str, number: str) -> None:
    outputs = [Output("x", read(number))]
    aggregates = [Output("x", read(f"{kind}({number})")) for kind in ("sum", "min", "max", "count")]
    fragments = [
        fragment_of(outputs=outputs),
        fragment_of(outputs=outputs, is_distinct=True),
        fragment_of(order=(Order(read(number)),), limit=5),
        fragment_of(outputs=outputs, is_grouped=True, groups=(read(number),)),
        *(fragment_of(outputs=[one], is_grouped=True) for one in aggregates),
    ]
    for fragment in fragments:
        found = answer(fragment, ROW_GRANT, engine, ROWS)
        assert found == answer(fragment, ROW_GRANT, engine, HIDDEN_GONE)
        assert not isinstance(found[1], str), "nothing of it fails"


@each_engine
def test_a_hidden_column_is_one_that_is_missing(engine: str) -> None:
    view = View((VisiblePart(("n",), None),))
    hidden = fragment_of("t IS NULL", [Output("t", read("t")), Output("n", read("n"))])
    sql = source_sql(hidden, EXPRESSIONS, "SELECT * FROM raw", view, {}, engine, schema=SCHEMA)
    lacking = {name: one for name, one in EXPRESSIONS.items() if name != "t"}
    assert sql == source_sql(hidden, lacking, "SELECT * FROM raw", view, {}, engine, schema=SCHEMA)
    assert run(engine, sql).column("t").to_pylist() == [None] * 4


def run(engine: str, sql: str) -> pa.Table:
    return ENGINES[engine](sql, {"raw": pa.table(ROWS)})


@each_engine
def test_grants_are_a_union_of_cells_and_never_mix(engine: str) -> None:
    view = View((VisiblePart(("n",), "n < 2"), VisiblePart(("t",), "n > 0")))
    fragment = fragment_of(outputs=[Output(one, read(one)) for one in ("n", "t", "p")])
    sql = source_sql(fragment, EXPRESSIONS, "SELECT * FROM raw", view, {}, engine, schema=SCHEMA)
    assert run(engine, sql).to_pylist() == [
        {"n": 1, "t": "1", "p": None},
        {"n": None, "t": "2", "p": None},
        {"n": 0, "t": None, "p": None},
        {"n": None, "t": "hidden too", "p": None},
    ]


@each_engine
def test_nothing_shows_where_no_grant_has_a_column_that_is_there(engine: str) -> None:
    view = View((VisiblePart(("elsewhere",), None),))
    sql = source_sql(fragment_of(), EXPRESSIONS, "SELECT * FROM raw", view, {}, engine, schema=SCHEMA)
    assert run(engine, sql).num_rows == 0


@each_engine
def test_an_attribute_that_somebody_lacks_equals_nothing(engine: str) -> None:
    view = View((VisiblePart(None, "t = recipient('name')"),))
    for attributes, rows in (({"name": "hidden"}, 1), ({}, 0), ({"name": "' OR TRUE OR t = '"}, 0)):
        sql = source_sql(fragment_of(), EXPRESSIONS, "SELECT * FROM raw", view, attributes, engine, schema=SCHEMA)
        assert run(engine, sql).num_rows == rows


def test_a_column_that_is_only_compared_stays_bare_for_the_statistics_of_the_source() -> None:
    sql = source_sql(fragment_of("n > 1"), EXPRESSIONS, "SELECT * FROM raw", ROW_GRANT, {}, "duckdb", schema=SCHEMA)
    assert '"relation"."n" AS "n"' in sql
    sql = source_sql(fragment_of("n * n > 1"), EXPRESSIONS, "SELECT * FROM raw", ROW_GRANT, {}, "duckdb", schema=SCHEMA)
    assert 'CASE WHEN "visible"."__shows" THEN "visible"."n"' in sql
