"""`odf token`, `odf set-visibility`, `odf webhook`, `odf login` and `odf logout`; and `odf serve` when it cannot."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.servers.static_server import StaticServer, send, static_server

from odfpy.repository.credentials import Credentials, server_of

if TYPE_CHECKING:
    from cli.conftest import Odf


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StaticServer]:
    with static_server(tmp_path_factory.mktemp("site")) as site:
        site.special["/token"] = lambda handler: (
            send(handler, b'{"name": "ci", "scope": "write"}')
            if handler.headers["Authorization"] == "Bearer good"
            else send(handler, b"", status=401)
        )
        yield site


# --- odf token -------------------------------------------------------------------------------------------------------


def test_a_token_is_printed_once_and_listed_without_itself(odf: Odf, workspace: Path) -> None:
    assert odf("token", "list").err.startswith("No tokens; create one")
    made = odf("token", "new", "ci", "--scope", "write", "--expires", "90d")
    assert made.out.startswith("odf_")
    assert "cannot be shown again" in made.err
    (listed,) = odf("token", "list", "-o", "json").json
    assert (listed["name"], listed["scope"], listed["expired"]) == ("ci", "write", False)
    assert made.out.strip() not in odf("token", "list").out
    assert odf("token", "revoke", "ci").code == 0
    assert odf("token", "list", "-o", "json").json == []


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("new", "ci", "--scope", "reed"), "Did you mean read?"),
        (("new", "ci", "--expires", "soon"), "Not a duration"),
        (("new", "ci", "--expires", "999999w999999w"), "Not a duration"),
        (("new", "ci", "--expires", "0s"), "longer than zero"),
        (("new", ""), "Not a name of a token"),
        (("new", "../x"), "Not a name of a token"),
        (("new", "x" * 101), "Not a name of a token"),
        (("new", "first"), "already exists"),
        (("revoke", "frist"), "Did you mean first?"),
        (("new",), "Missing argument"),
    ],
)
def test_wrong_input_for_tokens(words: tuple[str, ...], says: str, odf: Odf, workspace: Path) -> None:
    assert odf("token", "new", "first").code == 0
    done = odf("token", *words)
    assert done.code in (1, 2)
    assert says in done.says
    assert done.out == ""


# --- odf set-visibility ----------------------------------------------------------------------------------------------


def test_datasets_are_made_public_by_name_and_pattern(odf: Odf, workspace: Path) -> None:
    assert odf("set-visibility", "com.example.%", "public").err.count("is public") >= 5
    assert odf("set-visibility", "com.example.rates", "PRIVATE").err == "com.example.rates is private\n"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("com.example.rates", "pubic"), "Did you mean public?"),
        (("com.example.raets", "public"), "Did you mean com.example.rates?"),
        (("nothing.%", "public"), "No dataset matches"),
        (("com.example.rates",), "Missing argument"),
    ],
)
def test_wrong_input_for_visibility(words: tuple[str, ...], says: str, odf: Odf, workspace: Path) -> None:
    done = odf("set-visibility", *words)
    assert done.code in (1, 2)
    assert says in done.says


# --- odf webhook -----------------------------------------------------------------------------------------------------


def test_webhooks_are_added_listed_without_secrets_and_deleted(odf: Odf, workspace: Path) -> None:
    url = "https://user:pass@hooks.example.com/rates?key=s3cr3t"
    assert odf("webhook", "list", "com.example.rates").err.startswith("No webhooks")
    assert odf("webhook", "add", "com.example.rates", url).out.startswith("whsec_")
    (listed,) = odf("webhook", "list", "com.example.rates", "-o", "json").json
    assert listed["url"] == "https://hooks.example.com/rates"
    assert listed["lastHead"].startswith("f1620")
    again = odf("webhook", "add", "com.example.rates", url)
    assert again.code == 1
    assert "s3cr3t" not in again.err
    other = url.replace("s3cr3t", "other")
    assert odf("webhook", "add", "com.example.rates", other).code == 0
    several = odf("webhook", "delete", "com.example.rates", listed["url"])
    assert several.code == 2
    assert "2 webhooks that are shown as" in several.err
    assert odf("webhook", "delete", "com.example.rates", url).code == 0
    assert odf("webhook", "delete", "com.example.rates", url).code == 1
    assert odf("webhook", "delete", "com.example.rates", listed["url"]).code == 0
    assert odf("webhook", "list", "com.example.rates", "-o", "json").json == []


@pytest.mark.parametrize("url", ["", "hooks.example.com", "ftp://x/y", "file:///etc/passwd", "http://", "javascript:1"])
def test_webhooks_are_http_urls(url: str, odf: Odf, workspace: Path) -> None:
    done = odf("webhook", "add", "com.example.rates", url)
    assert done.code == 2
    assert "Not an http or https URL" in done.says


# --- odf login and logout --------------------------------------------------------------------------------------------


def test_a_token_is_tried_before_it_is_kept(odf: Odf, site: StaticServer, monkeypatch: pytest.MonkeyPatch) -> None:
    refused = odf("login", site.url, "--token", "wrong-one")
    assert refused.code == 1
    assert "does not accept this token" in refused.says
    assert "wrong-one" not in refused.err
    assert Credentials().servers() == ()
    done = odf("login", f"{site.url}/com.example.rates", stdin=b"good\n")
    assert "as ci with the scope write" in done.err
    assert "good" not in done.out + done.err
    assert Credentials().get(server_of(site.url)) == "good"
    assert odf("logout", site.url).code == 0
    monkeypatch.setenv("ODF_TOKEN", "good")
    assert odf("login", site.url).code == 0
    assert odf("logout", "--all").code == 0
    assert Credentials().servers() == ()


@pytest.mark.parametrize(
    ("words", "stdin", "says"),
    [
        (("login", "example.com", "--token", "x"), b"", "Not an http or https URL"),
        (("login", "https://"), b"x", "Not an http or https URL"),
        (("login", "http://127.0.0.1:1"), b"", "does not contain an access token"),
        (("login", "http://127.0.0.1:1"), b"two words", "does not contain an access token"),
        (("login", "http://127.0.0.1:1", "--token", ""), b"", "does not contain an access token"),
        (("login", "http://127.0.0.1:1", "--token", "x"), b"", "Cannot read http://127.0.0.1:1/token"),
        (("login",), b"", "Missing argument"),
        (("logout",), b"", "No server given"),
        (("logout", "https://example.com", "--all"), b"", "No server given"),
        (("logout", "https://example.com"), b"", "No token is kept for https://example.com:443"),
    ],
)
def test_wrong_input_for_logins(words: tuple[str, ...], stdin: bytes, says: str, odf: Odf) -> None:
    done = odf(*words, stdin=stdin)
    assert done.code in (1, 2)
    assert says in done.says


# --- odf serve, odf pull --follow ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--port", "http"), "--port must be a whole number"),
        (("--port", "-1"), "--port must be a whole number"),
        (("--port", "65536"), "--port must be a whole number, at most 65535"),
        (("--tls-cert", "x.pem"), "A certificate needs its key"),
        (("--port", "0", "--tls-cert", "x.pem", "--tls-key", "y.pem"), "Cannot read x.pem"),
        (("--host", "no.such.host.invalid"), "Cannot listen at no.such.host.invalid"),
        (("--host", "192.0.2.1"), "Cannot listen at 192.0.2.1"),
        (("--also", "/nonexistent"), "There is no folder '/nonexistent'"),
        (("--max-connections", "0"), "--max-connections must be a whole number, at least 1"),
        (("--base-url", "example.com"), "Not an http or https URL"),
        (("--base-url", "https://example.com/?x"), "has no ? or #"),
        (("--grace", "soon"), "--grace must be a whole number"),
    ],
)
def test_wrong_input_for_servers(words: tuple[str, ...], says: str, odf: Odf, workspace: Path) -> None:
    done = odf("serve", *words)
    assert done.code in (1, 2)
    assert says in done.says


def test_a_port_that_is_taken_is_told(odf: Odf, workspace: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = odf("serve", "--port", str(taken.getsockname()[1]))
    assert done.code == 1
    assert "Address already in use" in done.says


def test_a_server_needs_a_workspace(odf: Odf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert odf("serve").code == 2
    assert odf("token", "list").code == 2


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("com.example.rates",), "There is nothing to follow"),
        (("com.example.rates", "--dry-run"), "--follow cannot be combined with"),
        (("com.example.rates", "--set-watermark", "2024-01-01"), "--follow cannot be combined with"),
        ((), "Nothing to pull"),
    ],
)
def test_wrong_input_for_following(words: tuple[str, ...], says: str, odf: Odf, workspace: Path) -> None:
    done = odf("pull", "--follow", *words)
    assert done.code == 2
    assert says in done.err
