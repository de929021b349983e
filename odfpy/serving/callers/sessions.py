"""Browser sessions: a cookie that holds an access token, and the protection against cross-site requests.

The cookie is the token, so that the session ends when the token does, wherever that is decided. Scripts cannot read it
(`HttpOnly`), and other sites cannot send it (`SameSite=Strict`). Requests that change something also need the header
`X-CSRF-Token`, which is derived from the token, and which only pages of this server receive.

Cookies belong to a host, regardless of the port. So the port is part of the cookie's name: two servers on one machine
would otherwise end each other's sessions.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from threading import Lock
from typing import Final

from starlette.requests import HTTPConnection
from starlette.responses import Response

CSRF_HEADER: Final = "X-CSRF-Token"
"""The header that a request with a cookie must have if it changes something."""

_SAFE: Final = ("GET", "HEAD")
_TICKET_SECONDS: Final = 60.0


def session_token(connection: HTTPConnection) -> str | None:
    """Return the token in the cookie of a request; None if there is none, or if another site may have sent it."""
    headers, scope = connection.headers, connection.scope
    if scope["type"] != "http" or headers.get("Sec-Fetch-Site", "same-origin") not in ("same-origin", "none"):
        return None
    # Starlette's parser, since Python's drops all cookies if one is unusual; cookies of localhost include other ports'.
    text = connection.cookies.get(cookie_name(connection))
    if text is None or scope["method"] in _SAFE:
        return text
    shown = headers.get(CSRF_HEADER, "")
    return text if hmac.compare_digest(shown.encode(), csrf_token(text).encode()) else None


def csrf_token(token: str) -> str:
    """Return the CSRF token that pages send with changes; the access token cannot be derived from it."""
    return hmac.new(token.encode(), b"odf csrf 1", hashlib.sha256).hexdigest()


def cookie_name(connection: HTTPConnection) -> str:
    """Return the name of the session cookie for the port that the server listens on."""
    server = connection.scope.get("server") or ("", 0)
    return f"odf_session_{server[1]}"


def begin_session(connection: HTTPConnection, response: Response, token: str, *, is_secure: bool) -> None:
    """Set the session cookie in a response; the browser deletes it when it is closed.

    Args:
        connection: the request.
        response: its response.
        token: the access token.
        is_secure: whether browsers use HTTPS.
    """
    response.set_cookie(cookie_name(connection), token, httponly=True, samesite="strict", secure=is_secure, path="/")


def end_session(connection: HTTPConnection, response: Response) -> None:
    """Delete the session cookie in a response."""
    response.delete_cookie(cookie_name(connection), httponly=True, samesite="strict", path="/")


class SignInTickets:
    """One-time tickets, each of which opens a session, for the browser that `odf ui` starts: URLs must not contain
    tokens.
    """

    def __init__(self) -> None:
        self._tokens: dict[str, tuple[str, float]] = {}
        self._lock = Lock()

    def issue(self, token: str) -> str:
        """Create a ticket for an access token; it is valid for a minute."""
        ticket, now = secrets.token_urlsafe(32), time.monotonic()
        with self._lock:
            self._tokens = {other: known for other, known in self._tokens.items() if known[1] > now}
            self._tokens[ticket] = token, now + _TICKET_SECONDS
        return ticket

    def redeem(self, ticket: str) -> str | None:
        """Return the access token of a ticket, once; None if it is unknown, used or expired."""
        with self._lock:
            token, end = self._tokens.pop(ticket, ("", 0.0))
        return token if time.monotonic() < end else None
