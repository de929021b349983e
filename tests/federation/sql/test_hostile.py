"""Hostile input: fragments of peers, transformations, conditions and names are nothing but what the grammar has.

Whatever is not refused can be written for every engine, and is one query over the one relation, with no other tables,
functions or statements.
"""

from __future__ import annotations

import json
import time
from typing import Any

import pyarrow as pa
import pytest
import sqlglot
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from sqlglot import exp
from support.examples import examples
from support.federation.transformations import transformed
from support.federation.worlds import NAMES

from odfpy.errors import InvalidQuery, OdfError, UnsupportedQuery
from odfpy.federation.sql.columns import columns_of
from odfpy.federation.sql.engines import WRITERS
from odfpy.federation.sql.errors import InvalidFragment
from odfpy.federation.sql.expressions import Call, Constant, Expression
from odfpy.federation.sql.fragment import Fragment, Output, explained
from odfpy.federation.sql.json_form import to_json
from odfpy.federation.sql.mapping import rewritten
from odfpy.federation.sql.reading import named_columns, read_text
from odfpy.federation.sql.source import source_sql
from odfpy.federation.sql.split import split
from odfpy.federation.sql.types import type_from_json, type_to_json
from odfpy.sharing.conditions import check_condition
from odfpy.sharing.decisions import View, VisiblePart

SCHEMA = pa.schema(
    [("n", pa.int64()), ("t", pa.string()), ("d", pa.date32()), ("x", pa.float64()), ("l", pa.list_(pa.int8()))]
)
MODEL = {name: transformed("{v}", name) for name in SCHEMA.names}
VIEW = View((VisiblePart(("n", "t"), "n > 0"), VisiblePart(("d", "x"), "t = recipient('name')")))

EVIL = (
    "n; DROP TABLE raw",
    "n) FROM secrets --",
    "(SELECT max(n) FROM secrets)",
    "n IN (SELECT n FROM secrets)",
    "EXISTS (SELECT 1)",
    "read_csv('/etc/passwd')",
    "pg_sleep(10)",
    "getenv('HOME')",
    "current_user",
    "now()",
    "random()",
    "nextval('s')",
    "n /* */ UNION SELECT 1",
    "secrets.n",
    "a.b.c.n",
    "*",
    "COLUMNS(*)",
    "COLUMNS('.*')",
    "n AS m",
    "n, t",
    "$1",
    "?",
    ":name",
    "@@version",
    "sum(n) OVER ()",
    "list_transform(l, x -> x)",
    "l[1]",
    "{'a': n}",
    "[n]",
    "n::JSON",
    "CAST(n AS secrets)",
    "CAST(n AS DECIMAL(99, 2))",
    "CAST(n AS STRUCT(a INT))",
    "TRY_CAST(t AS INT)",
    "t COLLATE nocase = 'a'",
    "t SIMILAR TO 'a'",
    "t ~ '(a+)+$'",
    "t ILIKE 'a'",
    "t LIKE t",
    "t LIKE 'a' ESCAPE 'a'",
    "t LIKE ANY ('a', 'b')",
    "repeat(t, 1000000000)",
    "t * 3",
    "INTERVAL '1' DAY",
    "d + INTERVAL '1' DAY",
    "CASE n WHEN (SELECT 1) THEN 1 END",
    "sum(sum(n))",
    "count(DISTINCT n)",
    "approx_distinct(n)",
    "md5(t) = 'a'",
    "sum(n) FILTER (WHERE n > 0)",
    "string_agg(t, ',' ORDER BY t)",
    "n = l",
    "1e999999999999",
    "'\0'",
    "9" * 60,
    "'unfinished",
    '"unfinished',
    "",
    " ",
    "--",
    "SELECT 1",
)


