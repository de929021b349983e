"""The right of whoever asks: told to everybody who may read a dataset, about nobody else."""

from __future__ import annotations

from support.servers.administered import NAME, Administered

from odfpy.data.timestamp import Timestamp
from odfpy.serving.callers.access import Caller, is_listed, is_readable
from odfpy.serving.callers.tokens import AccessToken, Scope
from odfpy.serving.callers.visibility import Visibility, set_visibility

ORDERS = {"path": "sales.eu.orders", "names": ["sales", "eu", "orders"], "shown": "current", "at": None}
LOG = {"path": "sales.eu.log", "names": ["sales", "eu", "log"], "shown": "changelog", "at": None}


def test_a_token_of_the_workspace_reads_all_tables(served: Administered) -> None:
    assert served.get(f"{NAME}/access", who="reader") == {
        "name": "reader",
        "visibility": "private",
        "right": "token",
        "scope": "read",
        "numTables": 2,
        "tables": [LOG, ORDERS],
    }


def test_grants_tell_only_what_they_reach(served: Administered) -> None:
    assert served.ask("GET", f"{NAME}/access", who="user").status == 404
    grant = served.done("POST", "platform/grants", {"principal": "user", "path": "sales.eu.log"})
    try:
        found = served.get(f"{NAME}/access", who="user")
    finally:
        served.done("DELETE", f"platform/grants/{grant['number']}")
    assert (found["name"], found["right"], found["scope"], found["tables"]) == ("user", "grants", None, [LOG])


def test_what_is_public_is_read_by_everybody_and_shared_with_some(served: Administered) -> None:
    folder = served.workspace.storage.get(NAME).folder
    assert served.ask("GET", f"{NAME}/access", who=None).status == 401
    set_visibility(folder, Visibility.PUBLIC)
    try:
        nobody, acme = (served.get(f"{NAME}/access", who=who) for who in (None, "acme"))
    finally:
        set_visibility(folder, Visibility.PRIVATE)
    assert (nobody["name"], nobody["right"], nobody["tables"]) == (None, "public", [])
    assert (acme["name"], acme["right"], acme["tables"]) == ("acme", "public", [ORDERS])


def test_a_list_asks_for_grants_once_and_not_for_each_dataset(served: Administered) -> None:
    storage = served.workspace.storage
    dataset = storage.get(NAME)
    token = AccessToken("user", Scope.READ, Timestamp(0))
    gone = Caller(token, None, "odf_gone", frozenset({str(dataset.handle.id)}), since=0.0, granting=storage)
    assert is_listed(dataset, Visibility.PRIVATE, gone), "what was looked up when the list was asked for"
    assert not is_readable(dataset, gone)
