"""What leaves the sources: the columns and rows that the asker needs, partial aggregates, first rows; and no more."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal

import pyarrow as pa
import pytest
from support.federation.answers import answered, cells, expected, rows_of
from support.federation.worlds import Hop, Source, Step, World

from odfpy.federation.sql.fragment import explained
from odfpy.federation.sql.split import split

PRICE = pa.decimal128(15, 2)
LINEITEM = pa.schema(
    [
        ("l_orderkey", pa.int64()),
        ("l_quantity", PRICE),
        ("l_extendedprice", PRICE),
        ("l_discount", PRICE),
        ("l_tax", PRICE),
        ("l_returnflag", pa.string()),
        ("l_linestatus", pa.string()),
        ("l_shipdate", pa.date32()),
        ("l_comment", pa.string()),
    ]
)
ORDERS = pa.schema(
    [
        ("o_orderkey", pa.int64()),
        ("o_custkey", pa.int64()),
        ("o_orderdate", pa.date32()),
        ("o_shippriority", pa.int32()),
    ]
)
CUSTOMER = pa.schema([("c_custkey", pa.int64()), ("c_mktsegment", pa.string())])
ROWS, SOURCES = 1_000, 3

Q1 = """
SELECT l_returnflag, l_linestatus, sum(l_quantity) AS sum_qty, sum(l_extendedprice) AS sum_base_price,
    sum(l_extendedprice * (1 - l_discount)) AS sum_disc_price,
    sum(l_extendedprice * (1 - l_discount) * (1 + l_tax)) AS sum_charge,
    avg(l_quantity) AS avg_qty, avg(l_extendedprice) AS avg_price, avg(l_discount) AS avg_disc, count(*) AS count_order
FROM lineitem WHERE l_shipdate <= DATE '1998-12-01' - INTERVAL '90' DAY
GROUP BY l_returnflag, l_linestatus ORDER BY l_returnflag, l_linestatus
"""
Q3 = """
SELECT l_orderkey, sum(l_extendedprice * (1 - l_discount)) AS revenue, o_orderdate, o_shippriority
FROM customer, orders, lineitem
WHERE c_mktsegment = 'BUILDING' AND c_custkey = o_custkey AND l_orderkey = o_orderkey
    AND o_orderdate < DATE '1995-03-15' AND l_shipdate > DATE '1995-03-15'
GROUP BY l_orderkey, o_orderdate, o_shippriority ORDER BY revenue DESC, o_orderdate, l_orderkey LIMIT 10
"""
Q6 = """
SELECT sum(l_extendedprice * l_discount) AS revenue FROM lineitem
WHERE l_shipdate >= DATE '1994-01-01' AND l_shipdate < DATE '1994-01-01' + INTERVAL '1' YEAR
    AND l_discount BETWEEN 0.06 - 0.01 AND 0.06 + 0.01 AND l_quantity < 24
