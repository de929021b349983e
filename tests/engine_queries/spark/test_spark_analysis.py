"""What Spark's analyzed plan says of queries: their class, or why they are refused and where in the text."""

from __future__ import annotations

import math
import re

import pyarrow as pa
import pytest
from support.engine.requests import Source, analyze_request, required
from support.engine.spark_limits import HAS_ALL

from odfpy.data.schemas.schema import DataField, Decimal, Int16, Int32, Option, String
from odfpy.engine.contract import AnalyzeResponseSuccess, TransformResponseInvalidQuery
from odfpy.engine.spark.execution import operations
from odfpy.engine.spark.plan.functions import (
    AGGREGATES,
    DETERMINISTIC,
    OF_ORDER,
    REFUSED,
    WINDOW_FUNCTIONS,
    why_not_deterministic,
)
from odfpy.engine.spark.process.session import request_session, version_of
from odfpy.engine.spark.process.settings import JVM_OPTIONS, SETTINGS, TUNING, settings_digest

pytestmark = pytest.mark.spark

COLUMNS = (
    required("id", pa.int64()),
    pa.field("name", pa.string()),
    pa.field("items", pa.list_(pa.int32())),
    pa.field("place", pa.struct([("x", pa.float64()), ("y", pa.float64())])),
    pa.field("amount", pa.decimal128(10, 2)),
)


@pytest.fixture(scope="module")
def analyze(spark, tmp_path_factory):
    folder = tmp_path_factory.mktemp("inputs")
    inputs = [Source(folder, alias, COLUMNS) for alias in ("t", "org.example.t")]

    def run(query):
        return operations.analyze(spark, analyze_request(query, *inputs))

    return run


# --- Row by row ------------------------------------------------------------------------------------------------------

ROW_BY_ROW = [
    "select event_time, id from t",
    "select x.event_time, x.id as k from t as x where x.id > 3 and name like 'a%'",
    "select * except (offset, system_time) from t",
    "select event_time, struct(* except (offset, op, system_time)) as s from t",
    "select event_time, xxhash64(*) as h from (select event_time, id from t)",
    "select event_time, hash(id * 2, offset) as h from t",
    "select event_time, item from t lateral view outer explode(items) as item",
    "select event_time, posexplode(items) from t",
    "select event_time, inline(array(place)) from t",
    "select event_time, stack(2, id, id + 1) as k from t",
    "with a as (select * from t), b as (select event_time, id from a) select * from b union all select * from b",
    "select event_time, id from `org.example.t`",
    "select event_time, id from org.example.t",
    "select event_time, x.id from t x union all select event_time, y.id from org.example.t as y where id > 1",
    "from t |> where id > 3 |> select event_time, id",
    "select event_time, window(event_time, '1 day').start as day from t",
    "select event_time + interval 1 day as event_time, place.x, items[0] as i, amount * 2 as a, -id as m from t",
    "select event_time, transform(items, i -> i + 1) as i, filter(items, i -> i > 0) as j from t",
    "select event_time, aggregate(items, 0, (a, i) -> a + i) as s, size(items) as n from t",
    "select event_time, case when id > 3 then 'a' else coalesce(name, 'b') end as c, id in (1, 2) as d from t",
    "select event_time, try_cast(name as int) as n, name::string as s, id between 1 and 3 as b from t",
    "select event_time, date_trunc('day', event_time) as d, hour(event_time) as h, extract(year from event_time) y from t",
    "select event_time, datediff(event_time, date'2024-01-01') as d, event_time > timestamp'2024-01-01' as l from t",
    "select event_time, to_timestamp('2024-01-01') as a, to_date(name, 'yyyy') as b, unix_timestamp(event_time) c from t",
    "select event_time, concat_ws('-', name, 'x') as c, lpad(name, 3, '0') as p, split(name, ',')[0] as s from t",
    "select event_time, regexp_replace(name, 'a', 'b') as r, name rlike 'a' as l, name || 'x' as j from t",
    "select event_time, get_json_object(name, '$.a') as a, from_json(name, 'a int').a as b, to_json(place) as j from t",
    "select event_time, md5(name) as m, hash(id) as h, xxhash64(id, name) as x, sha2(name, 256) as s from t",
    "select event_time, named_struct('a', id).a as a, array(id)[0] as b, map('k', id)['k'] as c from t",
    "select event_time, map_keys(map('a', 1)) as k, array_distinct(items) as d, sort_array(items) as s from t",
    "select event_time, round(amount, 1) as r, sqrt(place.x) as q, ln(place.x) as l, pow(place.x, 2) as p from t",
    "select event_time, nullif(name, 'a') as n, ifnull(name, 'b') as i, nvl2(name, 1, 2) as v, if(id > 1, 1, 2) f from t",
    "select event_time, make_date(2024, 1, 1) as d, timestamp_millis(id) as m, date_add(event_time, 1) as a from t",
    "select event_time, event_time - timestamp'2024-01-01' > interval 1 day as later from t",
    "select event_time, cast(event_time as timestamp_ntz) as n from t",
    *(["select event_time, cast(event_time as time) as t from t"] if HAS_ALL else []),
    "select event_time, trim(name) as t, upper(name) u, initcap(name) i, substring(name, 1, 2) s, left(name, 1) l from t",
    "select event_time, contains(name, 'a') as c, startswith(name, 'a') as s, instr(name, 'a') as i from t",
    "select event_time, try_divide(id, 0) as d, try_add(id, 1) as a, id div 2 as v, id % 2 as r, abs(id) b from t",
    "select event_time, parse_url(name, 'HOST') as h, url_decode(name) as u, base64(name) b from t",
    "select event_time, '${env:HOME}' as literally, \"text\" as quoted from t",
]


