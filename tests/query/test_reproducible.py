"""Proofs are given of queries that have one answer, and refused for all others, with the reason."""

from __future__ import annotations

import pytest
from support.fixtures import KAMU

from odfpy.coordinator.workspace import Workspace
from odfpy.errors import InvalidQuery
from odfpy.query.plan import plan
from odfpy.query.wire.reproducible import NotReproducible, check_reproducible, depends_on_more
from odfpy.query.wire.request import Include, QueryRequest


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    workspace = Workspace.init(tmp_path_factory.mktemp("workspace"))
    for name in ("trades", "types", "stock"):
        (result,) = workspace.pull([str(KAMU / name)], as_name=name)
        assert result.error is None, result.error
    return workspace


def check(workspace: Workspace, query: str, engine: str = "datafusion") -> None:
    check_reproducible(workspace.query_service, QueryRequest.to(query, engine=engine, include=[Include.PROOF]))


HEAD = "f1620aad0b89382da51b81720cb571e26ee3aa8ec41b9d6b6525740bffcd511f6dd65"

GOOD = [
    "select * from trades",
    "select * from trades limit 3",
    "select count(*) from trades",
    "select 1 as one",
    "select sum(amount), max(side) from trades where amount > 5",
    'select * from trades where amount > 5 order by "offset"',
    'select * from trades where amount > 5 order by amount desc, "offset" limit 3',
    "select side, count(*) as n from trades group by side order by side",
    "select t.side, count(*) as n from trades t group by t.side order by side",
    'select amount as "offset" from trades order by "offset", side limit 3',
    "select side, count(*) as n from trades group by 1 order by 1 limit 1",
    "select distinct side from trades order by side",
    "select side, amount, 1 as one from trades order by amount, side limit 2",
    "select id from trades union all select id from trades order by id",
    "with a as (select side, sum(amount) as total from trades group by side) select side, total from a order by 1, 2",
    'select id, row_number() over (partition by side order by "offset") as n from trades order by "offset"',
    'select id, rank() over (partition by side order by amount) as n from trades order by "offset"',
    'select id, sum(amount) over (order by event_time) as n from trades order by "offset"',
    'select max(id) as m from (select id from trades order by "offset" limit 3)',
    f"select side from odf_as_at('trades', '{HEAD}') where id > 100 order by \"offset\"",
    "select id from odf_current('trades') where id > 100 order by \"offset\"",
    'select \'now()\' as text, "now" from (select id as "now" from trades) order by "now"',
    "select timestamp '2024-01-01' as t",
    "select count(*) as n, sum(t.amount) as s from trades t join trades u on t.side = u.side",
    "select side, -- how\n count(*) as n from trades group by /* what */ side order by side /* last */",
    "select * from odf_current('trades', 'id') order by id",
    "select amount from odf_current('trades', 'id') order by id limit 3",
    "select t.side, t.id from odf_current('trades', 'id') t where amount > 5 order by side, t.id desc limit 3",
    "select id as number, side from odf_current('trades', 'id') order by 1",
    "select * from odf_current('trades', 'side', 'amount') order by amount desc, side",
    "select * from odf_as_of('stock', '2024-06-01') order by sku",
    "select * from odf_as_at_of('stock', 2, '2024-06-01') order by sku",
    "select max(op) as m from (select op from odf_current('stock') order by sku limit 3)",
    "select sku, row_number() over (order by sku) as n from odf_current('stock') order by sku",
    "select * from odf_current('stock') order by \"offset\"",
]


@pytest.mark.parametrize("query", GOOD)
def test_of_these_there_are_proofs(workspace: Workspace, query: str) -> None:
    check(workspace, query)


