"""Sessions of browsers: a cookie that holds an access token, and what keeps other sites from using it.

The cookie is the token, so that it ends when the token ends, wherever that is decided. No script can read it
(`HttpOnly`) and no other site can send it (`SameSite=Strict`). Whatever changes something also needs the header
`X-CSRF-Token`, which follows from the token, and which only pages of this server are told.

Cookies are those of a host, whatever the port. So the port is part of the name: two servers on one machine would
otherwise end each other's sessions.
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
    """Return the token in the cookie of a request; None if it has none, or could be of another site."""
    headers, scope = connection.headers, connection.scope
    if scope["type"] != "http" or headers.get("Sec-Fetch-Site", "same-origin") not in ("same-origin", "none"):
        return None
    # Starlette's parser, not Python's, which reads no cookie if one is unusual; those of localhost are of all ports.
    text = connection.cookies.get(cookie_name(connection))
    if text is None or scope["method"] in _SAFE:
        return text
    shown = headers.get(CSRF_HEADER, "")
    return text if hmac.compare_digest(shown.encode(), csrf_token(text).encode()) else None


def csrf_token(token: str) -> str:
    """Return what pages of this server send along with changes; the access token does not follow from it."""
    return hmac.new(token.encode(), b"odf csrf 1", hashlib.sha256).hexdigest()


def cookie_name(connection: HTTPConnection) -> str:
    """Return the name of the session's cookie at the port that the server listens at."""
    server = connection.scope.get("server") or ("", 0)
    return f"odf_session_{server[1]}"


def begin_session(connection: HTTPConnection, response: Response, token: str, *, is_secure: bool) -> None:
    """Let an answer set the cookie, which the browser forgets when it is closed.

    Args:
        connection: the request.
        response: its answer.
        token: the access token.
        is_secure: whether browsers come by HTTPS.
    """
    response.set_cookie(cookie_name(connection), token, httponly=True, samesite="strict", secure=is_secure, path="/")


def end_session(connection: HTTPConnection, response: Response) -> None:
    """Let an answer take the cookie back."""
    response.delete_cookie(cookie_name(connection), httponly=True, samesite="strict", path="/")


class SignInTickets:
    """Tickets that open one session each, for the browser that `odf ui` starts: a URL must not hold a token."""

    def __init__(self) -> None:
        self._tokens: dict[str, tuple[str, float]] = {}
        self._lock = Lock()

    def issue(self, token: str) -> str:
        """Make a ticket for an access token; it is good for a minute."""
        ticket, now = secrets.token_urlsafe(32), time.monotonic()
        with self._lock:
            self._tokens = {other: known for other, known in self._tokens.items() if known[1] > now}
            self._tokens[ticket] = token, now + _TICKET_SECONDS
        return ticket

    def redeem(self, ticket: str) -> str | None:
        """Return the access token of a ticket, once; None if it is none, or not any more."""
        with self._lock:
            token, end = self._tokens.pop(ticket, ("", 0.0))
        return token if time.monotonic() < end else None