@pytest.mark.parametrize("query", ROW_BY_ROW)
def test_queries_row_by_row(analyze, query):
    found = analyze(query)
    assert isinstance(found, AnalyzeResponseSuccess), found
    assert [step.query_class for step in found.steps] == ["row-by-row"]


def test_an_analysis_says_what_each_step_is(analyze):
    found = analyze(
        [
            ("big", "select * from t where id > 3"),
            ("items", "select event_time, explode(items) i from big"),
            (None, "table items"),
        ]
    )
    assert [(step.alias, step.query_class) for step in found.steps] == [
        ("big", "row-by-row"),
        ("items", "row-by-row"),
        (None, "row-by-row"),
    ]
    assert found.steps[1].reason == "every result row comes from one input row: projection, explode"
    assert found.output_columns == ("offset", "op", "system_time", "event_time", "i")


def test_the_schema_of_the_result_has_the_nullability_of_the_query(analyze):
    found = analyze(
        "select event_time, id as k, name, coalesce(name, 'x') as n, cast(id as smallint) as s, amount, id + null as z from t"
    )
    assert found.output_schema.fields[4:] == (
        DataField("k", found.output_schema.fields[0].type),
        DataField("name", Option(String())),
        DataField("n", String()),
        DataField("s", Int16()),
        DataField("amount", Option(Decimal(10, 2))),
        DataField("z", Option(found.output_schema.fields[0].type)),
    )
    assert not any(field.is_optional for field in found.output_schema.fields[:4])


def test_unsigned_integers_are_seen_as_the_next_wider_type(spark, tmp_path):
    columns = [
        required("a", pa.uint8()),
        required("b", pa.uint16()),
        required("c", pa.uint32()),
        required("d", pa.uint64()),
    ]
    found = operations.analyze(
        spark, analyze_request("select event_time, a, b, c, d from t", Source(tmp_path, "t", columns))
    )
    a, b, c, d = (field.type for field in found.output_schema.fields[4:])
    assert (a, b, d) == (Int16(), Int32(), Decimal(20, 0))
    assert c == found.output_schema.fields[0].type


# --- Refusals --------------------------------------------------------------------------------------------------------

