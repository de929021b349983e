"""Access tokens, the audit log, repositories, settings, engine and disk over REST."""

from __future__ import annotations

import pytest
from support.servers.administered import Administered
from support.servers.serving import ask as ask_server


def test_an_access_token_is_shown_once(served: Administered) -> None:
    made = served.done("POST", "platform/tokens", {"name": "ci", "scope": "write", "expires": "1d"})
    text = made["accessToken"]
    assert ask_server(f"{served.url}/token", token=text).json["scope"] == "write"
    listed = served.ask("GET", "platform/tokens?search=ci")
    assert listed.headers["cache-control"] == "no-store"
    assert text not in listed.body.decode()
    assert listed.json == [{**{key: made[key] for key in ("name", "scope", "createdAt", "expiresAt")}, "isGood": True}]
    assert served.ask("POST", "platform/tokens", {"name": "ci"}).status == 409
    assert served.ask("POST", "platform/tokens", {"name": "x", "expires": "soon"}).status == 400
    served.done("DELETE", "platform/tokens/ci")
    assert ask_server(f"{served.url}/token", token=text).status == 401
    assert served.ask("DELETE", "platform/tokens/ci").json["code"] == "E630"


def test_the_audit_log_is_there_at_once_page_by_page(served: Administered) -> None:
    for number in range(4):
        served.done("POST", "platform/shares", {"name": f"audited{number}"})
        served.done("DELETE", f"platform/shares/audited{number}")
    answer = served.ask("GET", "platform/audit?who=ADMIN&limit=3")
    assert [one["action"] for one in answer.json] == ["remove_share", "add_share", "remove_share"]
    assert all(one["granted"] for one in answer.json)
    link = answer.headers["link"]
    older = served.get(f"platform/{link[1 : link.index('>')]}")
    assert [one["action"] for one in older] == ["add_share", "remove_share", "add_share"]
    assert max(one["number"] for one in older) < min(one["number"] for one in answer.json)
    at = older[0]["at"]
    assert served.get(f"platform/audit?until={at}&since={at}") == []
    assert served.get(f"platform/audit?since={at}&who=admin&granted=true")[-1]["number"] <= older[0]["number"]
    assert served.get("platform/audit?since=2999-01-01") == []


def test_secrets_are_not_in_the_audit_log(served: Administered) -> None:
    made = served.done("POST", "platform/tokens", {"name": "hidden"})["accessToken"]
    password = "correct horse battery staple"
    served.done("PUT", "platform/users/user/password", {"password": password})
    served.done("DELETE", "platform/users/user/password")
    served.done("DELETE", "platform/tokens/hidden")
    text = str(served.get("platform/audit?limit=1000"))
    assert "set_password" in text
    assert made not in text
    assert password not in text


def test_repositories_are_told_without_passwords(served: Administered) -> None:
    refused = served.ask(
        "POST", "platform/repositories", {"name": "mirror", "url": "https://me:secret@example.com/odf"}
    )
    assert refused.status == 400
    assert "secret" not in str(refused.json)
    served.done("POST", "platform/repositories", {"name": "mirror", "url": "https://example.com/odf"})
    listed = served.ask("GET", "platform/repositories")
    assert listed.json == [{"name": "mirror", "url": "https://example.com/odf", "hasLogin": False}]
    again = served.ask("POST", "platform/repositories", {"name": "mirror", "url": "https://example.com"})
    assert again.status == 409
    served.done("DELETE", "platform/repositories/mirror")
    assert served.ask("DELETE", "platform/repositories/mirror").status == 404
    assert served.get("platform/servers") == []


def test_the_server_tells_of_its_machine(served: Administered) -> None:
    found = served.get("platform/system")
    assert found["workspace"] == str(served.workspace.root)
    assert found["numDatasets"] >= 1
    assert 0 < found["disk"]["free"] <= found["disk"]["total"]
    assert found["disk"]["data"] > 0
    assert found["engine"] == {"running": False, "problem": None, "status": None}
    assert served.done("DELETE", "platform/engine")["running"] is False


def test_settings_say_where_they_are_from(served: Administered, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ODF_ETHEREUM_NODES", "1=https://node.example.com/secret")
    served.workspace.config.set("engine.idleTimeout", "77")
    found = {one["key"]: one for one in served.get("platform/settings")}
    idle = found["engine.idleTimeout"]
    assert (idle["value"], idle["isDefault"]) == (77, False)
    assert idle["from"].endswith("config.yaml")
    nodes = found["ethereum.nodes"]
    assert (nodes["value"], nodes["from"], nodes["isSecret"]) == (None, "ODF_ETHEREUM_NODES", True)
    assert found["transfer.window"]["from"] == "default"


def test_settings_cannot_be_changed_over_the_network(served: Administered) -> None:
    assert served.ask("PUT", "platform/settings", {"engine.serveUnconfined": True}).status == 405


def test_the_installation_is_checked(served: Administered) -> None:
    found = {one["name"]: one for one in served.get("platform/diagnosis")}
    assert found["workspace"]["ok"] is True
    assert {"java", "disk", "datasets"} <= found.keys()
