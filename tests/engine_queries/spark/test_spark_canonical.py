"""Plans in canonical form give the same rows, to the bit, however their input lies and whatever Spark spills."""

from __future__ import annotations

import math
import random
import struct
from datetime import datetime, timezone
from decimal import Decimal
from fractions import Fraction

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from odfpy.engine.spark.analysis.canonical import ordered_aggregate, ordered_limit, ordered_window
from odfpy.engine.spark.plan.catalyst import Catalyst, children, operator_name
from odfpy.engine.spark.process.session import request_session

pytestmark = pytest.mark.spark

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("k", pa.string()),
        ("o", pa.int32()),
        ("at", pa.timestamp("us", "UTC")),
        ("x", pa.float64()),
        ("f", pa.float32()),
        ("big", pa.int64()),
        ("d", pa.decimal128(38, 2)),
        ("i", pa.int32()),
    ]
)
FORMS = {
    "Window": ordered_window,
    "Aggregate": ordered_aggregate,
    "GlobalLimit": ordered_limit,
    "Offset": ordered_limit,
}
SPILL = {
    # Spark's own thresholds, in rows and hash table entries: nothing fits.
    "spark.sql.windowExec.buffer.in.memory.threshold": "2",
    "spark.sql.windowExec.buffer.spill.threshold": "5",
    "spark.sql.objectHashAggregate.sortBased.fallbackThreshold": "1",
    "spark.sql.TungstenAggregate.testFallbackStartsAt": "1, 3",
    "spark.sql.codegen.wholeStage": "false",
}


def rows(count=200, seed=7):
    """Rows with ties in all that a query orders by, and numbers of wildly different magnitudes."""
    rng = random.Random(seed)
    special = [0.0, -0.0, math.inf, -math.inf, math.nan, 5e-324, 1.7e308, -1.7e308, None]
    made = []
    for number in range(count):
        usual = rng.choice((-1, 1)) * rng.random() * 10.0 ** rng.randint(-300, 300)
        near = round(rng.uniform(-1000, 1000), 2)
        k = rng.choice("abcde")
        x = rng.choice((usual, near, near, near)) if k != "e" else rng.choice(special)
        big = rng.choice((2**62, -(2**62), rng.randint(-(2**61), 2**61)))
        made.append(
            {
                "id": number // 2,
                "k": k,
                "o": rng.randint(0, 3),
                "at": datetime(2024, 1, 1, 0, 0, rng.randint(0, 9), tzinfo=timezone.utc),
                "x": x,
                "f": struct.unpack("f", struct.pack("f", near))[0],
                "big": big,
                "d": Decimal(rng.randint(-(10**22), 10**22)).scaleb(-2),
                "i": rng.randint(-(2**31), 2**31 - 1),
            }
        )
    return made


@pytest.fixture(scope="module")
def catalyst(spark):
    return Catalyst(request_session(spark))