NONDETERMINISTIC = {
    "select event_time, [rand()] as r from t": "is random",
    "select event_time, [randn(3)] as r from t": "is random",
    "select event_time, [uuid()] as r from t": "is random",
    "select event_time, [shuffle(items)] as r from t": "is random",
    "select event_time, [randstr(3)] as r from t": "is random",
    "select event_time, [uniform(1, 9)] as r from t": "is random",
    "select event_time, [now()] as r from t": "reads the clock",
    "select event_time, [current_timestamp] as r from t": "reads the clock",
    "select [current_date()] as event_time from t": "reads the clock",
    "select event_time, [localtimestamp()] as r from t": "reads the clock",
    "select event_time, [unix_timestamp()] as r from t": "reads the clock",
    "select event_time, [timestamp'now'] as r from t": "reads the clock",
    'select event_time, [DATE "today"] as r from t': "reads the clock",
    "select event_time, [timestamp_ntz 'tomorrow'] as r from t": "reads the clock",
    "select event_time from t where event_time > ['now']": "reads the clock",
    "select event_time from t where event_time < cast(['yesterday'] as timestamp)": "reads the clock",
    "select event_time, to_date(['today']) as d from t": "reads the clock",
    "select event_time, date_add(['today'], 1) as d from t": "reads the clock",
    "[select event_time from t where event_time > concat('to', 'day')]": "reads the clock",
    "select event_time, [current_timezone()] as r from t": "depends on the environment",
    "select event_time, [session_user()] as r from t": "depends on the environment",
    "select event_time, [current_user] as r from t": "depends on the environment",
    "select event_time, [current_catalog()] as r from t": "depends on the environment",
    "select event_time, [version()] as r from t": "depends on the environment",
    "select event_time, [input_file_name()] as r from t": "depends on how the data is stored",
    "select event_time, [monotonically_increasing_id()] as r from t": "depends on how the data is stored",
    "select event_time, [spark_partition_id()] as r from t": "depends on how the data is stored",
    "select event_time, [reflect('java.lang.System', 'getenv', 'HOME')] as r from t": "runs code",
    "select event_time, [java_method('java.util.UUID', 'randomUUID')] as r from t": "runs code",
    "select event_time, [try_reflect('java.util.UUID', 'randomUUID')] as r from t": "runs code",
    "select event_time, [aes_encrypt(name, '0000111122223333')] as r from t": "random initialization vector",
    "select event_time, [format_string('%s', encode(name, 'utf-8'))] as r from t": "formats a value of type BINARY",
    "select event_time, [printf('%d %s', id, items)] as r from t": "formats a value of type ARRAY",
    "select event_time, [format_string('%h', place)] as r from t": "formats a value of type STRUCT",
    "select event_time, [from_xml(name, 'a int', map('RowValidationXsdPath', '/etc/passwd'))] as r from t": "reads files",
    "select event_time, [schema_of_xml('<a/>', map('rowValidationXSDPath', '/x'))] as r from t": "reads files",
    "select event_time, [from_avro(cast(name as binary), '{}')] as x from t": "reads files",
    "select event_time from t where id in (select id from t where event_time > [now()])": "reads the clock",
    "select event_time from t x where exists (select 1 from t where id = x.id and event_time > ['now'])": "reads the clock",
    "select event_time, [row_number() over (partition by name)] as r from t": "its window has none",
    "select event_time, lag(id) over (order by id) as a, [lag(name) over ()] as b from t": "its window has none",
    "select event_time, [rank(]) over w as r from t window w as (partition by name)": "its window has none",
    "select event_time from t where id > 3 and [rand()] > 0.5": "is random",
    "select event_time, transform(items, i -> i + [rand()]) as r from t": "is random",
    "with a as (select event_time, [rand()] as r from t) select * from a": "is random",
    "select event_time, count([rand()]) as r from t group by 1": "Non-deterministic expression",
    "select event_time, id from t [limit 3]": "LIMIT without a total order",
    "select event_time, id from t [tablesample (10 percent)]": "TABLESAMPLE",
    "select [/*+ broadcast(t) */] event_time, id from t": "Hints such as broadcast are not allowed",
}

