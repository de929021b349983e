"""SQL that is a function of its inputs though it does not look so, and what looks like it and is refused.

Each accepted query is run pull by pull over a history with late rows, corrections and retractions, and compared with
plain Spark over the net state. A run of all tests tries every third of them; `ODF_LAWS=1` all.
"""

from __future__ import annotations

import os
from dataclasses import replace

import pyarrow as pa
import pytest
from support.engine.requests import Source, analyze_request, required
from support.queries.cases import QUICK, Case, Runner, Tuned
from support.queries.oracle import Oracle, state_of
from support.queries.stories import FIELDS, told

from odfpy.engine.contract import AnalyzeResponseSuccess, TransformResponseInvalidQuery
from odfpy.engine.spark.execution import operations

pytestmark = pytest.mark.spark

IN_6_HOURS = {"result": "event_time + interval 6 hours <= :a"}
COLLECTED = "select k, max(event_time) as event_time, collect_list(v) as l from a group by k"

ACCEPTED = {
    # ORDER BY and the like without a LIMIT
    "ORDER BY in a subquery": "select event_time, v from (select event_time, v from a order by v)",
    "SORT BY and DISTRIBUTE BY in a subquery": "select max(event_time) as event_time, k, count(*) as n "
    "from (select * from a distribute by k sort by v) group by k",
    "CLUSTER BY": "select event_time, v from a cluster by v",
    "LIMIT of an ordered subquery": "select event_time, v from (select event_time, v from a order by v desc) limit 2",
    # Arrays in some order
    "collected in a CTE, sorted outside": f"with t as ({COLLECTED}) select event_time, k, array_sort(l) as l from t",
    "collected in a subquery, exploded outside": f"select event_time, k, x from ({COLLECTED}) lateral view explode(l) as x",
    "collected and searched": "select max(event_time) as event_time, k, array_contains(collect_set(v), 1) as c, "
    "array_max(transform(collect_list(v), x -> x * 2)) as m, size(filter(collect_set(v), x -> x > 1)) as s, "
    "array_join(array_sort(collect_list(cast(v as string))), ',') as j from a group by k",
    "collected over a window": "select event_time, k, size(collect_set(v) over (partition by k)) as n from a",
    # One row of those that are alike
    "first of a grouping key": "select max(event_time) as event_time, first(k) as f, last(upper(k)) as l, "
    "any_value(k) filter (where v > 1) as a from a group by k",
    "an order that tells the value": "select k, max(event_time) as event_time, max_by(v, struct(event_time, v)) as m, "
    "min_by(v, v) as n from a group by k",
    "mode with settled ties": "select event_time, k, mode(v, true) over (partition by k) as m, "
    "mode() within group (order by v desc) over (partition by k) as n from a",
    "groups by a collation that nobody sees": "select max(event_time) as event_time, count(*) as n "
    "from a group by if(v > 1, upper(k), k) collate utf8_lcase",
    "groups by a collation, in lower case": "select max(event_time) as event_time, count(*) as n, "
    "lower(if(v > 1, upper(k), k) collate utf8_lcase) as l from a group by if(v > 1, upper(k), k) collate utf8_lcase",
    # LATERAL
    "LATERAL explode": "select event_time, v, e from a, lateral explode(sequence(0, v)) as t(e)",
    "LEFT JOIN LATERAL explode": "select event_time, v, e from a "
    "left join lateral explode(if(v > 1, array(v, v + 1), array())) as t(e) on true",
    "LATERAL of expressions": "select event_time, w, z from a, lateral (select a.v + 1 as w), lateral (select w * 2 as z)",
    "LATERAL with a filter": "select event_time, v, e from a "
    "left join lateral (select x as e from explode(sequence(0, v)) as t(x) where x > 1)",
    "LATERAL with an aggregate": "select a.event_time, a.k, w, n from a, "
    "lateral (select max(b.v) as w, count(*) as n from b where b.k = a.k)",
    "LEFT JOIN LATERAL with a condition": "select a.event_time, a.v, w from a "
    "left join lateral (select b.v as w from b where b.k = a.k) on w > a.v",
    "LATERAL with the first rows": "select a.event_time, a.v, w from a, "
    "lateral (select b.v as w, b.event_time as t from b where b.k = a.k order by w desc, t limit 1)",
    "LATERAL with a window function": "select a.event_time, y, n from a, "
    "lateral (select t.y, count(*) over () as n from values ('x', 1), ('x', 2) as t(x, y) where t.x = a.k)",
    # Constants
    "a table of constants": "select a.event_time, a.k, t.y from a join values ('x', 1), ('y', 2), ('x', 3) as t(x, y) on a.k = t.x",
    "constants on the right of a left join": "select a.event_time, a.k, t.y from a "
    "left join (select upper(x) as x, y from values ('x', 1), ('z', 2) as t(x, y)) t on upper(a.k) = t.x",
    "constants on both kept sides": "select coalesce(a.event_time, timestamp'2020-01-01') as event_time, a.v, t.y "
    "from a full join values ('x', 1), ('z', 2) as t(x, y) on a.k = t.x",
    "constants in UNION ALL": "select event_time, v from a union all select timestamp'2024-01-01', 7",
    "constants in groups": "select max(event_time) as event_time, k, count(*) as n from (select event_time, k, v from a "
    "union all select * from values (timestamp'2023-01-01', 'x', 5), (timestamp'2023-01-01', 'q', 5)) group by k",
    "constants in windows": "select window.start as event_time, count(*) as n from (select event_time, v from a "
    "union all select timestamp'2024-01-01 01:00:00', 1) group by window(event_time, '6 hours')",
    "constants in IN": "select event_time, v from a where v in (select x from values (1), (3) as t(x))",
    "a range in NOT IN": "select event_time, v from a where v not in (select id from range(1, 3))",
    "a range that is joined": "select a.event_time, r.id as n, v from a join range(3) r on r.id < a.v",
    "a range with names of its own": "select a.event_time, r.n, v from a join range(3) as r(n) on r.n < a.v",
    "a range with gaps filled": "select coalesce(max(a.event_time), timestamp'2020-01-01') as event_time, r.id, "
    "count(v) as n from range(4) r left join a on r.id = a.v group by r.id",
    "constants in EXCEPT": "select event_time, v from a except select timestamp'2024-01-01 20:00:00', 0",
    "groups of constants": "select event_time, a.k, c.n from a "
    "join (select x, count(*) as n from values ('x', 1), ('x', 2), ('y', 2) as t(x, y) group by x) c on a.k = c.x",
    "constants that are counted before there are rows": "select coalesce(max(event_time), timestamp'2020-01-01') as event_time, count(*) as n from a",
    # Other forms of the same
    "QUALIFY": "select event_time, k, v from a qualify row_number() over (partition by k order by v, event_time) = 1",
    "PIVOT": "select * from (select k, v from a) pivot (count(v) for v in (1 as one, 2 as two)) "
    "join (select max(event_time) as event_time from a)",
    "UNPIVOT": "select event_time, n, w from (select event_time, v, v * 2 as u from a) unpivot (w for n in (v, u))",
    "GROUP BY ALL, ROLLUP": "select k, v, max(event_time) as event_time, count(*) as n from a group by rollup(k, v)",
    "CUBE": "select k, v, max(event_time) as event_time, sum(v) as n, grouping(k) as g from a group by cube(k, v)",
    "pipes": "from a |> where v > 0 |> extend v + 1 as w |> aggregate max(event_time) as event_time, sum(w) as s group by k",
    "tuples in IN": "select event_time, v from a where (k, v) in (select k, v from b)",
    "listagg in its own order": "select k, max(event_time) as event_time, "
    "listagg(cast(v as string), ',') within group (order by cast(v as string)) as l from a group by k",
    "aliases that name one another": "select event_time, v + 1 as w, w * 2 as x from a",
    "a constant subquery beside groups": "select max(event_time) as event_time, k, "
    "sum(v) + (select max(x) from values (1), (2) as t(x)) as s from a group by k",
    "a part of the sum": "select event_time, k, s / (select sum(v) from b) as part "
    "from (select max(event_time) as event_time, k, sum(v) as s from a group by k)",
}
CLOSED = {"constants in windows": IN_6_HOURS}
NAMES = list(ACCEPTED)