BAD = {
    "select * from odf_current('trades', 'id') order by side": "ties",
    "select * from odf_current('trades', 'id', 'side') order by id": "ties",
    "select * from odf_changelog('stock') order by sku": "ties",
    "select * from stock order by sku": "ties",
    "select op as sku, stock from odf_current('stock') order by sku": "ties",
    "select op as sku, stock from odf_current('stock') order by 1": "ties",
    "select * replace (1 as sku) from odf_current('stock') order by sku": "ties",
    "select t.sku, x.op from odf_current('stock') t, odf_current('stock') x order by t.sku": "ties",
    "select * from odf_current('stock') order by abs(sku)": "ties",
    "select * from odf_current('stock') order by stock.stock, other.sku": "ties",
    "select * from odf_current('types', 'c_f64') order by c_f64": "ties",
    'with trades as (select 1 as "offset", 2 as b union all select 1, 3) select b from trades order by "offset"': "ties",
    'select * replace (1 as "offset") from trades where id > 3 order by "offset"': "ties",
    "select now() as t": "now",
    'select id from trades where event_time < current_timestamp order by "offset"': "current_timestamp",
    "select random() as r from trades": "random",
    "select uuid() as r": "uuid",
    "select id from trades where amount > 5": "no order",
    "select id from trades where amount > 5 order by side": "ties",
    'select amount as "offset", id from trades order by "offset" limit 3': "ties",
    "select max(id) as side from trades group by side order by side": "ties",
    "select lower(side) as side, count(*) from trades group by side order by side": "ties",
    'select t.id, u.id as other from trades t join trades u on t.side = u.side order by t."offset"': "ties",
    "select side, count(*) as n from trades group by side": "no order",
    "select side, count(*) as n from trades group by side order by n": "ties",
    "select side, op, count(*) as n from trades group by side, op order by side": "ties",
    "select max(id) as m from (select id from trades order by side limit 3)": "subquery",
    "select max(id) as m from (select distinct on (side) id from trades)": "subquery",
    'select id, row_number() over (order by side) as n from trades order by "offset"': "window",
    'select id, lag(id) over (partition by side order by amount) as n from trades order by "offset"': "window",
    'select id, sum(amount) over (order by side rows unbounded preceding) as n from trades order by "offset"': "window",
    "select array_agg(id) as ids from trades": "array_agg",
    "select string_agg(side, ',') as ids from trades": "order of rows",
    "select first_value(id) as first from trades": "first_value",
    "select approx_percentile_cont(id, 0.5) as half from trades": "order of rows",
    "select kll_sketch_agg_bigint(id) as sketch from trades": "order of rows",
    "explain select * from trades": "plan",
    'select id from "trades@head" where id > 3 order by "offset"': "another block",
    "select side from odf_as_at('trades', 'head') order by \"offset\"": "may become another block",
    "select side from odf_as_at('trades', '3') order by \"offset\"": "may become another block",
}


@pytest.mark.parametrize("query", BAD)
def test_of_these_there_are_none(workspace: Workspace, query: str) -> None:
    reason = BAD[query]
    with pytest.raises(NotReproducible, match=r"(?i)" + reason) as raised:
        check(workspace, query)
    assert raised.value.hint


def test_of_what_makes_no_sense_the_engine_says_so(workspace: Workspace) -> None:
    for query in ("select 'abc from trades", "select frm where"):
        with pytest.raises(InvalidQuery):
            check(workspace, query)


@pytest.mark.parametrize(
    ("query", "is_good"),
    [
        ("select sum(amount), avg(id) from trades where id > 3", True),
        ("select sum(c_f64) from types where c_i32 > 3", False),
        ("select sum(cast(c_f64 as decimal(38, 3))) from types where c_i32 > 3", True),
        ("select sum(amount / 3) from trades where id > 3", False),
        ("select side, try_sum(cast(amount as double)) from trades group by side order by side", False),
        ("select `uuid`() as u", False),
        ("select stddev(id) from trades where id > 3", False),
        ("select max(c_f64) from types where c_i32 > 3", True),
        ("select date 'today' as t", False),
        ("select * from trades tablesample (5 rows)", False),
        ("select id, uuid() from trades order by `offset`", False),
        ("select * from trades where id > 3 sort by `offset`", False),
    ],
)
def test_spark_adds_up_fractions_in_no_certain_order(workspace: Workspace, query: str, is_good: bool) -> None:
    if is_good:
        check(workspace, query, "spark")
        return
    with pytest.raises(NotReproducible):
        check(workspace, query, "spark")


def test_answers_that_hold_only_for_now_are_not_kept(workspace: Workspace) -> None:
    service = workspace.query_service
    for query, is_lasting in {"select now()": False, "select id from trades where id > 3": True}.items():
        assert depends_on_more(plan(service.resolver, QueryRequest.to(query).to_query())) is not is_lasting