OF_ORDER_CASES = {
    "select event_time from t where id in (select [rand()] from t)": "is random",
    "select event_time, (select [first(id)] from t) as f from t": "depends on the order of the rows in a group",
    "select event_time, (select id from t [limit 1]) as f from t": "LIMIT without a total order",
    "select max(event_time) as event_time, [first(id)] as r from t": "depends on the order of the rows in a group",
    "select max(event_time) as event_time, [last_value(id)] as r from t group by name": "depends on the order of the rows in a group",
    "select max(event_time) as event_time, [any_value(id)] as r from t": "depends on the order of the rows in a group",
    "select max(event_time) as event_time, size([first(m)]) as n from (select *, map(id, id) as m from t) group by m": "depends on the order of the rows in a group",
    "select max(event_time) as event_time, [min_by(name, id)] as r from t": "depends on the order of the rows in a group",
    "select max(event_time) as event_time, [max_by(name, id)] as r from t": "depends on the order of the rows in a group",
    "select max(event_time) as event_time, [max_by(name, id, 3)] as r from t": "depends on the order of the rows in a group",
    "select max(event_time) as event_time, [collect_list(id)] as r from t": "depends on the order of the rows in a group",
    "select max(event_time) as event_time, [collect_set(id)] as r from t": "depends on the order of the rows in a group",
    "select max(event_time) as event_time, [array_agg(id)] as r from t": "depends on the order of the rows in a group",
    "select max(event_time) as event_time, reverse([collect_list(id)]) as r from t": "depends on the order of the rows in a group",
    "select max(event_time) as event_time, array_sort([collect_list(id)], (a, b) -> int(a % 2 - b % 2)) as r from t": "depends on the order of the rows in a group",
    "select max(event_time) as event_time, [listagg(name, ',')] as r from t": "depends on the order of the rows in a group",
    "select max(event_time) as event_time, [string_agg(name) within group (order by id)] as r from t": "depends on the order of the rows in a group",
    "select max(event_time) as event_time, [mode(id)] as r from t": "depends on the order of the rows in a group",
    "select max(event_time) as event_time from t group by name having [first(id)] > 3": "depends on the order of the rows in a group",
    "select max(event_time) as event_time, [approx_count_distinct(id)] as r from t": "is approximate",
    "select max(event_time) as event_time, [percentile_approx(id, 0.5)] as r from t": "is approximate",
    "select max(event_time) as event_time, [approx_top_k(id)] as r from t": "is approximate",
    "select max(event_time) as event_time, [histogram_numeric(id, 5)] as r from t": "is approximate",
    "select max(event_time) as event_time, [count_min_sketch(id, 0.5d, 0.5d, 1)] as r from t": "is approximate",
    "select max(event_time) as event_time, [hll_sketch_agg(id)] as r from t": "is approximate",
    "select max(event_time) as event_time, [kll_sketch_agg_bigint(id)] as r from t": "is approximate",
    "select max(event_time) as event_time, [theta_sketch_agg(id)] as r from t": "is approximate",
    "select max(event_time) as event_time, [tuple_sketch_agg_double(id, 1d)] as r from t": "is approximate",
    "select max(event_time) as event_time, [schema_of_variant_agg(parse_json(name))] as r from t": "is not among",
    **({"select max(event_time) as event_time, [collect_union(items)] as r from t": "is not among"} if HAS_ALL else {}),
    "select event_time, [first(id) over (partition by name)] as r from t": "its window has none",
    "select event_time, [collect_list(id) over ()] as r from t": "its window has none",
    "select event_time, [sum(id) over (rows between 1 preceding and current row)] as r from t": "its window has none",
    "select max(event_time) as event_time, [max(name collate unicode_ci)] as r from t": "equal by their collation",
    "select max(event_time) as event_time, name collate unicode_ci as n from t group by [name collate unicode_ci]": "equal by their collation",
    "[select distinct event_time, name collate unicode_ci as n from t]": "equal by their collation",
    "select event_time, id from (select x.event_time, x.id from (select * from t order by id) x join t y on x.id = y.id) [limit 3]": "LIMIT without a total order",
}

UNSUPPORTED = {
    "select event_time, id from t [order by id]": "ORDER BY without LIMIT",
    "select max(event_time) as event_time, id from t group by id [order by id]": "ORDER BY without LIMIT",
    "[select timestamp'2024-01-01' as event_time]": "Rows that come from no input",
    "select event_time, id from [values (timestamp'2024-01-01', 1) as v(event_time, id)]": "Rows that come from no input",
    "select timestamp_seconds(id) as event_time from [range(3)]": "Rows that come from no input",
    "[with recursive] r(n) as (select 1 union all select n + 1 from r where n < 3) select event_time from t, r": "A recursive query",
}

