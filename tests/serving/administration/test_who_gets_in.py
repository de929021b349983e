"""Every call of administration is for admins: others learn and change nothing, whatever they send."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from support.servers.administered import NAME, Administered

from odfpy.sharing.audit import accesses

OTHERS = {None: 401, "reader": 403, "writer": 403, "user": 403, "acme": 403}
SECRETS = ("partners", "country", "Germany", "sharing.db", "acme")
VALUES = {
    "share": "sales",
    "schema": "eu",
    "table": "orders",
    "kind": "recipients",
    "name": "acme",
    "member": "acme",
    "number": "1",
    "account": "nobody",
}
TEXTS = ("", "\0", "\ud800", "x" * 300, "a/b", "a.b.c.d", "..", "<script>", "'; DROP TABLE shares; --", "🦆")
NONSENSE: tuple[bytes, ...] = (
    b"",
    b"{",
    b"[]",
    b"null",
    b"1",
    b'"text"',
    b"{}",
    b'{"name": null}',
    b'{"name": {"a": [1]}}',
    b'{"unknown": 1}',
    b"\xff\xfe",
    b"[" * 100_000,
    json.dumps({"name": "x", "attributes": {"a": 1}}).encode(),
)


def calls(served: Administered) -> list[tuple[str, str, Any]]:
    """The calls of administration, with paths that lead to something."""
    schema = served.get("openapi.json")
    found = []
    for path, operations in schema["paths"].items():
        for method, operation in operations.items():
            if operation["tags"] == ["administration"] and not path.startswith("/{account}"):
                filled = path.replace("/{name}/readers", f"/{NAME}/readers")
                filled = re.sub(r"\{(\w+)\}", lambda match: VALUES[match[1]], filled)
                found.append((method.upper(), filled.lstrip("/"), operation))
    return found


def test_only_admins_get_in(served: Administered) -> None:
    known = calls(served)
    assert len(known) > 30
    for method, path, _ in known:
        for who, status in OTHERS.items():
            answer = served.ask(method, path, {} if method in ("POST", "PUT", "PATCH") else None, who=who)
            expected = 404 if path.endswith("/readers") and who in ("user", "acme") else status
            assert answer.status == expected, (method, path, who, answer.body)
            text = answer.body.decode()
            assert not [secret for secret in SECRETS if secret in text], (method, path, who, text)


def test_a_cookie_without_the_header_changes_nothing(served: Administered) -> None:
    session = served.session("admin")
    before = served.get("platform/recipients/acme")
    for method, path, _ in calls(served):
        answer = served.ask(method, path, {} if method in ("POST", "PUT", "PATCH") else None, who=None, **session)
        if method == "GET":
            assert answer.status in (200, 400), (method, path, answer.body)
        else:
            assert answer.status == 401, (method, path)
    assert served.get("platform/recipients/acme") == before


def test_a_user_who_is_an_admin_gets_in(served: Administered) -> None:
    assert [one["name"] for one in served.get("platform/shares", who="chief")] == ["sales"]
    assert served.get(f"{NAME}/readers", who="chief")["visibility"] == "private"


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "tokens", {"name": "more", "scope": "write"}),
        ("POST", "tokens", {"name": "more", "scope": "admin"}),
        ("POST", "tables", {"path": "sales.eu.files", "kind": "parquet", "source": "/etc"}),
        ("POST", "repositories", {"name": "mine", "url": "https://example.com"}),
        ("DELETE", "repositories/mine", None),
    ],
)
def test_a_user_who_is_an_admin_gives_no_more_than_they_have(
    served: Administered, method: str, path: str, body: Any
) -> None:
    answer = served.ask(method, f"platform/{path}", body, who="chief")
    assert answer.status == 403
    assert "needs an access token with the scope admin" in answer.json["message"]


def test_nonsense_is_refused_with_a_reason(served: Administered) -> None:
    """No body brings the server down, and none changes anything."""
    for method, path, operation in calls(served):
        if "requestBody" not in operation:
            continue
        for body in NONSENSE:
            if body == b"{}" and method in ("PATCH", "POST") and path.endswith(("acme", "profile", "link")):
                continue  # makes sense: everything is left as it is, or at its default
            answer = served.ask(method, path, body)
            assert answer.status in (400, 422), (method, path, body[:30], answer.status, answer.body)
            assert answer.json["message"]


@pytest.mark.parametrize("text", TEXTS)
def test_texts_that_are_no_names(served: Administered, text: str) -> None:
    bodies = {
        "platform/shares": {"name": text, "comment": text},
        "platform/tables": {"path": text, "source": text},
        "platform/grants": {"principal": text, "path": text, "rows": text, "columns": [text]},
        "platform/tokens": {"name": f"{text} ", "expires": text},
        "platform/repositories": {"name": f"{text} ", "url": text},
        "platform/groups/partners/members/x": None,
    }
    for path, body in bodies.items():
        if body is not None and not (path == "platform/shares" and text in ("<script>", "🦆", "..", "a.b.c.d")):
            answer = served.ask("POST", path, json.dumps(body).encode())
            assert answer.status in (400, 404, 422), (path, text, answer.status, answer.body)


@pytest.mark.parametrize("path", ["shares/%00", "recipients/%F0%9F%A6%86", "grants/99999999999999999999", "tokens/%2E"])
def test_paths_that_lead_to_nothing(served: Administered, path: str) -> None:
    answer = served.ask("DELETE", f"platform/{path}")
    assert answer.status in (404, 422)


def test_queries_that_make_no_sense(served: Administered) -> None:
    for query in ("audit?since=yesterday", "audit?before=-1", "audit?limit=0", "shares?limit=x", "tables?share=none"):
        assert served.ask("GET", f"platform/{query}").status in (400, 404, 422), query


def test_other_words_are_no_kinds_of_principals(served: Administered) -> None:
    """The kind is a part of the path, but does not take the paths of others."""
    assert served.ask("GET", "platform/session").status == 200
    assert served.ask("GET", "platform/robots").status == 404


def test_what_others_try_is_in_the_audit_log(served: Administered) -> None:
    served.ask("DELETE", "platform/shares/sales", who="writer")
    served.get("platform/audit")
    [found] = accesses(served.workspace, num=1, condition="action = 'remove_share' AND who = 'writer'")
    assert found["granted"] is False
    assert found["status"] == 403
