"""Tokens for passwords, of servers that answer as they should, and of others."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from support.servers.static_server import running, send

from odfpy.errors import TransferError
from odfpy.repository.login import LoginRefused, token_for_password

PASSWORD = "correct horse battery"


@contextmanager
def answering(status: int, body: bytes) -> Iterator[tuple[str, list[Any]]]:
    """A server that gives one answer to all logins, and what it was asked."""
    asked: list[Any] = []

    class Handler(SimpleHTTPRequestHandler):
        def do_POST(self) -> None:
            text = self.rfile.read(int(self.headers["Content-Length"]))
            asked.append((self.path, self.headers["Content-Type"], json.loads(text)))
            send(self, body, status=status)

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server, running(server):
        yield f"http://127.0.0.1:{server.server_port}", asked


def test_a_login_is_put_as_the_reference_puts_it() -> None:
    with answering(200, b'{"accessToken": "odf_x", "more": 1}') as (url, asked):
        assert token_for_password(url, "ann", PASSWORD) == "odf_x"
    path, kind, tree = asked[0]
    assert (path, kind, tree["loginMethod"]) == ("/platform/login", "application/json", "password")
    assert json.loads(tree["loginCredentialsJson"]) == {"login": "ann", "password": PASSWORD}


@pytest.mark.parametrize(
    ("status", "body", "says"),
    [
        (401, b"{}", "does not accept this name and password"),
        (429, b"", "too many wrong passwords"),
        (404, b"not here", "has no logins with a password"),
        (501, b"", "has no logins with a password"),
        (500, b'{"accessToken": "odf_x"}', "has no logins with a password"),
        (302, b'{"accessToken": "odf_x"}', "has no logins with a password"),
        (200, b"", "has no logins with a password"),
        (200, b"[]", "has no logins with a password"),
        (200, b"[" * 10_000, "has no logins with a password"),
        (200, b'{"accessToken": 5}', "has no logins with a password"),
        (200, b"\xff", "has no logins with a password"),
    ],
)
def test_answers_that_are_no_token(status: int, body: bytes, says: str) -> None:
    with answering(status, body) as (url, _), pytest.raises(LoginRefused) as caught:
        token_for_password(url, "ann", PASSWORD)
    assert says in caught.value.message
    assert PASSWORD not in str(caught.value)


def test_an_answer_without_an_end_is_not_read() -> None:
    with answering(200, b" " * 100_000) as (url, _), pytest.raises(TransferError, match="allowed"):
        token_for_password(url, "ann", PASSWORD)
