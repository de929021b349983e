"""Preprocessing in Spark SQL: which rows, in which order, in which types, and what is refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odfpy.dataset.transform import SqlQueryStep, TransformSql
from odfpy.engine.contract import PreprocessRequest, PreprocessResponseSuccess
from odfpy.engine.responses import as_error
from odfpy.engine.spark.execution.preprocess import OutOfOrder, in_order, preprocess
from odfpy.engine.spark.rows.handover import hand_over, take_back
from odfpy.errors import InvalidQuery, NondeterministicQuery, UnsupportedQuery

pytestmark = pytest.mark.spark

Run = Callable[..., pa.Table]
NUMBERS = pa.table({"k": [3, 1, 2, 1], "v": ["c", "a", "b", None]})


def steps(query: str | Sequence[tuple[str | None, str]]) -> TransformSql:
    if isinstance(query, str):
        return TransformSql("spark", query=query)
    return TransformSql("spark", queries=tuple(SqlQueryStep(alias=alias, query=text) for alias, text in query))


@pytest.fixture
def run(spark, tmp_path: Path) -> Run:
    def through_files(query: str | Sequence[tuple[str | None, str]], table: pa.Table = NUMBERS, **options) -> pa.Table:
        given = {"input": table}
        request = PreprocessRequest(steps(query), hand_over(given, tmp_path), str(tmp_path / "result"))
        response = preprocess(spark, request, **options)
        if not isinstance(response, PreprocessResponseSuccess):
            raise as_error(response)
        return take_back(tmp_path / "result", response.unchanged, given)

    return through_files


# --- Rows and their order --------------------------------------------------------------------------------------------


def test_rows_keep_the_order_of_the_input_however_spark_cuts_them(run: Run):
    table = pa.table({"n": range(1000, 0, -1)})
    query = "select explode(array(n, -n)) as n from input where n % 2 = 0 union all select n from input where n > 998"
    expected = [sign * n for n in range(1000, 0, -2) for sign in (1, -1)] + [1000, 999]
    for options in ({}, {"sort": True}, {"sort": True, "rows_in_one_task": 300}):
        assert run(query, table, **options).column("n").to_pylist() == expected


KEYS = st.tuples(st.integers(0, 1), st.integers(0, 1), st.integers(0, 3))


@given(st.lists(st.lists(KEYS, max_size=4), max_size=4), st.booleans())
def test_rows_that_come_out_of_order_are_noticed(batches: list[list[tuple[int, int, int]]], is_sorted: bool):
    keys = [key for batch in batches for key in batch]
    if is_sorted:
        keys.sort()
    sizes = iter(keys)
    cut = [[next(sizes) for _ in batch] for batch in batches]
    names = ["__odf_input", "__odf_branch", "__odf_offset"]
    rows = [
        pa.record_batch([pa.array([key[at] for key in batch], pa.int64()) for at in range(3)], names) for batch in cut
    ]
    if keys == sorted(keys):
        assert sum(batch.num_rows for batch in in_order(rows)) == len(keys)
    else:
        with pytest.raises(OutOfOrder):
            list(in_order(rows))


def test_steps_see_those_before_them(run: Run):
    made = run(
        [
            ("big", "select * from input where k > 1"),
            ("loud", "select k, upper(v) as v from big"),
            (None, "select v from loud"),
        ]
    )
    assert made.column("v").to_pylist() == ["C", "B"]


def test_queries_of_any_class_give_sorted_rows_without_an_order_of_their_own(run: Run):
    assert run("select k, count(*) as n from input group by k").to_pylist() == [
        {"k": 1, "n": 2},
        {"k": 2, "n": 1},
        {"k": 3, "n": 1},
    ]
    assert run("select map(k, count(*)) as m from input group by k").column("m").to_pylist() == [
        [(1, 2)],
        [(2, 1)],
        [(3, 1)],
    ]


def test_an_order_at_the_end_is_the_order_of_the_rows(run: Run):
    assert run("select k, v from input order by k desc limit 3").column("k").to_pylist() == [3, 2, 1]


def test_what_depends_on_the_order_of_rows_follows_the_input(run: Run):
    numbered = run("select v, row_number() over (order by 1) as n from input").to_pylist()
    assert sorted((row["n"], row["v"]) for row in numbered) == [(1, "c"), (2, "a"), (3, "b"), (4, None)]
    assert run("select collect_list(k) as ks, first(v) as v from input").to_pylist() == [{"ks": [3, 1, 2, 1], "v": "c"}]


def test_rows_can_be_joined_with_what_is_made_of_them(run: Run):
    query = [("most", "select max(k) as k from input"), (None, "select i.v from input i join most m on i.k = m.k")]
    assert run(query).to_pylist() == [{"v": "c"}]
    assert run("select v from input where k = (select max(k) from input)").to_pylist() == [{"v": "c"}]


def test_no_rows_give_no_rows_in_the_right_types(run: Run):
    made = run("select k + 1 as k, v from input", NUMBERS.slice(0, 0))
    assert made.schema == pa.schema({"k": pa.int64(), "v": pa.string()})
    assert made.num_rows == 0


# --- Types -----------------------------------------------------------------------------------------------------------

INNER = pa.struct([pa.field("u", pa.uint64(), nullable=False), pa.field("t", pa.time32("ms"))])
EXACT = pa.table(
    {
        "u8": pa.array([255, None], pa.uint8()),
        "u16": pa.array([65535, 0], pa.uint16()),
        "u32": pa.array([2**32 - 1, None], pa.uint32()),
        "u64": pa.array([2**64 - 1, 0], pa.uint64()),
        "f16": pa.array([1.5, None], pa.float32()).cast(pa.float16()),
        "zero": pa.array([-0.0, None]),
        "d": pa.array([Decimal("-1.005"), None], pa.decimal128(30, 3)),
        "d256": pa.array([Decimal("1.5"), None], pa.decimal256(38, 1)),
        "s": pa.array([{"u": 2**64 - 1, "t": None}, None], INNER),
        "l": pa.array([[{"u": 1, "t": None}], None], pa.list_(INNER)),
        "fixed": pa.array([[1, 2], None], pa.list_(pa.uint8(), 2)),
        "m": pa.array([[("a", 1), ("b", None)], None], pa.map_(pa.string(), pa.uint16())),
        "m2": pa.array([[(5, [1, None])], None], pa.map_(pa.time32("ms"), pa.list_(pa.uint8()))),
        "b": pa.array([b"abc", None], pa.binary(3)),
        "t": pa.array([1, None], pa.time32("ms")),
        "nothing": pa.nulls(2),
        "required": pa.array([1, 2], pa.uint32()),
    }
)
EXACT = EXACT.cast(EXACT.schema.set(EXACT.schema.get_field_index("required"), pa.field("required", pa.uint32(), False)))


@pytest.mark.parametrize(
    "query",
    [
        "select * from input",
        "with x as (select * from input) select * from x",
        "select i.* from input i left join (select max(u16) as top from input) on false",
        "select * from input order by u16 desc",
    ],
)
def test_columns_that_come_through_unchanged_have_their_own_types(run: Run, query: str):
    made = run(query, EXACT)
    assert made.schema == EXACT.schema
    made.validate(full=True)
    found = sorted(made.to_pylist(), key=lambda row: row["required"])
    assert found == EXACT.to_pylist()
    assert str(found[0]["zero"]) == "-0.0"


def test_computed_columns_have_the_types_of_spark(run: Run):
    made = run("select u64 + 0 as a, s.u as b, cast(u8 as int) as c, required from input", EXACT)
    assert [str(field.type) for field in made.schema] == ["decimal128(21, 0)", "decimal128(20, 0)", "int32", "uint32"]
    assert made.column("b").to_pylist() == [2**64 - 1, None]
    assert [field.nullable for field in made.schema] == [True, True, True, False]


def test_fine_timestamps_are_rounded_down(run: Run):
    table = pa.table({"t": pa.array([-1, 1_500], pa.timestamp("ns", "UTC"))})
    made = run("select t from input", table).column("t").cast(pa.int64())
    assert made.to_pylist() == [-1, 1]
    assert run("select t from input", table).column("t")[1].as_py() == datetime(1970, 1, 1, 0, 0, 0, 1, timezone.utc)


def test_a_type_that_spark_lacks_is_named(run: Run):
    with pytest.raises(UnsupportedQuery, match=r"`x` of `input` has type duration") as caught:
        run("select * from input", pa.table({"x": pa.array([1], pa.duration("s"))}))
    assert "engine: datafusion" in caught.value.hint


# --- Refused ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("select now() as t, k from input", r"`now\(\)` reads the clock"),
        ("select k from input where k in (select k from input where v < uuid())", "is random"),
        ("select k from input limit 2", "LIMIT without a total order"),
        ("select k from input where k in (select k from input limit 1)", "LIMIT without a total order"),
        ("select k from input tablesample (10 percent)", "TABLESAMPLE"),
        ("select /*+ broadcast(input) */ k from input", "Hints"),
    ],
)
def test_a_result_that_is_no_function_of_the_input_is_refused(run: Run, query: str, words: str):
    with pytest.raises(NondeterministicQuery, match=words):
        run(query)


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ("select nope from first", r"nope.*step 2 \(`second`\)"),
        ("select k, from from first where", r"step 2 \(`second`\)"),
        ("select now() as t from first", r"step 2 \(`second`\)"),
        ("select cast(v as int) as v from first", r"step 2 \(`second`\)"),
        ("select random() as v from first", r"step 2 \(`second`\)"),
    ],
)
def test_a_query_that_fails_names_its_step(run: Run, bad: str, words: str):
    with pytest.raises((InvalidQuery, NondeterministicQuery), match=rf"(?s){words}"):
        run([("first", "select k, v from input"), ("second", bad), (None, "select * from second")])


def test_a_value_that_does_not_fit_fails_the_query(run: Run):
    with pytest.raises(InvalidQuery, match=r"(?s)'c'.*line 1, column 8"):
        run("select cast(v as int) as v from input")
