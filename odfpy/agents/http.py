"""The protocol over HTTP, mounted in `odf serve`; each request has a token that identifies its caller.

Requests are independent: there are no sessions that could be hijacked, or that fill the memory. The cookie of the web
pages is ignored, so that other web pages cannot use it.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlsplit

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.requests import HTTPConnection, Request
from starlette.responses import JSONResponse, Response

from odfpy.agents.proofs import ProofMemory
from odfpy.agents.protocol import Protocol
from odfpy.agents.readers import Reader, Served
from odfpy.errors import NotFound
from odfpy.query.wire.response import ResponseLimits
from odfpy.serving.callers.access import Caller, bearer_of, find_caller
from odfpy.serving.http.logs import log

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fastapi import FastAPI
    from starlette.types import Receive, Scope, Send

    from odfpy.coordinator.workspace import Workspace
    from odfpy.serving.settings import ServeSettings

PATH: Final = "/mcp"

_PROOFS: Final = f"{PATH}/proofs/"
_LOOPBACK: Final = frozenset({"127.0.0.1", "localhost", "::1"})
_CALLER: Final = "odf.caller"
_URL: Final = "odf.url"


class McpApp:
    """The protocol at `/mcp`, and the issued proofs at `/mcp/proofs/HASH`."""

    def __init__(self, app: FastAPI, workspaces: Sequence[Workspace]) -> None:
        """
        Args:
            app: application of the server, whose limits apply here, too.
            workspaces: workspaces of the server.
        """
        state = app.state
        self._settings: ServeSettings = state.settings
        self._served = Served(
            workspaces=workspaces,
            registry=state.datasets,
            reaches=state.reaches,
            catalog=state.catalog,
            engines=state.engines,
            limits=ResponseLimits(self._settings.max_rows, self._settings.max_answer),
            proofs=ProofMemory(),
        )
        protocol = Protocol(state.gate, self._settings.query_timeout, self._reader, _log)
        self._manager = StreamableHTTPSessionManager(
            protocol.server(),
            stateless=True,
            security_settings=TransportSecuritySettings(enable_dns_rebinding_protection=False),  # see _refusal
            max_request_body_size=self._settings.max_body,
        )

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Implement `MountedApp`."""
        async with self._manager.run():
            yield

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        connection = HTTPConnection(scope)
        refused = self._refusal(connection)
        if refused is None:
            caller = await self._caller(connection.headers)
            refused = _unauthorized() if caller is None else None
            scope[_CALLER], scope[_URL] = caller, self._url(connection)
            if caller is not None and caller.token is not None:
                scope.setdefault("state", {})["token_name"] = caller.token.name
        if refused is None and scope["path"].startswith(_PROOFS):
            refused = await run_in_threadpool(self._proof, Request(scope))
        elif refused is None and scope["path"] != PATH:
            refused = JSONResponse({"message": f"Agents connect at {PATH}"}, 404)
        if refused is not None:
            await refused(scope, receive, send)
            return
        await self._manager.handle_request(scope, receive, send)

    async def _reader(self, request: Request) -> Reader:
        address = request.client.host if request.client else None
        return self._served.reader(request.scope[_CALLER], request.scope[_URL], address)

    async def _caller(self, headers: Headers) -> Caller | None:
        """Return the caller; an anonymous one without a token, None for an invalid token."""
        text = bearer_of(headers)
        if text is None:
            return Caller()
        found = await run_in_threadpool(find_caller, text, self._served.registry.storages)
        return found if found is not None and found.token is not None else None

    def _proof(self, request: Request) -> Response:
        if request.method != "GET":
            return JSONResponse({"message": "Proofs can only be read"}, 405, {"Allow": "GET"})
        owner = self._served.reader(request.scope[_CALLER]).owner
        try:
            text = self._served.proofs.find(request.scope["path"].removeprefix(_PROOFS), owner)
        except NotFound as error:
            return JSONResponse({"message": f"{error.message}\n{error.hint}"}, 404)
        return Response(text, media_type="application/json", headers={"Cache-Control": "private, no-store"})

    def _url(self, connection: HTTPConnection) -> str:
        base = self._settings.base_url or f"{connection.url.scheme}://{connection.url.netloc}"
        return f"{base}{PATH}"

    def _refusal(self, connection: HTTPConnection) -> Response | None:
        """Return a refusal of requests by other web pages in a browser, also those that rebind a host name; else None.

        A page sends its origin (`Origin`). If a name was rebound to this machine, `Host` has that name: at a loopback
        address, the server accepts only its own names and that of `--base-url`.
        """
        host, origin = connection.headers.get("Host", ""), connection.headers.get("Origin")
        base = _place(self._settings.base_url or "")
        server = (connection.scope.get("server") or ("",))[0]
        if server in _LOOPBACK and _place(f"//{host}").name not in {*_LOOPBACK, base.name} - {""}:
            return JSONResponse({"message": "Unknown host name of this server; see --base-url"}, 421)
        if origin is not None and _place(origin).address not in {host, base.address} - {""}:
            return JSONResponse({"message": "Requests from pages of other servers are not allowed"}, 403)
        return None


class _Place(NamedTuple):
    """The origin of a URL.

    Attributes:
        name: name of the host.
        address: host and port.
    """

    name: str
    address: str


def _place(url: str) -> _Place:
    """Return the origin of a URL; an empty one if it is invalid."""
    try:
        parts = urlsplit(url)
        return _Place(parts.hostname or "", parts.netloc)
    except ValueError:
        return _Place("", "")


def _unauthorized() -> Response:
    message = "Unknown or expired access token"
    return JSONResponse({"message": message}, 401, {"WWW-Authenticate": 'Bearer realm="odf"'})


def _log(what: str, error: BaseException) -> None:
    log(what, level=logging.ERROR, error=error)