@pytest.mark.slow_after(4)
@pytest.mark.parametrize("name", NAMES if os.environ.get("ODF_LAWS") else NAMES[::3])
def test_the_state_of_the_output_is_the_batch_answer(name, spark, tmp_path):
    text = ACCEPTED[name]
    inputs = "ab" if " b" in text else "a"
    case = Case(name, "", [(None, text)], dict.fromkeys(inputs, FIELDS), CLOSED.get(name, {}), told(inputs))
    runner, oracle = Runner(Tuned(spark, **QUICK), case, tmp_path), Oracle(Tuned(spark, **QUICK), tmp_path)
    emitted, given = [], {alias: [] for alias in inputs}
    for number, pull in enumerate(case.pulls, start=1):
        emitted += runner.pull(pull).rows
        for alias, rows in pull.rows.items():
            given[alias] += rows
        assert state_of(emitted) == oracle.answer(case, given, case.watermarks(number)), f"after pull {number}"


def test_partners_in_a_join_with_constants_have_one_order(spark, tmp_path):
    """Whichever kind of join Spark takes, and however many partitions it has."""
    query = "select a.event_time, a.k, t.y from a join values ('x', 3), ('x', 1), ('y', 2), ('x', 2) as t(x, y) on a.k = t.x"
    case = Case("join", "", [(None, query)], {"a": FIELDS}, {}, told("a"))
    merged = {"spark__sql__autoBroadcastJoinThreshold": "-1", "spark__sql__shuffle__partitions": "3"}
    made = []
    for at, more in enumerate(({}, merged)):
        folder = tmp_path / str(at)
        folder.mkdir()
        runner = Runner(Tuned(spark, **{**QUICK, **more}), case, folder, rows_in_one_task=1 if more else 1_000_000)
        made.append([runner.pull(pull) for pull in case.pulls])
    assert made[0] == made[1]
    first = [line for line in made[0][1].lines if line.startswith("+A 2024-01-01T07:00 x")]
    assert first[:3] == [f"+A 2024-01-01T07:00 x {y}" for y in (1, 2, 3)]


