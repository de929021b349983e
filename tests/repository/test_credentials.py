"""Tokens of the person: which server is shown which, and that nobody else sees them."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.chains.small_datasets import make_dataset
from support.servers.static_server import StaticServer, send, static_server

from odfpy.chain.layout import DatasetLayout
from odfpy.errors import InvalidValue, MalformedManifest, OdfError, TransferError
from odfpy.repository.credentials import VARIABLE, Credentials, authorization, check_token, server_of, token_for
from odfpy.repository.locations.http import http_dataset
from odfpy.repository.login import try_token
from odfpy.repository.transfer.simple import transfer


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv(VARIABLE, raising=False)
    return tmp_path


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StaticServer]:
    folder = tmp_path_factory.mktemp("site")
    make_dataset(DatasetLayout.local(folder / "com.example.rates"), "first")
    with static_server(folder) as site:
        yield site


@pytest.mark.parametrize(
    ("url", "server"),
    [
        ("https://example.com", "https://example.com:443"),
        ("https://Example.COM/a/b?c", "https://example.com:443"),
        ("http://user:secret@example.com:8080/x", "http://example.com:8080"),
        ("odf+https://example.com/com.example.rates", "https://example.com:443"),
        ("odf+http://[::1]:9/x", "http://[::1]:9"),
    ],
)
def test_a_token_is_for_scheme_host_and_port(url: str, server: str) -> None:
    assert server_of(url) == server


@pytest.mark.parametrize("url", ["", "example.com", "ftp://example.com", "file:///x", "https://", "http://[::1"])
def test_what_is_no_server_is_told(url: str) -> None:
    with pytest.raises(InvalidValue, match="Not an http or https URL"):
        server_of(url)


def test_tokens_are_kept_by_server_in_a_file_of_the_person(home: Path) -> None:
    credentials = Credentials()
    credentials.save("https://one.example:443", "first")
    credentials.save("https://two.example:443", "second")
    credentials.save("https://one.example:443", "third")
    assert credentials.path == home / "config" / "odf" / "credentials.yaml"
    assert credentials.path.stat().st_mode & 0o777 == 0o600
    assert token_for("odf+https://one.example/x") == "third"
    assert authorization("https://two.example") == "Bearer second"
    assert token_for("http://one.example") is None
    assert token_for("https://one.example:444") is None
    assert credentials.forget("https://one.example:443")
    assert not credentials.forget("https://one.example:443")
    assert credentials.servers() == ("https://two.example:443",)


def test_the_environment_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    Credentials().save("https://one.example:443", "kept")
    monkeypatch.setenv(VARIABLE, " from-the-environment\n")
    assert token_for("https://one.example") == "from-the-environment"


def test_logins_at_the_same_time_are_all_kept() -> None:
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda n: Credentials().save(f"https://n{n}.example:443", f"t{n}"), range(12)))
    assert len(Credentials().servers()) == 12


@given(st.text(max_size=50))
def test_what_is_no_token_is_never_shown(text: str) -> None:
    secret = f"a {text} s3cr3t"
    with pytest.raises(InvalidValue) as refused:
        check_token(secret, "it")
    assert "s3cr3t" not in refused.value.message + (refused.value.hint or "")


@pytest.mark.parametrize(
    "text",
    ["token: s3cr3t", "kind: Credentials\nversion: 1\ncontent: {servers: [{url: x, token: s3cr3t, z: 1}]}", "\0"],
)
def test_a_damaged_file_is_told_without_what_is_in_it(text: str) -> None:
    path = Credentials().path
    path.parent.mkdir(parents=True)
    path.write_text(text)
    with pytest.raises(MalformedManifest) as damaged:
        token_for("https://example.com")
    assert "s3cr3t" not in str(damaged.value) + (damaged.value.hint or "")
    assert damaged.value.__cause__ is None


def test_a_place_that_cannot_be_written_is_told(home: Path) -> None:
    (home / "config").write_text("a file where a folder should be")
    with pytest.raises(OdfError, match="Cannot write"):
        Credentials().save("https://example.com:443", "token")


# --- Towards servers -------------------------------------------------------------------------------------------------


def test_a_server_is_shown_its_token_with_every_request(site: StaticServer) -> None:
    Credentials().save(server_of(site.url), "kept")
    site.headers.clear()
    transfer(http_dataset(f"{site.url}/com.example.rates"), DatasetLayout.in_memory())
    assert site.headers
    assert {headers.get("Authorization") for headers in site.headers} == {"Bearer kept"}


def test_a_user_in_the_url_comes_before_a_token(site: StaticServer) -> None:
    Credentials().save(server_of(site.url), "kept")
    site.headers.clear()
    url = site.url.replace("//", "//user:password@")
    transfer(http_dataset(f"{url}/com.example.rates"), DatasetLayout.in_memory())
    assert {headers["Authorization"].split()[0] for headers in site.headers} == {"Basic"}


def test_a_token_does_not_follow_a_redirect_to_another_server(site: StaticServer, tmp_path: Path) -> None:
    Credentials().save(server_of(site.url), "kept")
    make_dataset(DatasetLayout.local(tmp_path / "com.example.moved"), "first")
    with static_server(tmp_path) as other:
        site.special["com.example.moved/refs/head"] = lambda handler: send(
            handler, b"", status=302, Location=f"{other.url}/com.example.moved/refs/head"
        )
        http_dataset(f"{site.url}/com.example.moved").refs.get("head")
        site.special.clear()
        assert [headers.get("Authorization") for headers in other.headers] == [None]


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"null", b'{"name": 1}', b'{"name": "\\u0007", "scope": "x"}', b"[" * 60_000, b"\xff"]
)
def test_a_server_that_says_nothing_of_tokens_is_one_all_the_same(site: StaticServer, body: bytes) -> None:
    site.special["/token"] = lambda handler: send(handler, body)
    assert try_token(site.url, "kept") is None
    site.special.clear()


def test_a_server_that_is_not_there_is_told(site: StaticServer) -> None:
    with pytest.raises(TransferError, match=r"Cannot read http://127\.0\.0\.1:1/token"):
        try_token("http://127.0.0.1:1", "kept")