@pytest.fixture(scope="module")
def view(catalyst, tmp_path_factory):
    """Names rows as the table `t`, in that order, in so many partitions."""

    def name(data, partitions):
        folder, size = tmp_path_factory.mktemp("rows"), -(-len(data) // partitions)
        for at in range(partitions):
            part = pa.Table.from_pylist(data[at * size : (at + 1) * size], SCHEMA)
            pq.write_table(part, folder / f"{at}.parquet", compression=("none", "zstd")[partitions % 2])
        catalyst.spark.conf.set("spark.sql.files.openCostInBytes", str(2**30))  # a file is a partition
        frame = catalyst.spark.read.parquet(str(folder))
        assert frame._jdf.rdd().getNumPartitions() == partitions
        catalyst.name_view("t", catalyst.plan(frame))

    return name


def canonical(catalyst, plan):
    """The plan with every operator in its canonical form, from the inputs up."""
    if operator_name(plan) == "View":
        return plan
    below = [canonical(catalyst, child) for child in children(plan)]
    node = plan.withNewChildren(catalyst.seq(below)) if below else plan
    form = FORMS.get(operator_name(node))
    return form(catalyst, node) if form else node


def run(catalyst, query):
    """The rows of the result as text that tells all bits of numbers, sorted."""
    plan = canonical(catalyst, catalyst.analyze(catalyst.parse(query)))
    return sorted(map(repr, catalyst.dataframe(plan).collect()))


# Rows are numbered in pairs, and four values of `o` are shared by 200 of them: hardly anything is in a known order.
QUERIES = {
    "sums": "select k, sum(x) s, avg(x) a, sum(f) f, avg(big) b, avg(i) i, count(*) n, min(x) l, max(x) m from t group by k",
    "sums of all": "select sum(x) + 1 s, avg(x) a, count(x) n from t where k <> 'e'",
    "running sums": "select id, sum(x) over (partition by k order by o) s, avg(f) over (partition by k order by o) a, stddev(f) over (order by o) d, first_value(x) over (partition by k order by o) v, last_value(id) over (partition by k order by o) w, collect_list(f) over (partition by k order by o) c from t",
    "ties": "select id, row_number() over (partition by k order by o) n, ntile(7) over (partition by k order by o) t, lag(x) over (partition by k order by o) g, lead(f, 2) over (order by o desc) h, nth_value(id, 3) over (partition by k order by o) v, cume_dist() over (order by o) c, sum(f) over (partition by k order by o rows between 2 preceding and current row) s, avg(x) over (partition by k order by at range between interval 2 seconds preceding and current row) r from t",
    "limit": "select k, o, x, f from t order by o limit 30 offset 7",
    "statistics": "select k, stddev(f) d, var_pop(f) p, skewness(f) e, kurtosis(f) u, corr(f, i) c, covar_samp(f, i) o, regr_slope(f, i) r, sum(distinct f) t, median(x) m, percentile(x, array(0.1, 0.9)) q, percentile_disc(0.5) within group (order by x) w, sort_array(collect_list(x)) l, array_sort(collect_set(x)) z from t group by k",
}  # fmt: skip


@pytest.fixture(scope="module")
def answers(catalyst, view):
    """What each query gives, for several orders and partitions of its input, with and without spilling."""
    data, found = rows(), {}
    catalyst.spark.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")
    shuffled = random.Random(1).sample(data, len(data))
    for order, partitions, settings in ((data, 1, {}), (shuffled, 7, SPILL)):
        view(order, partitions)
        changed = {"spark.sql.shuffle.partitions": str(partitions), **settings}
        for name, value in changed.items():
            catalyst.spark.conf.set(name, value)
        for name, query in QUERIES.items():
            found.setdefault(name, []).append(run(catalyst, query))
        for name in changed:
            catalyst.spark.conf.unset(name)
    catalyst.spark.conf.unset("spark.sql.codegen.factoryMode")
    return found


@pytest.mark.parametrize("name", QUERIES)
def test_the_same_bits_in_any_order_and_partitions(answers, name):
    first, *others = answers[name]
    assert first
    assert all(other == first for other in others)


def test_sums_are_the_true_ones(catalyst, view):
    data = [row for row in rows() if row["k"] != "e"]
    view(data, 3)
    plan = catalyst.analyze(catalyst.parse("select k, sum(x) as s, avg(x) as a, sum(f) as f from t group by k"))
    for found in catalyst.dataframe(canonical(catalyst, plan)).collect():
        of = [row for row in data if row["k"] == found["k"]]
        for column, value in (("x", found["s"]), ("f", found["f"])):
            true = sum((Fraction(row[column]) for row in of), Fraction(0))
            scale = max(abs(row[column]) for row in of)
            assert abs(Fraction(value) - true) <= Fraction(math.ulp(scale)) * 4
        assert found["a"] == found["s"] / len(of)


@pytest.mark.parametrize("order", [(1, 2, 3), (3, 2, 1), (2, 1, 3)])
def test_a_sum_of_integers_overflows_only_if_its_result_does(catalyst, order):
    numbers = {1: 2**63 - 1, 2: 2**63 - 1, 3: -(2**63 - 1)}
    listed = ", ".join(f"({numbers[at]}L)" for at in order)
    plan = catalyst.analyze(catalyst.parse(f"select sum(x) as s, try_sum(x + 0) as t from values {listed} as t(x)"))
    row = catalyst.dataframe(canonical(catalyst, plan)).first()
    assert tuple(row) == (2**63 - 1, 2**63 - 1)


def test_functions_of_peers_are_not_sorted_again(catalyst, view):
    """They rely upon rows that stay in the total order of the functions below them."""
    view(rows(10), 2)
    plan = canonical(catalyst, catalyst.analyze(catalyst.parse(QUERIES["running sums"])))
    text = catalyst.dataframe(plan)._jdf.queryExecution().executedPlan().toString()
    assert text.count("Window [") == 4
    assert text.count("Sort [") == 2  # one for each PARTITION BY