INVALID = {
    "[selec] 1": "Syntax error at or near 'selec'",
    "select event_time from t; [select] 1": "Syntax error",
    "select event_time, [nosuch] from t": "`nosuch` cannot be resolved",
    "select event_time, [u.*] from t": "Cannot resolve `u`.*",
    "select event_time, count(*) over [w] from t": "not defined in the WINDOW clause",
    "select event_time, [ID] from t": "`ID` cannot be resolved",
    "select event_time from [nosuch]": "`nosuch` cannot be found",
    "select event_time from t join [org.example.nosuch] using (id)": "neither an input nor an earlier step",
    "select event_time, [nosuch(id)] from t": "Cannot resolve routine `nosuch`",
    "select event_time, [abs(id, id)] from t": "requires 1 parameters",
    "select event_time, abs([id]) as d, count(*) as n from t group by event_time": "not participating in the GROUP BY",
    "select * from [parquet.`/etc/passwd`]": "cannot be found",
    "select * from [`/etc/passwd`]": "cannot be found",
    "select event_time, [_metadata.file_path] from t": "cannot be resolved",
    "select event_time, [__odf_op] from t": "cannot be resolved",
    "select event_time, [id as __odf_op] from t": "reserved",
    "select event_time from t [lateral view explode(items) as __odf_op]": "reserved",
    "[set spark.sql.ansi.enabled = false]": "allowed, not SetCommand",
    "[create table x as select 1]": "allowed, not CreateTableAsSelect",
    "[create temporary function f as 'java.lang.Math']": "allowed, not",
    "[insert into t] select 1": "allowed, not InsertIntoStatement",
    "[drop table t]": "allowed, not DropTable",
    "[explain select 1]": "allowed, not ExplainCommand",
    "[describe t]": "allowed, not",
    "[begin select 1; end]": "allowed, not CompoundBody",
    "[execute immediate 'select 1']": "allowed, not",
    "[select transform(id) using 'cat' as x from t]": "allowed, not ScriptTransformation",
    "select event_time, id from t [limit all]": "LIMIT ALL is not supported",
    "select id from t": "no event time: no column `event_time` among id",
    "select id as event_time from t": "`event_time` has type int64",
    "select offset, * except (offset) from t": "a column `offset`, which the engine assigns",
    "select event_time, id, id from t": "two columns `id`",
    "select event_time, [xxhash64(*)] as h from t": "A star brings `offset`, `op` and `system_time`",
    "select event_time, to_json([struct(x.*)]) as j from t as x": "A star brings",
    "with a as (select event_time, [struct(* except (offset))] as s from t) select * from a": "A star brings",
    "select event_time, [hash( * )] as h from t union all select event_time, 1 as h from t": "A star brings",
    "select event_time, id from t where [hash(*)] > 0": "A star brings",
    "select 0 as op, event_time from t": "`op` of the result is not the `op` of an input",
    "select op + 0 as op, event_time from t": "`op` of the result is not the `op` of an input",
    "select event_time, id as op from t": "`op` of the result is not the `op` of an input",
    "select max(event_time) as event_time from t [group by session_window(event_time, 'five')]": "not an interval that lasts",
    "select max(event_time) as event_time from t [group by name, session_window(event_time, '-5 minutes')]": "not an interval that lasts",
    "select max(event_time) as event_time from t [group by session_window(event_time, concat('0', ' seconds'))]": "not an interval that lasts",
}


def _cases():
    for kind, cases in (
        ("nondeterministic", NONDETERMINISTIC | OF_ORDER_CASES),
        ("unsupported", UNSUPPORTED),
        ("invalid", INVALID),
    ):
        for marked, words in cases.items():
            yield pytest.param(marked, kind, words, id=marked)


