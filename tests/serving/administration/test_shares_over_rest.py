"""Shares, tables, principals and grants over REST: what a command can, with its checks, and what it says."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from support.servers.administered import NAME, Administered
from support.servers.serving import ask as ask_server


def statuses(*works: Callable[[], Any]) -> list[int]:
    """The statuses of calls that are made at the same time."""
    with ThreadPoolExecutor(len(works)) as pool:
        return sorted(one.status for one in pool.map(lambda work: work(), works))


def test_a_share_comes_and_goes(served: Administered) -> None:
    served.done("POST", "platform/shares", {"name": "demo.2024", "comment": "For tests"})
    assert served.ask("POST", "platform/shares", {"name": "Demo.2024"}).status == 409
    served.done("POST", "platform/shares/demo.2024/schemas", {"name": "main"})
    table = {"path": "demo.2024/main/orders", "source": NAME, "shown": "changelog", "comment": "All of it"}
    made = served.done("POST", "platform/tables", table)
    assert made["names"] == ["demo.2024", "main", "orders"]
    assert made["source"] == NAME
    assert served.get("platform/shares?search=for%20tests") == [
        {
            "name": "demo.2024",
            "comment": "For tests",
            "id": served.get("platform/shares?search=demo")[0]["id"],
            "numTables": 1,
        }
    ]
    assert served.get("platform/shares/demo.2024/schemas") == [{"name": "main", "numTables": 1}]
    assert [one["path"] for one in served.get("platform/tables?share=demo.2024")] == ["demo.2024/main/orders"]
    served.done("DELETE", "platform/shares/demo.2024/schemas/main/tables/orders")
    served.done("DELETE", "platform/shares/demo.2024/schemas/main")
    served.done("DELETE", "platform/shares/demo.2024")
    missing = served.ask("DELETE", "platform/shares/demo.2024")
    assert missing.status == 404
    assert missing.json["code"] == "E760"
    assert "There is no share 'demo.2024'" in missing.json["message"]


def test_lists_are_paged_and_searched(served: Administered) -> None:
    answer = served.ask("GET", "platform/tables?limit=1&offset=1&share=sales")
    assert answer.headers["x-total-count"] == "2"
    assert [one["path"] for one in answer.json] == ["sales.eu.orders"]
    assert len(served.get(f"platform/tables?search={NAME}")) == 2
    assert served.get("platform/tables?search=nothing") == []


def test_a_table_of_what_is_not_there(served: Administered) -> None:
    answer = served.ask("POST", "platform/tables", {"path": "sales.eu.x", "source": "com.example.order"})
    assert answer.status == 404
    assert f"Did you mean {NAME}?" in answer.json["message"]
    assert served.ask("POST", "platform/tables", {"path": "sales.eu", "source": NAME}).status == 400
    parquet = {"path": "sales.eu.x", "kind": "parquet", "source": "/nowhere"}
    assert served.ask("POST", "platform/tables", parquet).status == 400


def test_a_file_declares_all_of_it(served: Administered) -> None:
    text = f"kind: Shares\nversion: 1\nshares:\n  declared:\n    tables:\n      a.b: {{dataset: {NAME}}}\n"
    tried = served.done("PUT", "platform/sharing", {"yaml": text, "dryRun": True})
    assert tried[0] == {"sign": "+", "text": "share declared"}
    assert served.get("platform/shares?search=declared") == []
    assert served.done("PUT", "platform/sharing", {"yaml": text}) == tried
    assert served.done("PUT", "platform/sharing", {"yaml": text}) == []
    served.done("DELETE", "platform/shares/declared")
    assert "1 and 2" not in served.ask("PUT", "platform/sharing", {"yaml": "kind: Other"}).json["message"]


def test_a_recipient_from_the_first_day_to_the_last(served: Administered) -> None:
    served.done("POST", "platform/recipients", {"name": "new", "attributes": {"country": "FR"}})
    profile = served.done("POST", "platform/recipients/new/profile", {"expires": "1d", "url": served.url})["profile"]
    assert profile["endpoint"] == f"{served.url}/delta-sharing/"

    def shares() -> int:
        return ask_server(f"{served.url}/delta-sharing/shares", token=profile["bearerToken"]).status

    assert shares() == 200
    grant = served.done("POST", "platform/grants", {"principal": "new", "path": "sales", "rows": "total > 1"})
    assert grant["words"] == "all columns of rows where total > 1"
    found = served.get("platform/recipients/new")
    assert [one["number"] for one in found["grants"]] == [grant["number"]]
    assert [one["isGood"] for one in found["tokens"]] == [True]
    assert profile["bearerToken"] not in str(found)
    served.done("PATCH", "platform/recipients/new", {"isDisabled": True})
    assert shares() == 401
    served.done("PATCH", "platform/recipients/new", {"isDisabled": False, "attributes": {}})
    assert shares() == 200
    assert served.done("DELETE", "platform/recipients/new/tokens") == {"revoked": 1}
    assert shares() == 401
    assert served.ask("DELETE", f"platform/recipients/new/tokens/{found['tokens'][0]['number']}").status == 404
    served.done("DELETE", f"platform/grants/{grant['number']}")
    served.done("DELETE", "platform/recipients/new")
    assert served.ask("GET", "platform/recipients/new").status == 404


def test_a_link_gives_a_profile_once(served: Administered) -> None:
    link = served.done("POST", "platform/users/user/link", {"goodFor": "1h", "url": served.url})
    assert ask_server(link["url"], method="POST").status == 200
    assert ask_server(link["url"], method="POST").status == 404
    assert served.ask("POST", "platform/groups/partners/link", {}).status in (400, 404)
    assert served.ask("POST", "platform/recipients/acme/link", {"goodFor": "0s"}).status == 400


def test_the_kind_in_the_path_has_to_be_right(served: Administered) -> None:
    assert served.ask("GET", "platform/users/acme").status == 404
    assert served.ask("POST", "platform/users", {"name": "ACME"}).status == 409
    assert served.ask("PATCH", "platform/recipients/acme", {"isAdmin": True}).status == 400


def test_a_password_is_set_and_never_told(served: Administered) -> None:
    password = "correct horse battery"
    served.done("PUT", "platform/users/user/password", {"password": password})
    assert served.get("platform/users/user")["hasPassword"] is True
    short = served.ask("PUT", "platform/users/user/password", {"password": "secret"})
    assert short.status == 400
    assert "secret" not in short.json["message"].replace("this one", "")
    assert served.ask("PUT", "platform/users/acme/password", {"password": password}).status == 404
    served.done("DELETE", "platform/users/user/password")
    assert served.get("platform/users/user")["hasPassword"] is False


def test_members_join_and_leave(served: Administered) -> None:
    assert served.done("PUT", "platform/groups/partners/members/user")["members"] == ["acme", "user"]
    assert served.get("platform/users/user")["groups"] == ["partners"]
    assert served.done("DELETE", "platform/groups/partners/members/user")["members"] == ["acme"]
    assert served.ask("DELETE", "platform/groups/partners/members/user").status == 404
    assert served.ask("PUT", "platform/groups/partners/members/partners").status == 400


@pytest.mark.parametrize(
    ("grant", "reason"),
    [
        ({"columns": ["totl"]}, "Did you mean total?"),
        ({"columns": []}, "allows nothing"),
        ({"rows": "sum(total) > 1"}, "A condition on rows has no"),
        ({"rows": "price > 1"}, "The table has no column 'price'"),
        ({"principal": "acne"}, "Did you mean acme?"),
        ({"path": "sales.eu.order"}, "Did you mean orders?"),
    ],
)
def test_a_grant_is_checked(served: Administered, grant: dict[str, Any], reason: str) -> None:
    answer = served.ask("POST", "platform/grants", {"principal": "acme", "path": "sales.eu.orders", **grant})
    assert answer.status in (400, 404)
    assert reason in answer.json["message"]


def test_of_two_who_add_the_same_one_wins(served: Administered) -> None:
    add = [lambda: served.ask("POST", "platform/recipients", {"name": "twin"})] * 6
    assert statuses(*add) == [200, 409, 409, 409, 409, 409]
    remove = [lambda: served.ask("DELETE", "platform/recipients/twin")] * 4
    assert statuses(*remove)[0] == 204
    assert set(statuses(*remove)) == {404}


def test_tokens_of_one_name_are_one(served: Administered) -> None:
    make = [lambda: served.ask("POST", "platform/tokens", {"name": "twin", "scope": "read"})] * 6
    assert statuses(*make) == [200, 409, 409, 409, 409, 409]
    served.done("DELETE", "platform/tokens/twin")
    assert served.get("platform/tokens?search=twin") == []


def test_a_grant_to_somebody_who_is_just_removed(served: Administered) -> None:
    """Either the grant comes first and goes with them, or there is nobody to grant anything to."""
    for turn in range(5):
        name = f"gone{turn}"
        served.done("POST", "platform/recipients", {"name": name})
        found = statuses(
            lambda name=name: served.ask("DELETE", f"platform/recipients/{name}"),  # type: ignore[misc]
            lambda name=name: served.ask("POST", "platform/grants", {"principal": name, "path": "sales"}),  # type: ignore[misc]
        )
        assert found in ([200, 204], [204, 404], [204, 409])
        assert not [one for one in served.get("platform/grants") if one["principal"] == name]