N = ["column", "n"]
EVIL_JSON = (
    None, True, 1, "n", "n; DROP TABLE raw", {}, {"column": "n"}, [], ["n"], ["column"], ["column", "n", "n"], ["column", None],
    ["column", ["n"]], ["column", "missing"], ["column", "secrets.n"], ["column", "n\0"], ["column", "n" * 2_000], ["select", N],
    ["read_csv", ["constant", "string", "/etc/passwd"]], ["now"], ["random"], ["__class__", N], ["ADD", N, N], ["add", N],
    ["add", N, N, N], ["add", "n", "n"], ["cast", N, "int64"], ["cast", "secrets", N], ["cast", "int64", N, N],
    ["cast", "null", N], ["cast", "date32[day]", N], ["cast", "decimal128(99, 2)", N], ["constant", "int64", 1],
    ["constant", "int64", "1; DROP"], ["constant", "int8", "300"], ["constant", "int64", "9" * 5_000], ["constant", "string", 1],
    ["constant", "string", "\0"], ["constant", "string", "\ud800"], ["constant", "string", "x" * 100_000],
    ["constant", "double", "x"], ["constant", "double", [1]], ["constant", "decimal128(3, 2)", "100.001"],
    ["constant", "decimal128(3, 2)", "NaN"], ["constant", "date32[day]", "today"], ["constant", "timestamp[us]", "now"],
    ["constant", "timestamp[us]", "2020-01-01T00:00:00+00:00"], ["constant", "bool", "TRUE"], ["constant", "null", "1"],
    ["constant", "binary", "00"], ["constant", "arrow:AAAA", "1"], ["sum", ["sum", N]], ["in", N, N], ["in", N], ["and"],
    ["and", N], ["not", ["not"]], ["case", N], ["case", N, N, N], ["like", ["column", "t"], ["column", "t"]],
    ["like", ["column", "t"], ["constant", "string", "a\\"]], ["eq", N, ["column", "l"]], ["eq", N, ["column", "t"]],
    ["substring", ["column", "t"], N], ["substring", ["column", "t"], ["constant", "int64", "0"]], ["year", N],
    ["mul", ["column", "t"], N], ["lower", N], ["coalesce"],
    ["md5"], ["md5", N], ["md5", ["column", "d"]], ["md5", ["column", "l"]], ["md5", ["column", "t"], ["column", "t"]],
)  # fmt: skip


def expression(text: str) -> Expression:
    return read_text(text, named_columns(columns_of(SCHEMA)))


def as_json(text: str) -> Any:
    return to_json(expression(text))


def parsed(json_value: Any, **more: Any) -> Fragment:
    return Fragment.parse({"entity": "e", "outputs": [{"name": "o", "expression": json_value}], **more}, SCHEMA)


def fragment_with(text: str, **more: Any) -> Fragment:
    return parsed(as_json(text), **more)


@pytest.mark.parametrize("json_value", EVIL_JSON, ids=lambda value: str(value)[:50])
def test_an_expression_is_in_the_grammar_or_refused(json_value: Any) -> None:
    for more in ({}, {"grouped": True, "groups": []}):
        with pytest.raises(InvalidFragment):
            parsed(json_value, **more)
    if json_value is not None:
        with pytest.raises(InvalidFragment):
            parsed(N, where=json_value)
    with pytest.raises(InvalidFragment):
        parsed(N, order=[{"expression": json_value}], limit=1)


@pytest.mark.parametrize("text", EVIL)
def test_a_transformation_is_in_the_grammar_or_refused(text: str) -> None:
    with pytest.raises(InvalidFragment):
        transformed(text, "n", SCHEMA)
    with pytest.raises(InvalidFragment):
        transformed(f"{{v}} + {text}", "n", SCHEMA)


def test_a_transformation_stands_in_parentheses_by_itself() -> None:
    found = rewritten(fragment_with("x * 2"), "peer", {"x": transformed("{v} + 1", "y")})
    assert explained(found).startswith('SELECT (CAST(("y" + 1) AS DOUBLE) * 2.0) AS "o" FROM "peer"')


@pytest.mark.parametrize("template", ["{v} {v}", "{v}) + (1", "'{v}'", "{v}.x", "{v}{v}"])
def test_the_place_of_a_value_is_a_value(template: str) -> None:
    """In quotes it is a text like any other, and never the value's name."""
    try:
        found = transformed(template, 'n"; --', {'n"; --': pa.int64()})
    except InvalidFragment:
        return
    assert template == "'{v}'"
    assert "--" not in repr(found)


# --- Shapes of JSON --------------------------------------------------------------------------------------------------

GOOD = parsed(
    N, where=as_json("t LIKE 'a%' AND x < 1"), order=[{"expression": ["column", "d"], "descending": True}], limit=3
).to_json()


