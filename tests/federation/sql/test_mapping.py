"""Fragments in other words: transformations put together and made simple, types kept, what is missing NULL."""

from __future__ import annotations

import time
from datetime import date
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.federation.answers import run_datafusion, run_duckdb
from support.federation.transformations import transformed

from odfpy.federation.model.documents import DataSource, LocalData, SourceField
from odfpy.federation.model.relations import relation_sql
from odfpy.federation.sql.columns import columns_of
from odfpy.federation.sql.expressions import Constant
from odfpy.federation.sql.fragment import Fragment, Output, explained
from odfpy.federation.sql.mapping import rewritten
from odfpy.federation.sql.reading import named_columns, read_text
from odfpy.federation.sql.simplify import simplified
from odfpy.federation.sql.source import source_sql
from odfpy.federation.sql.writing import FRAGMENT
from odfpy.sharing.decisions import View, VisiblePart

MODEL = pa.schema([("tax", pa.float64()), ("price", pa.decimal128(15, 2)), ("flag", pa.string()), ("n", pa.int64())])
EVERYTHING = View((VisiblePart(None, None),))


def read(text: str, schema: pa.Schema = MODEL):
    return read_text(text, named_columns(columns_of(schema)))


def simple(text: str) -> str:
    return FRAGMENT.write(simplified(read(text)))


def test_a_mapping_back_and_forth_is_the_column_itself() -> None:
    """As in the reference web: `apac` stores a tax in its own way, and gives it to its peers in theirs."""
    assert simple("(tax / .05 - 1 + 1) * .05") == '"tax"'
    assert simple("(tax + 1) * .05 * 100") == '(("tax" * 5.0) + 5.0)'
    assert simple("tax * 100 / 100") == '"tax"'
    assert simple("-(-tax)") == '"tax"'
    assert simple("0 - tax * 2") == '(- ("tax" * 2.0))'
    assert simple("3 - tax / 4 - 1") == '(2.0 - ("tax" / 4.0))'


def test_decimal_and_whole_numbers_are_left_as_they_are() -> None:
    assert simple("price * 100 * 0.01") == '(("price" * 100) * 0.01)'
    assert simple("n * 2 * 3") == '(("n" * 2) * 3)'


def test_conditions_of_constants_are_simplified() -> None:
    assert simple("flag = 'a' AND TRUE AND flag = 'a'") == "(\"flag\" = 'a')"
    assert simple("flag = 'a' AND (TRUE AND FALSE)") == "FALSE"
    assert simple("NOT FALSE OR n > 1") == "TRUE"


doubles = st.integers(-(2**20), 2**20).map(lambda n: n / 16)
operations = st.lists(
    st.tuples(st.sampled_from("+-*/"), st.sampled_from((1, 2, -4, 0.5, 0.25, 8, -0.125, 0))), min_size=1, max_size=6
)


@given(operations, doubles)
def test_simpler_expressions_have_the_same_value(steps: list[tuple[str, float]], value: float) -> None:
    text, wanted = "tax", value
    for sign, number in steps:
        if (sign, number) == ("/", 0):
            continue
        text = f"({text}) {sign} ({number})"
        wanted = eval(f"wanted {sign} number")
    [[found]] = (
        run_duckdb(f"SELECT {FRAGMENT.write(simplified(read(text)))} FROM t", {"t": pa.table({"tax": [value]})})
        .to_pandas()
        .to_numpy()
    )
    assert found == wanted


def test_what_a_mapping_lacks_is_null_of_its_type() -> None:
    fragment = Fragment("e", (Output("t", read("tax")), Output("f", read("coalesce(flag, 'none')"))))
    found = rewritten(fragment, "peer", {})
    assert found.schema == fragment.schema
    assert found.outputs[0].expression == Constant(None, pa.float64())
    assert explained(found) == 'SELECT NULL AS "t", coalesce(NULL, \'none\') AS "f" FROM "peer"'