# --- What the analysis says -------------------------------------------------------------------------------------------

COLUMNS = (
    required("id", pa.int64()),
    pa.field("name", pa.string()),
    pa.field("items", pa.list_(pa.int32())),
    pa.field("amount", pa.decimal128(10, 2)),
)


@pytest.fixture(scope="module")
def analyze(spark, tmp_path_factory):
    folder = tmp_path_factory.mktemp("inputs")
    inputs = [Source(folder, alias, COLUMNS) for alias in ("t", "u")]

    def run(query):
        return operations.analyze(spark, analyze_request(query, *inputs))

    return run


@pytest.mark.parametrize("name", NAMES)
def test_accepted_queries_are_of_some_class(name, spark, tmp_path):
    inputs = [Source(tmp_path, alias, FIELDS) for alias in "ab"]
    found = operations.analyze(spark, analyze_request(ACCEPTED[name], *inputs))
    assert isinstance(found, AnalyzeResponseSuccess), found
    assert all(step.query_class and step.reason and step.state for step in found.steps)


SHOWN = ("offset", "op", "system_time", "event_time", "id", "name", "items", "amount")


@pytest.mark.parametrize(
    ("query", "columns"),
    [
        ("select * from t", SHOWN),
        ("select * except (items) from t", (*SHOWN[:6], "amount")),
        ("select * from t union all select * from u", SHOWN),
        ("table t", SHOWN),
        ("from t |> where id > 1 |> drop items", (*SHOWN[:6], "amount")),
        ("with x as (select * from t) select *, offset as o from x", (*SHOWN, "o")),
        ("select t.*, item from t, lateral explode(items) as e(item)", (*SHOWN, "item")),
    ],
)
def test_a_star_row_by_row_stands_for_the_data(analyze, query, columns):
    found = analyze(query)
    assert (found.output_columns, [step.query_class for step in found.steps]) == (columns, ["row-by-row"])


@pytest.mark.parametrize(
    ("query", "kinds"),
    [
        ("select event_time, item from t, lateral explode(items) as e(item)", ["row-by-row"]),
        ("select t.event_time, x from t join values (1, 'a') as v(i, x) on id = i", ["row-by-row"]),
        ("select event_time, id from t union all select timestamp'2024-01-01', 1", ["row-by-row"]),
        ("select event_time, n from t cross join range(2) as r(n)", ["row-by-row"]),
        ([("v", "select * from range(3)"), (None, "select event_time from t join v using (id)")], ["constants", "row-by-row"]),
        ("select t.event_time, m from t, lateral (select max(amount) as m from u where u.id = t.id)", ["keyed aggregate + join"]),
    ],
)  # fmt: skip
def test_the_class_says_what_a_query_needs(analyze, query, kinds):
    assert [step.query_class for step in analyze(query).steps] == kinds