@pytest.mark.parametrize(("marked", "kind", "words"), list(_cases()))
def test_a_refusal_says_why_and_where(analyze, marked, kind, words):
    """The place is marked with brackets, except those of arrays, which are not used here."""
    query = marked.replace("[", "").replace("]", "")
    found = analyze(query)
    assert isinstance(found, TransformResponseInvalidQuery), found
    assert (found.fault, words in found.message) == (kind, True), found.message
    if "[" in marked:
        carets = found.message.split("\n")[-1]
        assert carets.index("^") - 4 == marked.index("["), found.message
        width = marked.index("]") - marked.index("[") - 1
        if "Syntax error" not in found.message:  # of which Spark tells the beginning only
            assert carets.count("^") == min(width, 40), found.message


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("select first(id) as f, max(event_time) as event_time from t", "min(struct(order, value)).value"),
        ("select max_by(name, id) as f, max(event_time) as event_time from t", "max(struct(order, value)).value"),
        ("select collect_list(id) as f, max(event_time) as event_time from t", "sort_array(collect_list(...))"),
        ("select listagg(name) as f, max(event_time) as event_time from t", "WITHIN GROUP (ORDER BY value)"),
        ("select approx_count_distinct(id) as f, max(event_time) as event_time from t", "count(DISTINCT ...)"),
        ("select event_time, first(id) over () as f from t", "ORDER BY"),
        ("select event_time, now() as f from t", "event time"),
        ("select event_time, row_number() over (partition by id) as f from t", "ORDER BY"),
        ("select event_time, input_file_name() as f from t", "column of the input"),
        ("select event_time, current_timezone() as f from t", "as a constant"),
        ("select event_time, reflect('java.lang.Math', 'random') as f from t", "built-in functions"),
        ("select event_time, aes_encrypt(name, '0000111122223333') as f from t", "sha2"),
        ("select event_time, format_string('%s', items) as f from t", "to_json(...)"),
        ("select t.event_time, id from t join t as u using (name)", "alias of its table"),
        ("select event_time, count(*) as n from t group by id", "max(...)"),
        ("select event_time, mine(id) as f from t", "Spark's built-in functions"),
        ("select event_time, summ(id) as f from t", "Did you mean sum?"),
        ("select event_time, nmae from t", "Did you mean name?"),
        ("select u.event_time from t", "Did you mean `t`.`event_time`?"),
        ("select event_time form t where id = 1", "Did you mean FROM?"),
        ("select event_time from t where id =", "Write one SELECT"),
        ("select x.event_time from t x join t y on rand() > 0.5", "xxhash64"),
        (
            "with recursive r(n) as (select 1 union all select n + 1 from r where n < 3) select event_time from t, r",
            "join",
        ),
    ],
)
def test_a_refusal_says_what_to_write_instead(analyze, query, words):
    assert words in analyze(query).hint


SORTED_AFTERWARDS = [
    "sort_array(collect_list(id))", "array_sort(collect_set(id))", "size(collect_list(id))", "array_max(array_agg(id))",
    "listagg(name, ',') within group (order by name)", "listagg(id) within group (order by name desc, id)",
    "mode(id, true)", "mode() within group (order by id)", "max(struct(id, name)).name", "count(distinct id, name)",
]  # fmt: skip


def test_functions_of_order_are_fine_where_their_result_is_put_in_order(analyze):
    """Which class such a query is of is another matter."""
    columns = ", ".join(f"{expression} as c{at}" for at, expression in enumerate(SORTED_AFTERWARDS))
    found = analyze(f"select max(event_time) as event_time, {columns} from t group by name")
    assert getattr(found, "fault", None) != "nondeterministic", found


def test_functions_of_order_are_fine_over_an_ordered_window(analyze):
    found = analyze("select event_time, first(id) over (order by name) as f, sum(id) over () as s from t")
    assert getattr(found, "fault", None) != "nondeterministic", found


def test_a_place_has_line_and_column_and_step(analyze):
    found = analyze([("a", "select * from t"), (None, "select\n  event_time,\n\trand() as r\nfrom a")])
    assert found.message == "`rand()` is random (line 3, column 2 of step 2)\n    \trand() as r\n    \t^^^^^^"


def test_types_that_no_dataset_can_hold_are_refused_when_they_are_analyzed(analyze):
    for expression in ("interval 1 day", "map('a', 1)", "array(named_struct('a', 1))", "null", "parse_json('1')"):
        found = analyze(f"select event_time, {expression} as odd from t")
        assert isinstance(found, TransformResponseInvalidQuery)
        assert (found.fault, "odd" in found.message) == ("unsupported", True)


