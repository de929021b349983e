"""Hints never lose a row: a file of which a row fulfils all of them is kept, whatever its statistics."""

from __future__ import annotations

import datetime as dt
import io
import json
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.examples import examples

from odfpy.sharing.files.schema import shared_schema
from odfpy.sharing.files.statistics import footer_statistics
from odfpy.sharing.hints import hints_of, may_have_rows

SCHEMA = pa.schema(
    [("n", pa.int64()), ("s", pa.string()), ("d", pa.date32()), ("t", pa.timestamp("us", "UTC")), ("f", pa.float64())]
)
UTC = dt.timezone.utc
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "n": st.integers(-2, 2),
    "s": st.sampled_from(["", "a", "b", "ž", "x'y"]),
    "d": st.dates(dt.date(2024, 1, 1), dt.date(2024, 1, 3)),
    "t": st.integers(0, 3000).map(lambda n: dt.datetime(2024, 1, 1, microsecond=n, tzinfo=UTC)),
    "f": st.sampled_from([0.0, -0.0, 1.5, float("nan")]),
}
TYPES = {"n": "long", "s": "string", "d": "date", "t": "timestamp", "f": "double"}
ROWS = st.lists(st.fixed_dictionaries({name: st.none() | values for name, values in VALUES.items()}), max_size=4)
OPERATORS = {
    "equal": lambda a, b: a == b, "lessThan": lambda a, b: a < b, "lessThanOrEqual": lambda a, b: a <= b,
    "greaterThan": lambda a, b: a > b, "greaterThanOrEqual": lambda a, b: a >= b,
}  # fmt: skip
SIGNS = {"equal": "=", "lessThan": "<", "lessThanOrEqual": "<=", "greaterThan": ">", "greaterThanOrEqual": ">="}


@st.composite
def comparisons(draw: st.DrawFn) -> dict[str, Any]:
    name = draw(st.sampled_from(list(VALUES)))
    column = {"op": "column", "name": draw(st.sampled_from([name, name.upper()])), "valueType": TYPES[name]}
    literal = {"op": "literal", "value": written(draw(VALUES[name])), "valueType": TYPES[name]}
    children = [column, literal] if draw(st.booleans()) else [literal, column]
    return {"op": draw(st.sampled_from(list(OPERATORS))), "children": children}


TREES = st.recursive(
    comparisons()
    | st.sampled_from(list(VALUES)).map(
        lambda n: {"op": "isNull", "children": [{"op": "column", "name": n, "valueType": TYPES[n]}]}
    ),
    lambda inner: (
        st.builds(
            lambda op, children: {"op": op, "children": children},
            st.sampled_from(["and", "or"]),
            st.lists(inner, min_size=2, max_size=3),
        )
        | inner.map(lambda one: {"op": "not", "children": [one]})
    ),
    max_leaves=5,
)


def written(value: Any) -> str:
    if isinstance(value, dt.datetime):
        return value.isoformat(timespec="microseconds").replace("+00:00", "Z")
    return str(value)


def truth(tree: dict[str, Any], row: dict[str, Any]) -> bool | None:
    """A condition of a row in SQL's three values."""
    children = tree.get("children", [])
    if tree["op"] == "not":
        found = truth(children[0], row)
        return None if found is None else not found
    if tree["op"] in ("and", "or"):
        found_all = [truth(child, row) for child in children]
        decisive = tree["op"] == "or"
        return decisive if decisive in found_all else None if None in found_all else not decisive
    if tree["op"] == "isNull":
        return row[children[0]["name"]] is None
    values = [operand(child, row) for child in children]
    if None in values:
        return None
    if any(isinstance(value, float) and value != value for value in values):  # NaN is the greatest, as Spark has it
        ranks = [(1, 0.0) if value != value else (0, value) for value in values]
        return OPERATORS[tree["op"]](*ranks)
    return OPERATORS[tree["op"]](*values)


def operand(node: dict[str, Any], row: dict[str, Any]) -> Any:
    if node["op"] == "column":
        return row[node["name"].lower()]
    text = node["value"]
    return {
        "long": int, "string": str, "double": float, "date": dt.date.fromisoformat,
        "timestamp": lambda one: dt.datetime.fromisoformat(one.replace("Z", "+00:00")),
    }[node["valueType"]](text)  # fmt: skip