"""


def the_same(schema: pa.Schema, entity: str) -> Hop:
    return Hop(entity, schema, {one.name: (one.name, Step("{v}", lambda value: value, one.type)) for one in schema})


def lineitem(number: int) -> dict[str, object]:
    return {
        "l_orderkey": number % 300,
        "l_quantity": Decimal(number % 50),
        "l_extendedprice": Decimal(number * 37 % 10_000) + Decimal("0.25"),
        "l_discount": Decimal(number % 11) / 100,
        "l_tax": Decimal(number % 9) / 100,
        "l_returnflag": "ANR"[number // 3 % 3],
        "l_linestatus": "FO"[number // 9 % 2],
        "l_shipdate": date(1992, 1, 1) + timedelta(days=number * 7 % 2_500),
        "l_comment": "never asked for",
    }


def order(number: int) -> dict[str, object]:
    return {
        "o_orderkey": number,
        "o_custkey": number % 40,
        "o_orderdate": date(1994, 1, 1) + timedelta(days=number * 3),
        "o_shippriority": 0,
    }


def customer(number: int) -> dict[str, object]:
    return {"c_custkey": number, "c_mktsegment": ("BUILDING", "MACHINERY")[number % 2]}


@pytest.fixture(scope="module")
def world() -> World:
    """Three sources of line items, one of orders and customers each."""
    items = [lineitem(number) for number in range(ROWS * SOURCES)]
    made = {
        "lineitem": (LINEITEM, [items[at::SOURCES] for at in range(SOURCES)]),
        "orders": (ORDERS, [[order(number) for number in range(300)]]),
        "customer": (CUSTOMER, [[customer(number) for number in range(40)]]),
    }
    return World(
        {name: schema for name, (schema, _) in made.items()},
        {
            name: [
                Source((the_same(schema, name),), tuple(rows), ((None, None),), engine)
                for rows, engine in zip(parts, ("duckdb", "datafusion", "duckdb"), strict=False)
            ]
            for name, (schema, parts) in made.items()
        },
    )


def test_q1_moves_one_row_for_each_group_of_each_source(world: World) -> None:
    answer = answered(world, Q1)
    assert [table.num_rows for table in answer.moved] == [6, 6, 6]
    assert cells(answer.moved) / (ROWS * SOURCES * len(LINEITEM)) < 0.01
    assert rows_of(answer.table.drop(["avg_qty", "avg_price", "avg_disc"])) == rows_of(
        expected(world, Q1).drop(["avg_qty", "avg_price", "avg_disc"])
    )


def test_means_of_decimal_numbers_have_four_more_digits(world: World) -> None:
    answer, whole = answered(world, Q1).table, expected(world, Q1)
    for name in ("avg_qty", "avg_price", "avg_disc"):
        assert answer.schema.field(name).type == pa.decimal128(19, 6)
        for one, other in zip(answer.column(name).to_pylist(), whole.column(name).to_pylist(), strict=True):
            assert abs(float(one) - other) <= 1e-6


def test_q6_moves_one_number_of_each_source(world: World) -> None:
    answer = answered(world, Q6)
    assert [table.shape for table in answer.moved] == [(1, 1)] * SOURCES
    assert rows_of(answer.table) == rows_of(expected(world, Q6))


def test_q3_moves_the_columns_and_rows_of_its_joins(world: World) -> None:
    answer = answered(world, Q3)
    late = sum(row["l_shipdate"] > date(1995, 3, 15) for source in world.sources["lineitem"] for row in source.rows)
    assert sum(table.num_rows for table in answer.moved[2:]) == late
    assert [table.num_columns for table in answer.moved] == [1, 4, 3, 3, 3]
    assert answer.moved[0].num_rows == 20
    assert rows_of(answer.table) == rows_of(expected(world, Q3))


@pytest.mark.parametrize(
    ("question", "rows", "columns"),
    [
        ("SELECT l_orderkey FROM lineitem LIMIT 7", 21, 1),
        ("SELECT l_orderkey FROM lineitem ORDER BY l_shipdate DESC, l_orderkey LIMIT 3 OFFSET 2", 15, 2),
        ("SELECT DISTINCT l_returnflag FROM lineitem", 9, 1),
        ("SELECT DISTINCT l_returnflag AS f FROM lineitem ORDER BY f LIMIT 1", 3, 1),
        ("SELECT count(DISTINCT l_returnflag) AS n, sum(l_tax) AS t FROM lineitem", 9, 2),
        ("SELECT count(*) AS n FROM lineitem WHERE l_comment LIKE 'never%' AND l_tax IN (0, 1)", 3, 1),
        ("WITH q AS (SELECT * FROM lineitem WHERE l_tax > 0) SELECT min(l_tax * 2) AS m FROM q WHERE l_orderkey < 9", 3, 1),
        ("SELECT n FROM (SELECT l_orderkey AS n, l_tax FROM lineitem) AS t WHERE l_tax > 1", 0, 1),
    ],
)  # fmt: skip
def test_limits_distinct_rows_and_aggregates_go_to_the_sources(
    world: World, question: str, rows: int, columns: int
) -> None:
    answer = answered(world, question)
    assert sum(table.num_rows for table in answer.moved) == rows
    assert {table.num_columns for table in answer.moved} == {columns}
    if "LIMIT 7" not in question:
        assert rows_of(answer.table) == rows_of(expected(world, question))


def test_parts_of_a_question_that_are_the_same_travel_once(world: World) -> None:
    question = "SELECT count(*) AS n FROM lineitem UNION ALL SELECT count(*) + 1 FROM lineitem"
    assert len(split(question, world.entities).fragments) == 1


@pytest.mark.parametrize(
    "question",
    [
        "SELECT median(l_tax) AS m FROM lineitem WHERE l_tax > 0",
        "SELECT l_orderkey, sum(l_tax) OVER (PARTITION BY l_returnflag) AS s FROM lineitem WHERE l_tax > 0",
        "SELECT l_returnflag, count(*) AS n FROM lineitem WHERE l_tax > 0 GROUP BY ROLLUP (l_returnflag)",
        "SELECT count(*) AS n FROM lineitem WHERE l_tax > 0 AND random() > 2",
        "SELECT string_agg(l_comment, ',') AS s FROM lineitem WHERE l_tax > 0",
    ],
)
def test_what_a_source_cannot_do_in_part_stays_in_the_rest(world: World, question: str) -> None:
    parts = split(question, world.entities)
    [fragment] = parts.fragments.values()
    assert not fragment.is_grouped
    assert explained(fragment).endswith('WHERE ("l_tax" > 0)')


def test_counts_and_sums_over_nothing_at_all(world: World) -> None:
    nobody = World(world.entities, {name: [] for name in world.entities})
    question = (
        "SELECT count(*) AS n, count(l_tax) AS c, sum(l_tax) AS s, avg(l_orderkey) AS a, min(l_tax) AS m FROM lineitem"
    )
    assert answered(nobody, question).table.to_pylist() == [{"n": 0, "c": 0, "s": None, "a": None, "m": None}]
    grouped = "SELECT l_tax, count(*) AS n FROM lineitem GROUP BY l_tax"
    assert answered(nobody, grouped).table.num_rows == 0


def test_partial_sums_may_be_larger_than_the_whole() -> None:
    schema = pa.schema([("n", pa.int64())])
    most = (1 << 63) - 1
    sources = [
        Source((the_same(schema, "e"),), tuple({"n": one} for one in rows), ((None, None),), engine)
        for rows, engine in (((most, most, most), "duckdb"), ((-most, -most, -7), "datafusion"))
    ]
    world = World({"e": schema}, {"e": sources})
    assert answered(world, "SELECT sum(n) AS s FROM e").table.to_pylist() == [{"s": most - 7}]


@pytest.mark.parametrize(("dialect", "most"), [("datafusion", (1 << 64) - 1), ("spark", (1 << 63) - 1)])
def test_a_sum_of_unsigned_numbers_has_the_type_that_the_engine_gives(dialect: str, most: int) -> None:
    schema = pa.schema([("n", pa.uint64())])
    rows = ({"n": most - 1}, {"n": 1})
    world = World({"e": schema}, {"e": [Source((the_same(schema, "e"),), (one,), ((None, None),)) for one in rows]})
    assert answered(world, "SELECT sum(n) AS s FROM e", dialect).table.to_pylist() == [{"s": most}]


def test_names_of_results_are_those_that_the_question_has(world: World) -> None:
    question = 'SELECT l_tax, count(*), l_tax * 2, max(l_tax) AS "Most" FROM lineitem GROUP BY l_tax'
    assert answered(world, question).table.schema.names == ["l_tax", "count(*)", "l_tax * 2", "Most"]


def test_a_table_that_is_made_of_itself_is_more_than_its_first_rows(world: World) -> None:
    question = """
        WITH RECURSIVE r AS (
            SELECT o_orderkey AS k FROM orders WHERE o_orderkey < 3 UNION ALL SELECT k + 100 FROM r WHERE k < 500
        )
        SELECT k, count(*) AS n FROM r WHERE k <> 101 GROUP BY k
    """
    assert rows_of(answered(world, question).table) == rows_of(expected(world, question))


@pytest.mark.parametrize(
    "question",
    [
        "SELECT o_orderkey FROM orders AS a WHERE o_orderdate = (SELECT max(o_orderdate) FROM orders AS b WHERE b.o_custkey = a.o_custkey)",
        "WITH a AS (SELECT * FROM orders), b AS (SELECT o_custkey, max(o_orderkey) AS m FROM a GROUP BY 1) SELECT count(*) AS n, sum(m) AS s FROM b JOIN a ON a.o_orderkey = b.m WHERE a.o_orderkey > 200",
        "SELECT o_custkey, n FROM (SELECT o_custkey, count(*) AS n FROM orders GROUP BY o_custkey) AS t WHERE n > 7 AND o_custkey < 9",
        "SELECT sum(n) AS s FROM (SELECT o_custkey, 2 AS n FROM orders UNION ALL SELECT c_custkey, 1 FROM customer) AS t WHERE o_custkey > 5",
        "SELECT count(*) AS n FROM (SELECT DISTINCT o_custkey, o_shippriority FROM orders) AS t WHERE o_custkey IS NOT NULL",
        "SELECT o_orderkey % 3 AS m, count(*) AS n FROM orders GROUP BY o_orderkey % 3 ORDER BY 1 LIMIT 2",
        "SELECT o_custkey, rank() OVER (ORDER BY count(*) DESC, o_custkey) AS r FROM orders GROUP BY o_custkey",
        "SELECT count(*) AS n FROM orders AS a CROSS JOIN customer AS b WHERE a.o_custkey = 1 AND b.c_custkey IN (1, 2)",
        "SELECT c_custkey FROM customer EXCEPT SELECT o_custkey FROM orders WHERE o_orderdate > DATE '1994-03-01'",
        "SELECT CASE WHEN sum(o_custkey) > 10 THEN max(o_orderdate) END AS m, count(*) * 2 + min(o_custkey) AS x FROM orders",
    ],
    ids=range(10),
)  # fmt: skip
def test_questions_of_many_forms(world: World, question: str) -> None:
    assert rows_of(answered(world, question).table) == rows_of(expected(world, question))


@pytest.mark.parametrize(
    ("question", "columns"),
    [
        ("SELECT x.* FROM customer x LIMIT 200", ["c_custkey", "c_mktsegment"]),
        ("SELECT customer.* FROM customer", ["c_custkey", "c_mktsegment"]),
        ("SELECT t.* FROM (SELECT c_custkey FROM customer) t", ["c_custkey"]),
        ("SELECT a.*, b.c_custkey AS k FROM customer a JOIN orders o ON a.c_custkey = o.o_custkey, customer b", None),
    ],
)
def test_a_star_of_one_table_is_its_columns(question: str, columns: list[str] | None) -> None:
    found = split(question, {"customer": CUSTOMER, "orders": ORDERS})
    assert "*" not in found.rest
    if columns is not None:
        (fragment,) = found.fragments.values()
        assert [one.name for one in fragment.outputs] == columns
