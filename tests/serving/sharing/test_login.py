"""Logins over REST: tokens for name and password, and for others from admins."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from serving.sharing.conftest import Shared
from support.servers.serving import Answer, ask, serving

from odfpy.coordinator.workspace import Workspace
from odfpy.data.timestamp import Timestamp
from odfpy.serving.callers.tokens import Scope, Tokens
from odfpy.sharing.audit import accesses
from odfpy.sharing.model import PrincipalKind
from odfpy.sharing.names import SharePath
from odfpy.sharing.sharing import Sharing

PASSWORD = "correct horse battery"
LOG = SharePath("fx", "main", "log")


@pytest.fixture
def people(shared: Shared) -> Iterator[Shared]:
    """Ann may read the changelog, and has a password."""
    shared.forget_guesses()
    shared.sharing.principals.add(PrincipalKind.USER, "Ann")
    shared.sharing.grants.add("Ann", LOG)
    shared.sharing.passwords.set("Ann", PASSWORD)
    yield shared
    shared.sharing.principals.remove("Ann")
    shared.forget_guesses()


def base(shared: Shared) -> str:
    return shared.url.removesuffix("/delta-sharing")


def post(shared: Shared, path: str, tree: Any, token: str | None = None) -> Answer:
    body = tree if isinstance(tree, bytes) else json.dumps(tree).encode()
    url = f"{base(shared)}/platform/{path}"
    return ask(url, method="POST", token=token, body=body, content_type="application/json")


def login(shared: Shared, name: str = "Ann", password: str = PASSWORD) -> Answer:
    credentials = json.dumps({"login": name, "password": password})
    return post(shared, "login", {"loginMethod": "password", "loginCredentialsJson": credentials})


def test_name_and_password_give_a_token_with_an_end(people: Shared) -> None:
    answer = login(people)
    assert answer.status == 200, answer.body
    assert answer.headers["cache-control"] == "no-store"
    token = answer.json["accessToken"]
    left = Timestamp.parse(answer.json["expiresAt"]).nanos / 10**9 - time.time()
    assert 43_100 < left <= 43_200
    assert ask(f"{base(people)}/rates/refs/head", token=token).status == 200
    assert people.ask("shares", token).json == {"items": [{"name": "fx", "id": people.sharing.shares.share("fx").id}]}
    for path in ("token", "platform/token/validate"):
        assert ask(f"{base(people)}/{path}", token=token).json["name"] == "Ann"


@pytest.mark.parametrize(
    ("name", "password"),
    [("Ann", "wrong"), ("nobody", PASSWORD), ("all", PASSWORD), ("", ""), ("\ud800", "\ud800"), ("Ann", "x" * 5000)],
)
def test_what_is_wrong_is_not_said(people: Shared, name: str, password: str) -> None:
    answer = login(people, name, password)
    assert (answer.status, answer.json["message"]) == (401, "Wrong name or password")
    assert answer.headers["www-authenticate"].startswith("Bearer")


def test_tokens_end_with_the_password(people: Shared) -> None:
    token = login(people).json["accessToken"]
    people.sharing.passwords.set("Ann", "another password")
    assert ask(f"{base(people)}/token", token=token).status == 401
    assert people.ask("shares", token).status == 401
    assert login(people).status == 401
    assert login(people, password="another password").status == 200
    people.sharing.principals.change("Ann", is_disabled=True)
    assert login(people, password="another password").status == 401


@pytest.mark.parametrize(
    ("tree", "status"),
    [
        ({"loginMethod": "oauth_github", "loginCredentialsJson": "{}"}, 400),
        ({"loginMethod": "password", "loginCredentialsJson": "{"}, 400),
        ({"loginMethod": "password", "loginCredentialsJson": "[" * 10_000}, 400),
        ({"loginMethod": "password", "loginCredentialsJson": "[]"}, 400),
        ({"loginMethod": "password", "loginCredentialsJson": '{"login": "Ann"}'}, 400),
        ({"loginMethod": "password", "loginCredentialsJson": '{"login": "Ann", "password": 1}'}, 400),
        ({"loginMethod": "password", "loginCredentialsJson": "x" * 20_001}, 422),
        ({"loginMethod": "password"}, 422),
        ({"loginMethod": "password", "loginCredentialsJson": {"login": "Ann", "password": PASSWORD}}, 422),
        (b"\xff", 400),
        (b"{", 422),
        (b"x" * 200_000, 413),
    ],
)
def test_what_is_no_login(people: Shared, tree: Any, status: int) -> None:
    answer = post(people, "login", tree)
    assert answer.status == status, answer.body
    assert PASSWORD not in answer.body.decode()


def test_whoever_guesses_passwords_has_to_wait(people: Shared) -> None:
    assert login(people).status == 200
    statuses = [login(people, "Ann", f"guess {number}").status for number in range(22)]
    assert statuses == [401] * 20 + [429] * 2
    answer = login(people, "Ann", "another")
    assert answer.status == 429
    assert 0 < int(answer.headers["retry-after"]) <= 60
    assert login(people).status == 200  # it was right from here before
    people.app.state.sharing.guesses._wrong.pop("127.0.0.1")  # as if from another address
    assert login(people, "ANN", "another").status == 429
    assert login(people, "nobody", "another").status == 401


def test_who_guesses_at_once_gets_no_more_guesses(people: Shared) -> None:
    with ThreadPoolExecutor(16) as threads:
        statuses = list(threads.map(lambda number: login(people, "Ann", f"guess {number}").status, range(60)))
    assert statuses.count(401) <= 22
    assert statuses.count(401) + statuses.count(429) == 60


def test_logins_are_in_the_audit_dataset(tmp_path: Path) -> None:
    workspace = Workspace.init(tmp_path / "workspace")
    sharing = Sharing.of_workspace(workspace.storage.odf, None)
    sharing.principals.add(PrincipalKind.USER, "Ann")
    sharing.passwords.set("Ann", PASSWORD)
    with serving(workspace) as server:
        shared = Shared(workspace, sharing, f"{server.url}/delta-sharing", {}, server.app)
        for password in (PASSWORD, "wrong"):
            login(shared, "ann", password)
    found = [(one["who"], one["action"], one["granted"], one["status"]) for one in accesses(workspace, num=9)]
    assert found == [(None, "login", False, 401), ("Ann", "login", True, 200)]


def test_only_admins_make_tokens_for_others(people: Shared) -> None:
    token = login(people).json["accessToken"]
    for name in ("all", "Ann", "nobody"):
        assert post(people, f"users/{name}/tokens", {"expires": "1h"}, token).status == 403
    assert post(people, "users/all/tokens", {"expires": "1h"}).status == 401
    assert post(people, "users/all/tokens", {"expires": "1h"}, people.tokens["all"]).status == 403
    assert post(people, "users/all/tokens", {"expires": "1h"}, reader(people, Scope.WRITE)).status == 403
    people.sharing.principals.change("Ann", is_admin=True)
    for admin in (token, reader(people, Scope.ADMIN)):
        made = post(people, "users/all/tokens", {"expires": "1h"}, admin)
        assert made.status == 200, made.body
        assert ask(f"{base(people)}/token", token=made.json["accessToken"]).json["name"] == "all"
    for name, expires, status in (("nobody", "1h", 404), ("%00", "1h", 404), ("all", "0s", 400), ("all", "x", 400)):
        assert post(people, f"users/{name}/tokens", {"expires": expires}, token).status == status
    people.sharing.principals.change("Ann", is_admin=False)
    assert post(people, "users/all/tokens", {"expires": "1h"}, token).status == 403


def reader(shared: Shared, scope: Scope) -> str:
    return Tokens(shared.workspace.storage.odf).new(f"{scope.value}-{time.monotonic_ns()}", scope)
