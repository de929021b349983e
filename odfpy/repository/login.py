"""Validation of an access token before it is stored, and log-in with a password."""

from __future__ import annotations

import json
from dataclasses import dataclass

from odfpy.errors import TransferError
from odfpy.http.client import HttpClient

_OK, _UNAUTHORIZED, _TOO_MANY = 200, 401, 429
_MAX_ANSWER = 64 * 1024


class LoginRefused(TransferError, code="E632"):
    """A server rejects an access token, or requires one."""


@dataclass(frozen=True, slots=True)
class KnownToken:
    """The server's description of a token.

    Attributes:
        name: name of the token at the server.
        scope: scope of the token.
    """

    name: str
    scope: str


def try_token(server: str, token: str) -> KnownToken | None:
    """Check a token with its server; return None if the server does not support tokens, such as a plain web server.

    Args:
        server: `scheme://host:port`.
        token: the token.

    Raises:
        LoginRefused: the server rejects the token.
        TransferError: the server is unreachable.
    """
    client = HttpClient(TransferError)
    headers = {"Authorization": f"Bearer {token}", "Accept": "application/json"}
    with client.get(f"{server}/token", headers, max_size=_MAX_ANSWER) as answer:
        if answer.status == _UNAUTHORIZED:
            raise LoginRefused(f"{server} does not accept this token", hint="It may be incomplete, expired or revoked.")
        return _answer(answer.readall()) if answer.status == _OK else None


def token_for_password(server: str, name: str, password: str) -> str:
    """Log in with a password, through the reference implementation's endpoint, and return the token.

    Args:
        server: `scheme://host:port`.
        name: name of the user.
        password: password of the user.

    Raises:
        LoginRefused: the server rejects name or password, does not support log-ins, or has seen too many failed
            attempts.
        TransferError: the server is unreachable.
    """
    credentials = json.dumps({"login": name, "password": password})
    body = json.dumps({"loginMethod": "password", "loginCredentialsJson": credentials}).encode()
    headers = {"Content-Type": "application/json", "Accept": "application/json"}
    client = HttpClient(TransferError)
    with client.post(f"{server}/platform/login", body, headers, max_size=_MAX_ANSWER) as answer:
        status, data = answer.status, answer.readall()
    if status == _UNAUTHORIZED:
        raise LoginRefused(
            f"{server} does not accept this name and password", hint="`odf user password NAME` there sets a new one."
        )
    if status == _TOO_MANY:
        raise LoginRefused(f"{server} has received too many wrong passwords", hint="Wait a minute.")
    try:
        token = json.loads(data)["accessToken"]
    except (ValueError, TypeError, LookupError, RecursionError):
        token = None
    if status != _OK or not isinstance(token, str):
        raise LoginRefused(
            f"{server} has no logins with a password: it answers with status {status}",
            hint="Get a token from its operator, then run `odf login URL`.",
        )
    return token


def _answer(body: bytes) -> KnownToken | None:
    try:
        tree = json.loads(body)
        name, scope = tree["name"], tree["scope"]
    except (ValueError, TypeError, LookupError, RecursionError):
        return None
    is_plain = all(isinstance(text, str) and text.isprintable() and len(text) <= 200 for text in (name, scope))
    return KnownToken(name, scope) if is_plain else None