@pytest.mark.parametrize(
    "change",
    [
        {"entity": None},
        {"entity": ""},
        {"entity": "e\0"},
        {"entity": "\ud800"},
        {"entity": "e" * 1_001},
        {"outputs": []},
        {"outputs": {}},
        {"outputs": [{"name": "a", "expression": N}] * 2},
        {"outputs": [{"name": "a", "expression": N, "more": 1}]},
        {"outputs": [{"name": f"c{at}", "expression": N} for at in range(5_001)]},
        {"outputs": [{"name": "a", "expression": N, "type": "nothing"}]},
        {"outputs": [{"name": "a", "expression": N, "type": "date32[day]"}]},
        {"outputs": [{"name": "a", "expression": N, "type": "decimal128(77, 3)"}]},
        {"outputs": [{"name": "a", "expression": N, "type": "arrow:" + "A" * 100}]},
        {"outputs": [{"name": "a", "expression": N, "type": "arrow:" + "A" * 100_000}]},
        {"outputs": [{"name": "a", "expression": ["column", "missing"]}]},
        {"where": 1},
        {"where": N},
        {"where": ["gt", ["sum", N], N]},
        {"where": ["n > 1"]},
        {"limit": -1},
        {"limit": 1.5},
        {"limit": True},
        {"limit": "1"},
        {"limit": 1 << 63},
        {"distinct": 1},
        {"distinct": True},
        {"grouped": True},
        {"grouped": "yes"},
        {"groups": [N]},
        {"order": [{"expression": N, "nulls": "first"}]},
        {"order": [{"expression": ["column", "l"]}]},
        {"other": 1},
    ],
    ids=lambda change: str(change)[:60],
)
def test_json_of_another_shape_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(InvalidFragment):
        Fragment.parse(GOOD | change, SCHEMA)


@pytest.mark.parametrize("json_value", [None, [], "SELECT 1", 3, {}])
def test_json_that_is_no_fragment_is_refused(json_value: Any) -> None:
    with pytest.raises(InvalidFragment):
        Fragment.parse(json_value, SCHEMA)


def test_a_fragment_comes_back_from_json_as_it_was() -> None:
    assert Fragment.parse(json.loads(json.dumps(GOOD)), SCHEMA).to_json() == GOOD


def test_a_group_with_a_constant_that_is_no_number_comes_back_from_json() -> None:
    key = Call("lt", (Constant(float("nan"), pa.float64()), Constant(float("nan"), pa.float64())), pa.bool_())
    grouped = Fragment("e", (Output("k", key),), is_grouped=True, groups=(key,))
    assert Fragment.parse(json.loads(json.dumps(grouped.to_json())), SCHEMA) == grouped


@pytest.mark.parametrize(
    "dtype",
    [pa.int8(), pa.uint64(), pa.decimal128(38, 10), pa.string(), pa.timestamp("ns"), pa.timestamp("ms", "Europe/Berlin"),
     pa.list_(pa.struct([("a", pa.int32())])), pa.binary(4), pa.time64("us")],
    ids=str,
)  # fmt: skip
def test_types_come_back_from_json_as_they_were(dtype: pa.DataType) -> None:
    assert type_from_json(type_to_json(dtype)) == dtype


# --- Sizes -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "(" * 100_000 + "n" + ")" * 100_000,
        "NOT " * 50_000 + "TRUE",
        "-" * 3_001 + "n",
        "n" + " + n" * 50_000,
        "n = 1 OR " * 40_000 + "TRUE",
        "CASE WHEN n = 1 THEN " * 300 + "n" + " END" * 300,
        "lower(" * 300 + "t" + ")" * 300,
        "n IN (" + ", ".join(map(str, range(60_000))) + ")",
        "CAST(" * 250 + "n" + " AS BIGINT)" * 250,
        "t || " * 60_000 + "t",
        "'" + "x" * 300_000 + "' = t",
    ],
    ids=range(11),
)
def test_what_is_too_large_or_deep_is_refused_soon(text: str) -> None:
    started = time.process_time()
    with pytest.raises(InvalidFragment):
        expression(text)
    assert time.process_time() - started < 20


def _nested(depth: int) -> Any:
    found: Any = N
    for _ in range(depth - 1):
        found = ["neg", found]
    return found


@pytest.mark.parametrize(
    "json_value",
    [_nested(101), _nested(5_000), ["and", *[["is_null", N]] * 20_001], ["in", N, *[["constant", "int64", "1"]] * 30_000],
     ["and", *[["and", *[["is_null", N]] * 150]] * 150]],
    ids=range(5),
)  # fmt: skip
def test_json_that_is_too_large_or_deep_is_refused(json_value: Any) -> None:
    with pytest.raises(InvalidFragment, match="parts"):
        parsed(N, where=json_value)


