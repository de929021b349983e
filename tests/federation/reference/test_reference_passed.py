"""A client that signs no tokens reads all rows by the relay that it has asked."""

from __future__ import annotations

import pytest
from support.federation.reference import ASKED, SOURCES, USERS, asked_bare, tax_above

from odfpy.federation.demo.documents import ALL_ACCESS
from odfpy.federation.demo.running import RunningWeb


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