def test_steps_need_aliases_that_are_free(analyze):
    assert "no alias" in analyze([(None, "select * from t"), (None, "select 1")]).message
    assert "is already used" in analyze([("t", "select * from t"), (None, "select 1")]).message


def test_no_query_sees_what_an_earlier_request_named(analyze):
    analyze([("leftover", "select event_time from t"), (None, "table leftover")])
    assert "cannot be found" in analyze("select * from leftover").message


# --- Watermark -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("event_time", "advances"),
    [
        ("event_time", True),
        ("cast(event_time as date) as event_time", True),
        ("date_trunc('month', event_time) + interval 1 day as event_time", True),
        ("timestamp_seconds(id) as event_time", False),
        ("timestamp'2024-01-01' as event_time", False),
        ("to_timestamp(date_format(event_time, 'ssmm'), 'mmss') as event_time", False),
        ("greatest(event_time, timestamp_seconds(id)) as event_time", False),
    ],
)
def test_the_author_is_told_when_the_watermark_will_not_advance(analyze, event_time, advances):
    notes = analyze(f"select {event_time}, id from t").notes
    assert [note.startswith("The watermark will not advance") for note in notes] == ([] if advances else [True])


# --- Functions and settings ------------------------------------------------------------------------------------------

MADE_INTO_OTHERS = {
    # What aggregates and windows of other names become: refused or not by what they become.
    "aggregate.MaxByBuilder", "aggregate.MinByBuilder", "aggregate.ModeBuilder", "aggregate.PercentileContBuilder",
    "aggregate.PercentileDiscBuilder", "aggregate.TryAverageExpressionBuilder", "aggregate.TrySumExpressionBuilder",
    "TimeWindow", "SessionWindow", "WindowTime",
}  # fmt: skip
REFUSED_AT_PARSE = {"python_worker_logs"}
OPERATORS = {"range"}
BUILDERS = {
    # Functions that stand for several expressions, or for others than their own name says, tried by example below.
    "ceil(1.5)", "floor(1.5)", "ceil(1.5, 0)", "lpad('a', 3, 'b')", "lpad(x'01', 3, x'02')", "contains('a', 'b')",
    "contains(x'01', x'02')", "instr('ab', 'b')", "instr('ab', 'b', 1, 1)", "mask('a')", "to_char(1, '9')",
    "to_char(timestamp'2024-01-01', 'yyyy')", "to_char(x'01', 'hex')", "date_part('year', date'2024-01-01')",
    "date_part('day', interval 1 day)", "hour(timestamp'2024-01-01')", "second(timestamp'2024-01-01')",
    "hour(time'01:02:03')", "minute(time'01:02:03')", "second(time'01:02:03')", "extract(second from time'01:02:03')",
    "make_timestamp(2024, 1, 1, 1, 1, 1)", "make_timestamp_ltz(2024, 1, 1, 1, 1, 1)", "make_time(1, 2, 3)",
    "make_timestamp_ntz(2024, 1, 1, 1, 1, 1)", "try_make_timestamp(2024, 1, 1, 1, 1, 1)", "try_to_date('x')",
    "try_to_timestamp('2024')", "try_to_time('01:02')", "to_timestamp_ntz('2024')", "to_timestamp_ltz('2024')",
    "time_bucket(interval 1 day, timestamp'2024-01-01')", "time_trunc('HOUR', time'01:02:03')", "raise_error('x')",
    "try_add(date'2024-01-01', interval 1 month)", "try_divide(interval 1 month, 2)", "try_subtract(3, 1)",
    "try_multiply(interval 1 month, 2)", "try_divide(interval 1 day, 2)", "interval 1 day * 2", "interval 1 month / 2",
    "date'2024-01-01' - date'2023-01-01'", "date'2024-01-01' + interval 1 month", "date'2024-01-01' + 1",
    "timestamp'2024-01-01' + interval 1 month", "timestampadd(hour, 1, timestamp'2024-01-01')",
    "timestampdiff(hour, timestamp'2024-01-01', timestamp'2024-01-02')", "time'01:02:03' + interval 1 hour",
    "collate('a', 'UNICODE_CI') = 'A'", "'a' like all ('a', 'b')", "'a' not like any ('a', 'b')", "'a' ilike 'A'",
    "try_variant_get(parse_json('1'), '$', 'int')", "variant_get(parse_json('[1]'), '$[0]', 'int')", "equal_null(1, 2)",
    "named_struct('a', array(named_struct('b', 1))).a.b[0]", "extract(hours from interval 1 hour)",
    "extract(month from interval 1 month)", "extract(yearofweek from date'2024-01-01')", "try_element_at(array(1), 2)",
}  # fmt: skip
if not HAS_ALL:
    BUILDERS -= {"instr('ab', 'b', 1, 1)"}


