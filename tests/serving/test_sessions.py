"""Sessions of browsers: a cookie instead of a header, and what keeps other sites from using it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any

import pytest
from support.chains.workspaces import feed, root, workspace_with
from support.servers.serving import Answer, ask, serving
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from odfpy.coordinator.workspace import Workspace
from odfpy.serving.callers.sessions import csrf_token
from odfpy.serving.callers.tokens import Scope, Tokens
from odfpy.serving.callers.visibility import Visibility, visibility_of
from odfpy.serving.server import DatasetServer

NAME = "com.example.rates"
VERSION = {"X-Odf-Smtp-Version": "1"}


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    found = workspace_with(tmp_path / "workspace", root(NAME, "{kind: Append}"))
    feed(found, NAME, "1 a")
    return found


@pytest.fixture
def server(workspace: Workspace) -> Iterator[DatasetServer]:
    with serving(workspace) as server:
        yield server


@pytest.fixture
def token(workspace: Workspace) -> str:
    return Tokens(workspace.odf).new("me", Scope.ADMIN)


def sign_in(server: DatasetServer, **credentials: Any) -> Answer:
    body = json.dumps(credentials).encode()
    return ask(f"{server.url}/platform/session", method="POST", body=body, content_type="application/json")


def cookie_of(answer: Answer) -> str:
    [(name, morsel)] = SimpleCookie(answer.headers["set-cookie"]).items()
    return f"{name}={morsel.value}"


def test_a_session_begins_with_a_token_and_ends(server: DatasetServer, token: str) -> None:
    answer = sign_in(server, accessToken=token)
    assert answer.json | {"csrfToken": None} == {
        "name": "me", "scope": "admin", "isAdmin": True, "expiresAt": None, "csrfToken": None,
    }  # fmt: skip
    header = answer.headers["set-cookie"].lower()
    assert "httponly" in header
    assert "samesite=strict" in header
    assert "path=/" in header
    assert "secure" not in header
    cookie = cookie_of(answer)
    assert ask(f"{server.url}/{NAME}").status == 401
    assert ask(f"{server.url}/{NAME}", cookie=cookie).status == 200
    assert ask(f"{server.url}/platform/session", cookie=cookie).json["name"] == "me"
    over = ask(f"{server.url}/platform/session", method="DELETE", cookie=cookie)
    assert over.status == 204
    assert "max-age=0" in over.headers["set-cookie"].lower()
    assert ask(f"{server.url}/platform/session").json["name"] is None


def test_the_cookie_is_of_the_port_and_secure_behind_https(workspace: Workspace, token: str) -> None:
    with serving(workspace, base_url="https://data.example.com") as server:
        answer = sign_in(server, accessToken=token)
        assert cookie_of(answer).startswith(f"odf_session_{server.url.rpartition(':')[2]}=")
        assert "secure" in answer.headers["set-cookie"].lower()


def test_changes_need_what_only_pages_of_this_server_know(
    server: DatasetServer, workspace: Workspace, token: str
) -> None:
    signed_in = sign_in(server, accessToken=token)
    cookie, known = cookie_of(signed_in), signed_in.json["csrfToken"]
    assert known == csrf_token(token)
    assert token not in known
    url, folder = f"{server.url}/{NAME}/visibility?value=public", workspace.storage.get(NAME).folder
    for wrong in ({}, {"x_csrf_token": "x"}, {"x_csrf_token": csrf_token("other")}):
        assert ask(url, method="PUT", cookie=cookie, **wrong).status == 401
    assert ask(url, method="PUT", cookie=cookie, x_csrf_token=known, sec_fetch_site="cross-site").status == 401
    assert visibility_of(folder) is Visibility.PRIVATE
    assert ask(url, method="PUT", cookie=cookie, x_csrf_token=known, sec_fetch_site="same-origin").status == 200
    assert visibility_of(folder) is Visibility.PUBLIC


@pytest.mark.parametrize("other", ["prefs=a b", 'ui={"dark": true}', "a[b]=1", "t\xe4g=1", "=", "x"])
def test_cookies_of_others_that_are_odd_end_no_session(server: DatasetServer, token: str, other: str) -> None:
    """A browser sends those of all servers at localhost, whatever their ports."""
    cookie = cookie_of(sign_in(server, accessToken=token))
    for cookies in (f"{other}; {cookie}", f"{cookie}; {other}"):
        assert ask(f"{server.url}/{NAME}", cookie=cookies).status == 200


def test_other_sites_read_nothing_with_the_cookie(server: DatasetServer, token: str) -> None:
    cookie = cookie_of(sign_in(server, accessToken=token))
    for site in ("cross-site", "same-site"):
        assert ask(f"{server.url}/{NAME}", cookie=cookie, sec_fetch_site=site).status == 401


def test_a_session_ends_with_its_token(server: DatasetServer, workspace: Workspace, token: str) -> None:
    cookie = cookie_of(sign_in(server, accessToken=token))
    Tokens(workspace.odf).revoke("me")
    assert ask(f"{server.url}/{NAME}", cookie=cookie).status == 401
    assert ask(f"{server.url}/platform/session", cookie=cookie).status == 401
    assert ask(f"{server.url}/platform/session", method="DELETE", cookie=cookie).status == 204


@pytest.mark.parametrize(
    "credentials",
    [
        {"accessToken": "odf_x"},
        {"accessToken": ""},
        {"login": "me", "password": "wrong"},
    ],
)
def test_wrong_credentials_begin_nothing(server: DatasetServer, token: str, credentials: dict[str, str]) -> None:
    answer = sign_in(server, **credentials)
    assert answer.status == 401
    assert "set-cookie" not in answer.headers


@pytest.mark.parametrize("credentials", [{}, {"login": "me"}, {"accessToken": "a", "login": "b", "password": "c"}])
def test_half_of_the_credentials_are_refused(server: DatasetServer, credentials: dict[str, str]) -> None:
    answer = sign_in(server, **credentials)
    assert answer.status == 400
    assert answer.json["message"] == "Send either accessToken, or login and password"


def test_a_header_goes_before_a_cookie(server: DatasetServer, workspace: Workspace, token: str) -> None:
    cookie = cookie_of(sign_in(server, accessToken=token))
    reader = Tokens(workspace.odf).new("reader", Scope.READ)
    answer = ask(f"{server.url}/{NAME}/visibility?value=public", method="PUT", token=reader, cookie=cookie)
    assert answer.status == 403


@pytest.mark.parametrize("cookie", ["odf_session", "=;=;", "a" * 20_000, 'odf_session_1="\\'])
def test_cookies_that_make_no_sense_are_those_of_nobody(server: DatasetServer, cookie: str) -> None:
    assert ask(f"{server.url}/platform/session", cookie=cookie).json["name"] is None


def test_web_sockets_take_no_cookies(server: DatasetServer, token: str) -> None:
    """A browser would let any site open one."""
    cookie = cookie_of(sign_in(server, accessToken=token))
    url = f"{server.url.replace('http:', 'ws:')}/{NAME}/pull"
    with pytest.raises(InvalidStatus) as refused, connect(url, additional_headers={**VERSION, "Cookie": cookie}):
        pass
    assert refused.value.response.status_code == 401
    with connect(url, additional_headers={**VERSION, "Authorization": f"Bearer {token}"}):
        pass


def test_a_ticket_opens_one_session(server: DatasetServer, token: str) -> None:
    ticket = server.app.state.tickets.issue(token)
    url = f"{server.url}/ui/open?ticket={ticket}"
    answer = ask(url)
    assert answer.status == 303
    assert answer.headers["location"] == "/ui/"
    assert ask(f"{server.url}/{NAME}", cookie=cookie_of(answer)).status == 200
    again = ask(url)
    assert again.status == 403
    assert "run `odf ui` again" in again.json["message"]
    assert ask(f"{server.url}/ui/open?ticket=x").status == 403