GROUPED, LIMITED = "depends on the order of the rows in a group", "LIMIT without a total order"
MISPLACED = "This subquery cannot be processed incrementally"
COLLATED = "equal by their collation"
REFUSED = {
    "with g as (select max(event_time) as event_time, «collect_list(id)» as l from t group by name) select event_time, sort_array(l) as s, l from g": GROUPED,
    "select event_time, element_at(l, 1) as f from (select max(event_time) as event_time, «collect_list(id)» as l from t group by name)": GROUPED,
    "select event_time, posexplode(l) as (p, i) from (select max(event_time) as event_time, «collect_set(id)» as l from t group by name)": GROUPED,
    "select event_time, count(*) as n from (select max(event_time) as event_time, «collect_set(id)» as l from t group by name) group by event_time, l": GROUPED,
    "select max(event_time) as event_time, transform(«collect_list(id)», (x, i) -> x + i) as s from t group by name": GROUPED,
    "select max(event_time) as event_time from t group by name having «collect_list(id)» = array(1)": GROUPED,
    "select max(event_time) as event_time, «first(id + 1)» as f from t group by name": GROUPED,
    "select max(event_time) as event_time, «first(name)» as f from t group by rollup(name)": GROUPED,
    "select max(event_time) as event_time, «max_by(name, struct(id, amount))» as f from t group by amount": GROUPED,
    "select max(event_time) as event_time, «mode(id)» as m from t group by name": GROUPED,
    "select event_time, «mode(id) over (partition by name)» as m from t": "its window has none",
    "select max(event_time) as event_time, lower(name collate unicode_ci) as n from t group by «name collate unicode_ci»": COLLATED,
    "select max(event_time) as event_time, length(name collate utf8_lcase) as n from t group by «name collate utf8_lcase»": COLLATED,
    "select event_time, id from (select event_time, id from t sort by id) «limit 3»": LIMITED,
    "select t.event_time, i from t, lateral (select u.id as i from u where u.name = t.name «limit 1»)": LIMITED,
    "select t.event_time, i from t, «lateral» (select u.id as i from u where u.name = t.name order by amount limit 1)": "ORDER BY does not name what it selects",
    "select event_time from t where id in (select x from values («rand()») as v(x))": "is random",
    "select event_time from t join values (1, «now()») as v(x, y) on id = x": "reads the clock",
    "select event_time from t join values (1, «timestamp'now'») as v(x, y) on id = x": "reads the clock",
    "select event_time from t join values (1, «current_user()») as v(x, y) on id = x": "depends on the environment",
    "with v as (select * from range(«unix_timestamp()»)) select event_time from t join v using (id)": "reads the clock",
    "select event_time from t join «range(0, 10000000, 2)» r using (id)": "This range has 5,000,000 rows",
    "select event_time, id from «values (timestamp'2024-01-01', 1) as v(event_time, id)»": "Rows that come from no input",
    "select event_time, id from t «order by id»": "ORDER BY without LIMIT",
    "from t |> select event_time, id |> «order by all»": "ORDER BY without LIMIT",
    "select max(event_time) as event_time, sum(id) / «(select sum(id) from u)» as part from t group by name": MISPLACED,
    "select max(event_time) as event_time, sum(id - «(select min(id) from u)») as s from t group by name": MISPLACED,
    "select max(event_time) as event_time, count(*) filter (where id > «(select min(id) from u)») as n from t group by name": MISPLACED,
    "select max(event_time) as event_time from t group by id > «(select min(id) from u)»": MISPLACED,
    "select event_time, (select sum(id) + «(select max(id) from t)» from u) as s from t": MISPLACED,
    "select t.event_time from t join u on t.id = u.id and u.amount > «(select min(amount) from t)»": MISPLACED,
    "select t.event_time from t left join u on t.id + «(select min(id) from t)» = u.id": MISPLACED,
    "select event_time from t where id + «(select min(id) from t)» in (select id from u)": MISPLACED,
    "select event_time, id from t order by abs(id - «(select min(id) from u)»), name limit 1": MISPLACED,
}  # fmt: skip


@pytest.mark.parametrize(("marked", "words"), REFUSED.items(), ids=list(REFUSED))
def test_a_refusal_says_why_and_where(analyze, marked, words):
    found = analyze(marked.replace("«", "").replace("»", ""))
    assert isinstance(found, TransformResponseInvalidQuery), found
    assert words in found.message
    assert found.hint
    assert found.message.split("\n")[-1].index("^") - 4 == marked.index("«"), found.message


def test_what_depends_on_an_order_is_refused_beside_temporal_tables_too(spark, tmp_path):
    """Which are analyzed by themselves."""
    from odfpy.dataset.transform import TemporalTable

    request = analyze_request(
        "select max(event_time) as event_time, first(name) as f from t", Source(tmp_path, "t", COLUMNS)
    )
    temporal = replace(request.transform, temporal_tables=(TemporalTable(name="t", primary_key=("id",)),))
    found = operations.analyze(spark, replace(request, transform=temporal))
    assert GROUPED in found.message


@pytest.mark.parametrize(
    "query", ["select event_time, k from t", "select max(event_time) as event_time, k from t group by k"]
)
def test_columns_of_an_input_may_not_have_names_of_the_engine(spark, tmp_path, query):
    source = Source(tmp_path, "t", [pa.field("k", pa.int32()), pa.field("__odf_x", pa.int32())])
    answer = operations.analyze(spark, analyze_request(query, source))
    assert isinstance(answer, TransformResponseInvalidQuery)
    assert "names with __odf_ are those of the engine" in answer.message