def as_sql(tree: dict[str, Any]) -> str:
    children = tree.get("children", [])
    if tree["op"] == "column":
        return tree["name"]
    if tree["op"] == "literal":
        quoted = tree["value"].replace("'", "\\'")
        return tree["value"] if tree["valueType"] in ("long", "double") else f"'{quoted}'"
    if tree["op"] == "not":
        return f"NOT ({as_sql(children[0])})"
    if tree["op"] == "isNull":
        return f"{as_sql(children[0])} IS NULL"
    sign = SIGNS.get(tree["op"]) or tree["op"].upper()
    return f" {sign} ".join(f"({as_sql(child)})" for child in children)


def statistics_of(rows: list[dict[str, Any]]) -> dict[str, Any]:
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows, SCHEMA), sink, row_group_size=2)
    return json.loads(json.dumps(footer_statistics(pq.ParquetFile(sink).metadata, dict.fromkeys(SCHEMA.names))))


@given(rows=ROWS, trees=st.lists(TREES, min_size=1, max_size=2))
def test_a_file_with_a_row_that_fulfils_the_hints_is_kept(
    rows: list[dict[str, Any]], trees: list[dict[str, Any]]
) -> None:
    statistics = statistics_of(rows)
    wanted = any(all(truth(tree, row) is True for tree in trees) for row in rows)
    in_sql = hints_of([as_sql(tree) for tree in trees], None, shared_schema(SCHEMA))
    in_json = hints_of(None, json.dumps({"op": "and", "children": trees}), shared_schema(SCHEMA))
    for hints in (in_sql, in_json):
        assert may_have_rows(hints, statistics) or not wanted


@pytest.mark.parametrize(
    ("hint", "kept"),
    [("n > 5", False), ("n >= 2", True), ("5 < n", False), ("s = 'zz'", False), ("s IS NULL", False), ("n IS NOT NULL", True),
     ("d < '2024-01-01'", False), ("d = DATE '2024-01-02'", True), ("t >= '2024-01-02T00:00:00Z'", False), ("f > 100", True),
     ("s > 5", True), ("s = 'a'", True), ("s < 'a'", False), ("n > 5L", False), ("n > '5'", True),
     ("d < TIMESTAMP '2024-01-01 10:00:00Z'", True), ("d < '2024-01-01 10:00:00'", True),
     ("t >= CAST('2024-01-01 10:00:00Z' AS DATE)", True), ("t > '2024-01-01 05:00:00'", True),
     ("t > TIMESTAMP '2024-01-01 05:00:00Z'", False), ("nonsense(", True), ("no_such > 1", True), ("n > 'x'", True), ("n > m", True), ("n IN (7)", True)],
)  # fmt: skip
def test_hints_leave_files_out(hint: str, kept: bool) -> None:
    at = dt.datetime(2024, 1, 1, tzinfo=UTC)
    rows = [{"n": n, "s": "a", "d": dt.date(2024, 1, n), "t": at, "f": 1.0} for n in (1, 2)]
    assert may_have_rows(hints_of([hint], None, shared_schema(SCHEMA)), statistics_of(rows)) is kept


@pytest.mark.parametrize(
    ("hint", "kept"),
    [("info.n > 5", True), ("`Info`.`n` > 5", True), ("5 < info.deep.n", True), ("info.n IS NULL", True),
     ("NOT info.n IS NOT NULL", True), ("sales.n > 5", False), ("spark_catalog.default.sales.n IS NULL", False)],
)  # fmt: skip
def test_a_field_of_a_struct_is_not_the_column_of_its_name(hint: str, kept: bool) -> None:
    schema = shared_schema(SCHEMA.append(pa.field("info", pa.struct([("n", pa.int64())]))))
    rows = [{"n": n, "s": "a", "d": None, "t": None, "f": 1.0} for n in (1, 2)]
    assert may_have_rows(hints_of([hint], None, schema), statistics_of(rows)) is kept


@settings(max_examples=examples(20, 100))
@given(
    st.text(max_size=50)
    | st.recursive(
        st.none() | st.integers() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner) | st.dictionaries(st.sampled_from(["op", "children", "name", "value", "valueType"]), inner)
        ),
    ).map(json.dumps)
)
def test_no_hint_is_an_error(text: str) -> None:
    assert all(callable(one) for one in hints_of([text], text, shared_schema(SCHEMA)))


def test_a_deep_hint_keeps_all() -> None:
    tree = '{"op":"not","children":[' * 50_000 + '{"op":"isNull"}' + "]}" * 50_000
    assert hints_of(["NOT " * 50_000 + "n = 1"], tree, shared_schema(SCHEMA)) == []