def test_the_deepest_expression_goes_all_the_way() -> None:
    fragment = parsed(_nested(100), where=["gt", _nested(99), N])
    assert rewritten(fragment, "e", MODEL).to_json()["entity"] == "e"
    assert explained(fragment)
    for dialect in WRITERS:
        assert source_sql(fragment, MODEL, "SELECT * FROM raw", VIEW, {}, dialect, schema=SCHEMA)


def test_long_conditions_within_the_limits_are_no_trouble() -> None:
    many = " OR ".join(f"n = {at}" for at in range(150))
    values = ", ".join(map(str, range(5_000)))
    assert fragment_with("n", where=as_json(f"({many}) AND n IN ({values})")).where is not None


def test_mappings_that_double_what_they_are_given_come_to_an_end() -> None:
    double = {"x": transformed("{v} * {v} + {v}", "x")}

    def go_on(fragment: Fragment) -> None:
        for _ in range(40):
            fragment = rewritten(fragment, "e", double)

    with pytest.raises(InvalidFragment, match="more than"):
        go_on(fragment_with("x"))


def test_wide_fragments_have_a_limit_on_all_their_parts() -> None:
    expression = as_json("n" + " + n" * 90)
    wide = [{"name": f"c{at}", "expression": expression} for at in range(2_000)]
    with pytest.raises(InvalidFragment, match="parts"):
        Fragment.parse({"entity": "e", "outputs": wide}, SCHEMA)


# --- Fuzzing ---------------------------------------------------------------------------------------------------------

pieces = st.sampled_from(
    ("n", "t", "d", "x", "l", '"n"', "'a'", "'o''b'", "'\\'", "1", "2.5", "1e3", "NULL", "TRUE", "(", ")", ",", "+", "-", "*", "/",
     "=", "<>", "<", "AND", "OR", "NOT", "IN", "BETWEEN", "LIKE", "IS", "CASE", "WHEN", "THEN", "ELSE", "END", "CAST", "AS",
     "BIGINT", "DATE", "VARCHAR", "DECIMAL(10, 2)", "sum", "count", "min", "lower", "coalesce", "SELECT", "FROM", "raw", ";",
     "--", "/*", "*/", "||", "::", ".", "extract", "YEAR", "DISTINCT", "OVER", "FILTER", "[", "]", "{v}", "recipient", "$$")
)  # fmt: skip
texts = st.lists(pieces, max_size=14).map(" ".join) | st.text(max_size=40)


@settings(max_examples=examples(60, 300), suppress_health_check=[HealthCheck.too_slow])
@given(texts, st.sampled_from(sorted(WRITERS)), st.booleans())
@example("count ( n )", "duckdb", True)
@example("lower ( t ) LIKE 'a'", "datafusion", False)
def test_whatever_passes_is_one_query_over_the_one_relation(text: str, dialect: str, grouped: bool) -> None:
    try:
        fragment = fragment_with(text, **({"grouped": True, "groups": []} if grouped else {}))
    except OdfError:
        return
    assert Fragment.parse(json.loads(json.dumps(fragment.to_json())), SCHEMA) == fragment
    explained(fragment)
    sql = source_sql(fragment, MODEL, "SELECT * FROM raw", VIEW, {"name": "a'b"}, dialect, schema=SCHEMA)
    check_one_query(sql, dialect)


@pytest.mark.parametrize("dialect", sorted(WRITERS))
def test_hashes_for_sketches_are_functions_of_the_engine_and_nothing_else(dialect: str) -> None:
    fragment = parsed(["min", ["md5", ["cast", "string", N]]], grouped=True, groups=[["md5", ["column", "t"]]])
    check_one_query(source_sql(fragment, MODEL, "SELECT * FROM raw", VIEW, {}, dialect, schema=SCHEMA), dialect)


def check_one_query(sql: str, dialect: str) -> None:
    names = {"datafusion": "postgres", "sql": "duckdb"}
    [tree] = sqlglot.parse(sql, dialect=names.get(dialect, dialect))
    assert isinstance(tree, exp.Select)
    assert {table.name for table in tree.find_all(exp.Table)} == {"raw"}
    assert not list(tree.find_all(exp.DDL, exp.DML, exp.Command, exp.Into, exp.Placeholder, exp.Parameter))
    assert {one.name.lower() for one in tree.find_all(exp.Anonymous)} <= {
        "arrow_cast", "with_timezone", "nanvl", "convert_to",
    }  # fmt: skip


