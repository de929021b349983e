"""Tables as a recipient sees them, and all who read a dataset: what is told is what they get."""

from __future__ import annotations

import json

from support.servers.administered import NAME, Administered
from support.servers.serving import ask as ask_server

from odfpy.sharing.names import SharePath

ORDERS = "platform/recipients/acme/tables/sales/eu/orders"
WORDS = "columns country, total of rows where country = recipient('country'), by the group partners"


def test_the_tables_of_a_recipient(served: Administered) -> None:
    [table] = served.get("platform/recipients/acme/tables")
    assert table == {
        "path": "sales.eu.orders",
        "comment": "",
        "columns": [{"name": "country", "type": "string"}, {"name": "total", "type": "long"}],
        "words": [WORDS],
        "isWhole": False,
        "numRows": 2,
        "problem": None,
    }
    assert served.get("platform/users/user/tables") == []
    assert served.ask("GET", "platform/groups/partners/tables").status == 400


def test_the_rows_of_a_recipient_are_those_that_they_get(served: Administered) -> None:
    seen = served.get(ORDERS)
    assert seen["isPreview"] is True
    assert seen["seenAs"] == "acme"
    assert seen["rows"] == [["DE", 1], ["DE", 3]]
    assert seen["numRows"] == 2
    assert served.get(f"{ORDERS}?limit=1")["rows"] == [["DE", 1]]
    url = f"{served.url}/delta-sharing/shares/sales/schemas/eu/tables/orders/metadata"
    told = ask_server(url, token=served.tokens["acme"]).body.splitlines()[1]
    fields = json.loads(json.loads(told)["metaData"]["schemaString"])["fields"]
    assert [one["name"] for one in fields] == [one["name"] for one in seen["columns"]]


def test_what_they_do_not_see_is_not_there(served: Administered) -> None:
    assert served.ask("GET", "platform/recipients/acme/tables/sales/eu/log").status == 404
    assert served.ask("GET", "platform/users/user/tables/sales/eu/orders").status == 404


def test_a_preview_is_an_access_of_the_admin(served: Administered) -> None:
    served.get(ORDERS)
    [found] = served.get("platform/audit?limit=1&path=orders")
    assert (found["who"], found["action"], found["path"]) == ("admin", "see as acme", "sales.eu.orders")
    assert not [one for one in served.get("platform/audit?who=acme") if one["action"].startswith("see as")]


def test_who_reads_a_dataset(served: Administered) -> None:
    whole = served.done("POST", "platform/grants", {"principal": "user", "path": "sales"})
    try:
        found = served.get(f"{NAME}/readers")
        assert found["visibility"] == "private"
        assert {one["name"] for one in found["tokens"]} >= {"reader", "writer", "admin"}
        assert [one["path"] for one in found["tables"]] == ["sales.eu.log", "sales.eu.orders"]
        acme, user = found["readers"]
        assert (acme["name"], acme["readsAll"]) == ("acme", False)
        assert [(one["path"], [grant["words"] for grant in one["grants"]]) for one in acme["tables"]] == [
            ("sales.eu.orders", ["columns country, total of rows where country = recipient('country')"])
        ]
        assert acme["tables"][0]["grants"][0]["principal"] == "partners"
        assert (user["name"], user["readsAll"]) == ("user", True)
        assert served.get(f"{NAME}/readers?search=user")["readers"] == [user]
        # They do what they are said to do.
        assert ask_server(f"{served.url}/{NAME}", token=served.tokens["user"]).status == 200
        assert ask_server(f"{served.url}/{NAME}", token=served.tokens["acme"]).status == 404
    finally:
        served.done("DELETE", f"platform/grants/{whole['number']}")


def test_a_disabled_group_lets_nobody_read(served: Administered) -> None:
    served.done("PATCH", "platform/groups/partners", {"isDisabled": True})
    try:
        assert served.get(f"{NAME}/readers")["readers"] == []
        assert served.get("platform/recipients/acme/tables") == []
    finally:
        served.done("PATCH", "platform/groups/partners", {"isDisabled": False})
    assert [one["name"] for one in served.get(f"{NAME}/readers")["readers"]] == ["acme"]


def test_all_reaches_at_once_are_those_of_each(served: Administered) -> None:
    table = served.sharing.shares.table(SharePath("sales", "eu", "orders"))
    for who, reach in served.sharing.reaches():
        assert reach.view(table) == served.sharing.reach(who).view(table)


def test_a_table_whose_dataset_is_gone_says_so(served: Administered) -> None:
    from odfpy.sharing.model import SourceKind, TableSource

    source = TableSource(SourceKind.DATASET, "did:odf:fed01" + "0" * 63 + "1")
    served.sharing.shares.add_table(SharePath("sales", "eu", "gone"), source)
    served.sharing.grants.add("acme", SharePath("sales", "eu", "gone"))
    try:
        gone, _ = served.get("platform/recipients/acme/tables")
        assert gone["problem"]
        assert [one["isThere"] for one in served.get("platform/tables?search=gone")] == [False]
    finally:
        served.sharing.shares.remove(SharePath("sales", "eu", "gone"))