def test_every_function_of_spark_has_been_reviewed(spark):
    """A new release of Spark may bring functions: each must be put into one of the lists."""
    infos = spark._jvm.org.apache.spark.sql.api.python.PythonSQLUtils.listBuiltinFunctionInfos()
    package = "org.apache.spark.sql.catalyst.expressions."
    known = DETERMINISTIC | AGGREGATES | WINDOW_FUNCTIONS | OF_ORDER.keys() | REFUSED.keys() | MADE_INTO_OTHERS
    unseen = {}
    for info in infos:
        expression = info.getClassName().removeprefix(package)
        approximate = why_not_deterministic(expression) == "is approximate"
        builder = expression.endswith("Builder") and not expression.startswith("aggregate.")
        if not (expression in known or approximate or builder or info.getName() in REFUSED_AT_PARSE | OPERATORS):
            unseen[info.getName()] = expression
    assert unseen == {}


def test_no_function_is_in_two_lists():
    lists = (DETERMINISTIC, AGGREGATES, WINDOW_FUNCTIONS, OF_ORDER.keys(), REFUSED.keys())
    assert len(frozenset().union(*lists)) == sum(map(len, lists))


def test_each_function_of_many_rows_is_in_a_list_of_such(spark):
    """An aggregate among the functions of one row would be run as if the order of rows did not matter."""
    jvm = spark._jvm
    package = "org.apache.spark.sql.catalyst.expressions."
    kinds = [jvm.java.lang.Class.forName(package + name) for name in ("aggregate.AggregateFunction", "WindowFunction")]
    for info in jvm.org.apache.spark.sql.api.python.PythonSQLUtils.listBuiltinFunctionInfos():
        found = jvm.java.lang.Class.forName(info.getClassName())
        if any(kind.isAssignableFrom(found) for kind in kinds):
            assert info.getClassName().removeprefix(package) not in DETERMINISTIC, info.getName()


def test_functions_that_stand_for_several_expressions(analyze):
    columns = ", ".join(
        f"cast(({expression}) is null as int) as c{at}" for at, expression in enumerate(sorted(BUILDERS))
    )
    found = analyze(f"select event_time, {columns} from t")
    assert isinstance(found, AnalyzeResponseSuccess), found.message


def test_what_is_in_no_list_is_refused():
    assert why_not_deterministic("BrandNew") == "is not among the functions that are known to be deterministic"
    assert why_not_deterministic("KllSketchGetNBigint") == "is approximate"


def test_a_request_has_the_pinned_settings(spark):
    session = request_session(spark)
    assert {name: session.conf.get(name) for name in SETTINGS} == SETTINGS


def test_the_version_names_all_that_a_result_depends_on(spark):
    assert re.fullmatch(
        rf"odfpy-spark/\d+ spark/{re.escape(spark.version)} java/\d+ settings/{settings_digest()}", version_of(spark)
    )
    assert len(settings_digest()) == 8
    assert SETTINGS.keys().isdisjoint(TUNING)


def test_mathematical_functions_are_those_of_the_java_specification(spark):
    """Without the option, many results differ from machine to machine in their last bit."""
    assert "-XX:-UseLibmIntrinsic" in JVM_OPTIONS
    functions = ("sin", "cos", "tan", "exp", "ln", "log10", "tanh", "cbrt")
    selected = ", ".join(f"{name}(x) as {name}" for name in functions)
    rows = spark.sql(f"select x, {selected} from (select id / 7d + 0.1d as x from range(200))").collect()
    strict = spark._jvm.java.lang.StrictMath
    for row in rows:
        for name in functions:
            exact = getattr(strict, "log" if name == "ln" else name)(row["x"])
            assert row[name] == exact or math.isnan(exact)