@settings(max_examples=examples(40, 100))
@given(st.text(min_size=1, max_size=30), st.text(min_size=1, max_size=30), st.sampled_from(sorted(WRITERS)))
@example('"; DROP TABLE raw; --', "'; DROP TABLE raw; --", "duckdb")
@example("\\", "\\'", "postgres")
def test_names_and_texts_are_only_names_and_texts(name: str, text: str, dialect: str) -> None:
    try:
        schema = pa.schema([(name, pa.string())])
        json_value = {
            "entity": "e",
            "outputs": [{"name": name, "expression": ["column", name]}],
            "where": ["eq", ["column", name], ["constant", "string", text]],
        }
        fragment = Fragment.parse(json_value, schema)
        found = transformed("{v}", name)
    except (OdfError, UnicodeEncodeError):
        return
    sql = source_sql(fragment, {name: found}, "SELECT * FROM raw", VIEW_ALL, {}, dialect, schema=schema)
    names = {"datafusion": "postgres", "sql": "duckdb", "trino": "duckdb"}  # those of sqlglot have their own escapes
    [tree] = sqlglot.parse(sql, dialect=names.get(dialect, dialect))
    assert {table.name for table in tree.find_all(exp.Table)} == {"raw"}
    assert {column.name for column in tree.find_all(exp.Column)} <= {name, "*"}
    assert {one.this for one in tree.find_all(exp.Literal)} == {text}


VIEW_ALL = View((VisiblePart(None, None),))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("template", ["{v}", "coalesce({v}, {v})", "v || {v} || v_"])
def test_columns_of_any_name_are_transformed(name: str, template: str) -> None:
    found = transformed(template, name, {name: pa.string(), "v": pa.string(), "v_": pa.string()})
    assert name in repr(found)


# --- Questions -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "question",
    [
        "DROP TABLE e",
        "SELECT * FROM e; SELECT * FROM e",
        "INSERT INTO e VALUES (1)",
        "COPY e TO '/tmp/x'",
        "SELECT * INTO other FROM e",
        "SELECT * FROM '/etc/passwd'",
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM information_schema.tables",
        "SELECT * FROM secrets",
        "SELECT missing FROM e",
        "SELECT e.n FROM e AS other",
        "WITH e AS (SELECT * FROM secrets) SELECT * FROM e",
        "EXPLAIN SELECT * FROM e",
        "SET x = 1",
        "SELECT ? FROM e",
        "SELECT * FROM e FOR UPDATE",
        "SELECT",
        "",
        "SELECT " + "(" * 3_000 + "1" + ")" * 3_000,
        "SELECT * FROM e " + "UNION ALL SELECT * FROM e " * 2_000,
    ],
    ids=lambda text: text[:40],
)
@pytest.mark.parametrize("dialect", ["datafusion", "spark"])
def test_a_question_reads_entities_and_nothing_else(question: str, dialect: str) -> None:
    with pytest.raises((InvalidQuery, UnsupportedQuery, OdfError)):
        split(question, {"e": SCHEMA}, dialect)


def test_a_name_of_a_with_stands_before_that_of_an_entity() -> None:
    parts = split("WITH secrets AS (SELECT n FROM e) SELECT * FROM secrets", {"e": SCHEMA, "secrets": SCHEMA})
    assert {fragment.entity for fragment in parts.fragments.values()} == {"e"}


# --- Conditions of grants --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "rows",
    ["t = recipient('name')", "n BETWEEN 1 AND 3 OR t LIKE 'a\\%'", "CAST(t AS BIGINT) > 3", "coalesce(lower(t), '') <> upper(t)",
     "n + 1 > 2 AND NOT (d IS NULL)", "n IN (1, 2)", "n = '3'", "d >= '2020-01-01'", "x / 2 > -1", "TRUE"],
)  # fmt: skip
@pytest.mark.parametrize("dialect", sorted(WRITERS))
def test_what_sharing_takes_as_a_condition_is_one_here(rows: str, dialect: str) -> None:
    view = View((VisiblePart(None, check_condition(rows, SCHEMA.names)),))
    sql = source_sql(
        fragment_with("n"), MODEL, "SELECT * FROM raw", view, {"name": "a' OR ''='"}, dialect, schema=SCHEMA
    )
    check_one_query(sql, dialect)


def test_a_condition_that_does_not_fit_its_source_lets_nothing_through() -> None:
    for rows in ("missing = 1", "d + 1 > 2", "t > 3 + n"):
        with pytest.raises(InvalidFragment, match="does not fit"):
            source_sql(
                fragment_with("n"), MODEL, "SELECT * FROM raw", View((VisiblePart(None, rows),)), {}, "duckdb", schema=SCHEMA
            )  # fmt: skip