def test_types_are_those_of_the_asker_whatever_the_source_has() -> None:
    stored = pa.schema([("tax", pa.string()), ("price", pa.float32()), ("n", pa.int16()), ("flag", pa.int64())])
    fragment = Fragment("e", tuple(Output(name, read(name)) for name in MODEL.names), read("n / 2 > 0.9"))
    same = {name: transformed("{v}", name) for name in MODEL.names}
    sent = Fragment.parse(rewritten(fragment, "peer", same).to_json(), stored)
    assert sent.schema == MODEL
    rows = pa.table({"tax": ["0.5", "2"], "price": [1.25, None], "n": [1, 2], "flag": [7, 8]}).cast(stored)
    for dialect, run in (("duckdb", run_duckdb), ("datafusion", run_datafusion)):
        sql = source_sql(sent, same, "SELECT * FROM raw", EVERYTHING, {}, dialect, schema=stored)
        assert run(sql, {"raw": rows}).to_pylist() == [{"tax": 2.0, "price": None, "flag": "8", "n": 2}]


def test_numbers_that_become_whole_are_cut_off_everywhere() -> None:
    schema = pa.schema([("x", pa.float64()), ("y", pa.decimal128(5, 2))])
    values = pa.table(
        {"x": [2.5, -2.5, 1.99], "y": [Decimal("2.50"), Decimal("-2.50"), Decimal("1.99")]}, schema=schema
    )
    fragment = Fragment("e", tuple(Output(name, read(f"CAST({name} AS BIGINT)", schema)) for name in schema.names))
    for dialect, run in (("duckdb", run_duckdb), ("datafusion", run_datafusion), ("sql", run_duckdb)):
        sql = source_sql(
            fragment, {name: transformed("{v}", name) for name in schema.names}, "SELECT * FROM raw", EVERYTHING, {}, dialect,
            schema=schema,
        )  # fmt: skip
        for name in schema.names:
            assert run(sql, {"raw": values}).column(name).to_pylist() == [2, -2, 1]


def test_opaque_columns_pass_but_are_not_calculated_with() -> None:
    schema = pa.schema([("l", pa.list_(pa.int32())), ("k", pa.int64())])
    fragment = Fragment("e", (Output("l", read("l", schema)),), read("l IS NOT NULL", schema))
    sent = Fragment.parse(fragment.to_json(), schema)
    assert sent == fragment
    rows = pa.table({"l": [[1, 2], None], "k": [1, 2]}, schema=schema)
    sql = source_sql(sent, {"l": transformed("{v}", "l")}, "SELECT * FROM raw", EVERYTHING, {}, "duckdb", schema=schema)
    assert run_duckdb(sql, {"raw": rows}).to_pylist() == [{"l": [1, 2]}]


def test_fields_of_a_source_have_names_of_their_own() -> None:
    fields = (SourceField(name="day", path="Ship Date"), SourceField(name="flag"))
    rows = pa.table({"Ship Date": [date(2020, 1, 1)], "flag": ["a"]})
    for source in (
        "raw",
        "SELECT * FROM raw -- a remark",
        "(SELECT * FROM raw)",
        "\n WITH q AS (SELECT * FROM raw) SELECT * FROM q",
    ):
        declared = DataSource(name="rows", source_sql=source, fields=fields)
        data = LocalData(name="data", connection={"kind": "duckdb", "path": "x.db"}, data_sources=(declared,))
        found = run_duckdb(relation_sql(data, declared), {"raw": rows})
        assert found.to_pylist() == [{"day": date(2020, 1, 1), "flag": "a"}]


@pytest.mark.parametrize("hops", [100])
def test_a_hundred_relays_in_a_line_take_less_than_a_second(hops: int) -> None:
    where = read("tax BETWEEN 0.01 AND 0.05 AND flag IN ('A', 'N') AND price * (1 - tax) > 3")
    sums = [Output(f"s{at}", read("sum(price * (1 - tax))")) for at in range(8)]
    fragment = Fragment("e", (Output("flag", read("flag")), *sums), where, is_grouped=True, groups=(read("flag"),))
    same = {name: transformed("{v}", name) for name in MODEL.names}
    there, back = same | {"tax": transformed("{v} * 100", "tax")}, same | {"tax": transformed("{v} / 100", "tax")}
    started = time.process_time()
    for at in range(hops):
        fragment = Fragment.parse(rewritten(fragment, f"e{at}", back if at % 2 else there).to_json(), MODEL)
    assert time.process_time() - started < 5, "0.3 s where nothing else runs"
    assert fragment.where is not None
    assert simplified(fragment.where) == where
