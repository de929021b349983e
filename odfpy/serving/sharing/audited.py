"""Middleware that records each Delta Sharing request in the audit log, after it was answered."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from odfpy.serving.http.logs import log
from odfpy.sharing.names import SharePath

_KNOWN = ("path", "version", "block", "files", "action")
_MAX_PATH: Final = 1000


class Audited:
    """Middleware that records each request and its outcome. Callers cannot disable it."""

    def __init__(self, app: ASGIApp, record: Callable[[Mapping[str, Any]], object]) -> None:
        self._app = app
        self._record = record

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle an ASGI connection."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        seen = {"status": 0, "bytes": 0}

        async def counted(message: Message) -> None:
            if message["type"] == "http.response.start":
                seen["status"] = message["status"]
            elif message["type"] == "http.response.body":
                seen["bytes"] += len(message.get("body", b""))
            await send(message)

        try:
            await self._app(scope, receive, counted)
        finally:
            try:
                self._record(access_of(scope, seen["status"], seen["bytes"]))
            except Exception as error:  # noqa: BLE001 - an answer that was given stays given
                log("not audited", level=logging.ERROR, error=error)


def note(scope: Scope, **what: Any) -> None:
    """Record details of a request: `path`, `version`, `block`, `files`, `action`."""
    scope.setdefault("state", {}).setdefault("audit", {}).update(what)


def access_of(scope: Scope, status: int, size: int) -> dict[str, Any]:
    """Return the audit log entry of a request.

    Args:
        scope: scope of the request.
        status: status of the answer.
        size: bytes of its body.
    """
    state = scope.get("state", {})
    audit_state = state.get("audit", {})
    client = scope.get("client")
    headers = {name: value for name, value in scope["headers"] if name == b"user-agent"}
    facts = {name: audit_state.get(name) for name in _KNOWN}
    if facts["path"] is None:
        facts["path"] = _path_asked(scope)
    if facts["action"] is None:
        endpoint = scope.get("endpoint")
        facts["action"] = getattr(endpoint, "__name__", "unknown")
    return {
        **facts,
        "who": state.get("token_name"),
        "granted": 200 <= status < 400,
        "status": status,
        "bytes": size,
        "address": client[0] if client else None,
        "client": headers.get(b"user-agent", b"").decode("utf-8", "replace") or None,
    }


def _path_asked(scope: Scope) -> str | None:
    """Return the share, schema or table that a request names, existing or not, truncated if it is too long."""
    named = scope.get("path_params", {})
    if "share" not in named:
        return None
    text = str(SharePath(named["share"], named.get("schema"), named.get("table")))
    return text if len(text) <= _MAX_PATH else f"{text[: _MAX_PATH - 1]}…"
