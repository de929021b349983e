"""Five relays in processes of their own, and a sixth one that never answers: what questions to them give.

The figures are those of the definition of the reference web, for people without grants and for a user who sees all rows
of lineitem.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from support.federation.reference import (
    ASKED,
    SOURCES,
    USERS,
    asked,
    asked_bare,
    oracle,
    tax_above,
    tpch,
)

from odfpy.federation.demo.documents import ALL_ACCESS, GUEST
from odfpy.federation.demo.running import RunningWeb
from odfpy.federation.relay.errors import IncompleteAnswer

Test = TypeVar("Test", bound=Callable[..., Any])

UNTIL = "shipdate <= DATE '1998-12-01' - INTERVAL '90' DAY"
MORE = {GUEST: 3, ALL_ACCESS: 4}
"""Lines of the file of na_us with a tax above 3 %."""

ALL = {GUEST: (147_648, 25.4589361183355), ALL_ACCESS: (296_539, 25.5228115020284)}
"""Lines of TPC-H Q1, and the mean of their quantities."""


def for_all(test: Test) -> Test:
    """Have a test for each relay and user."""
    return pytest.mark.parametrize("user", USERS)(pytest.mark.parametrize("relay", ASKED)(test))


def for_most(test: Test) -> Test:
    """Have a test for each relay and user; the relay with the words of the others only before a release.

    Q1 of TPC-H is asked in all words by each run.
    """
    return pytest.mark.slow_after(4)(for_all(test))


def first_lines(relay: str, limit: int) -> str:
    amount = "tax * extendedprice" if relay == "global" else "tax_amount"
    return f"SELECT linenumber, {amount} AS tax_amount FROM lineitem WHERE {tax_above(relay, 3)} LIMIT {limit}"


@for_most
def test_each_source_gives_as_many_rows_as_are_wanted(web: RunningWeb, relay: str, user: str) -> None:
    found = asked_bare(web, relay, user, first_lines(relay, 10))
    assert found.num_rows == 50 + MORE[user]
    assert sorted(table.num_rows for _, table in found.tables) == [MORE[user], 10, 10, 10, 10, 10]
    assert (found.relays, found.missing) == (SOURCES, ["offline"])


@for_most
def test_all_columns_of_many_rows(web: RunningWeb, relay: str, user: str) -> None:
    sql = f"SELECT * FROM lineitem WHERE {tax_above(relay, 3)} LIMIT 10000"
    found = asked_bare(web, relay, user, sql)
    assert found.num_rows == 50_000 + MORE[user]
    assert (found.relays, found.missing) == (SOURCES, ["offline"])
    rows = pa.concat_tables(table for _, table in found.tables)
    tax = "tax" if relay == "global" else "tax_percent"
    taxes = sorted({round(value / (1 if relay == "global" else 100), 6) for value in rows.column(tax).to_pylist()})
    assert taxes == [0.04, 0.05, 0.06, 0.07, 0.08]  # in the words of whoever asks, whatever a relay stores
    assert rows.column("orderkey").null_count == MORE[user]
    hidden = {name: rows.column(name).null_count for name in ("commitdate", "receiptdate", "partkey")}
    if user == GUEST:
        assert hidden == {"commitdate": rows.num_rows, "receiptdate": rows.num_rows, "partkey": 10_000}
        assert pc.unique(rows.column("returnflag")).to_pylist() == ["N"]
    else:
        assert hidden == dict.fromkeys(hidden, 0)


@for_most
def test_lines_and_their_mean_quantity_summed_over_the_sources(web: RunningWeb, relay: str, user: str) -> None:
    sql = f"SELECT count(*) AS n, sum(quantity) AS q FROM lineitem WHERE {UNTIL}"
    found = asked_bare(web, relay, user, sql)
    counts, quantities = (sum(table.column(at)[0].as_py() for _, table in found.tables) for at in (0, 1))
    assert counts == ALL[user][0]
    assert quantities / counts == pytest.approx(ALL[user][1], rel=1e-14)
    assert (found.relays, found.missing) == (SOURCES, ["offline"])


@for_all
def test_tpch_q1_over_the_whole_web(web: RunningWeb, relay: str, user: str) -> None:
    found = asked(web, relay, user, tpch(relay, 1))
    lines = {(row["returnflag"], row["linestatus"]): row for row in found.table.to_pylist()}
    names = ("sum_qty", "sum_base_price", "sum_disc_price", "sum_charge", "count_order")
    cut = {key: tuple(int(row[name]) for name in names) for key, row in lines.items()}
    assert cut["N", "F"] == (44_855, 61_924_006, 58_991_286, 61_412_425, 1_740)
    assert cut["N", "O"] == (3_714_106, 5_207_661_950, 4_948_827_476, 5_147_237_314, 145_908)
    assert len(cut) == (2 if user == GUEST else 4)
    count = sum(row["count_order"] for row in lines.values())
    mean = sum(row["avg_qty"] * row["count_order"] for row in lines.values()) / count
    assert count == ALL[user][0]
    assert mean == pytest.approx(ALL[user][1], rel=1e-14)
    assert (found.relays, found.missing) == (SOURCES, ["offline"])


@for_most
def test_tpch_q3_as_duckdb_answers_it_over_the_rows_that_the_user_may_see(
    web: RunningWeb, relay: str, user: str
) -> None:
    found = asked(web, relay, user, tpch(relay, 3)).table
    wanted = oracle(web, user, tpch("global", 3))
    assert found.num_rows == 10
    for name in ("orderkey", "orderdate", "shippriority"):
        assert found.column(name).to_pylist() == wanted.column(name).to_pylist()
    assert found.column("revenue").to_pylist() == pytest.approx(wanted.column("revenue").to_pylist(), rel=1e-12)


@for_most
def test_an_answer_without_offline_is_not_complete(web: RunningWeb, relay: str, user: str) -> None:
    with (
        web.connect(relay, user) as connected,
        pytest.raises(IncompleteAnswer, match="Rows are missing: offline: "),
    ):
        connected.sql("SELECT count(*) AS n FROM lineitem", require_complete=True)


# --- A client that signs no tokens reads all rows by the relay that it has asked ---------------------------------------


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("relay", ASKED[:2])
def test_without_a_token_others_show_what_both_may_see(web: RunningWeb, relay: str, user: str) -> None:
    sql = f"SELECT linenumber, tax_amount, returnflag FROM lineitem WHERE {tax_above(relay, 3)} LIMIT 10"
    found = asked_bare(web, relay, user, sql, token=False)
    assert (found.relays, found.missing) == (SOURCES, ["offline"])
    knows_them = relay == "na_us" and user == ALL_ACCESS
    assert found.num_rows == 53 + knows_them
    elsewhere = [table for name, table in found.tables if name != relay]
    assert {flag for table in elsewhere for flag in table.column("returnflag").to_pylist()} == {"N"}
