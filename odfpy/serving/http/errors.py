"""Errors as clients see them: never with paths of the server's files."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection
from starlette.responses import Response
from starlette.routing import Match, compile_path

from odfpy.errors import DatasetLocked, DatasetNotFound, OdfError, UsageError
from odfpy.serving.http.logs import log

_WITHOUT_BODY = (204, 304)
_NOT_ALLOWED = 405
_METHODS = ("get", "head", "post", "put", "patch", "delete")
_STATUSES = ((DatasetLocked, 409), (DatasetNotFound, 404), (UsageError, 400))


class Refused(Exception):
    """A request is refused, with a message for its sender.

    Attributes:
        status: HTTP status.
        message: what is wrong, and how to fix it.
        headers: further headers of the answer.
        more: further fields of the response, for programs.
    """

    def __init__(
        self,
        status: int,
        message: str,
        headers: Mapping[str, str] | None = None,
        more: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.headers = headers
        self.more = more

    @classmethod
    def of(cls, status: int, error: OdfError, more: Mapping[str, Any] | None = None) -> Refused:
        """Return the refusal of a request that an error describes, with its message and hint.

        By default there is no code in the answer: errors of the reference's node only have a message.

        Args:
            status: of HTTP.
            error: an error whose texts the sender may see.
            more: what the answer says besides, for programs.
        """
        hint = f"\n{error.hint}" if error.hint else ""
        return cls(status, f"{error.message}{hint}", more=more)


def add_handlers(app: FastAPI) -> None:
    """Register the error handlers of an application."""
    app.add_exception_handler(Refused, _as_response)
    app.add_exception_handler(HTTPException, _declined)
    app.add_exception_handler(OdfError, _answer)
    app.add_exception_handler(RequestValidationError, _refuse)


def _as_response(connection: HTTPConnection, error: Exception) -> Response:
    del connection
    assert isinstance(error, Refused)  # noqa: S101 - registered for this class only
    # In ASCII: what the client sent may not be valid Unicode.
    body = json.dumps({"message": error.message, **(error.more or {})})
    return Response(body, error.status, dict(error.headers or {}), media_type="application/json")


def _declined(connection: HTTPConnection, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101 - registered for this class only
    if error.status_code in _WITHOUT_BODY:
        return Response(status_code=error.status_code, headers=error.headers)
    if error.status_code == _NOT_ALLOWED:
        methods = ", ".join(_allowed(connection))
        error = HTTPException(
            _NOT_ALLOWED, f"There is no {connection.scope['method']} here, but {methods}", {"Allow": methods}
        )
    body = json.dumps({"detail": error.detail, "message": error.detail})  # the reference's clients look for `message`
    return Response(body, error.status_code, error.headers, media_type="application/json")


def _allowed(connection: HTTPConnection) -> list[str]:
    """Return the methods that the OpenAPI declares for a path, and HEAD; the framework only knows one route's."""
    app, scope = connection.app, connection.scope
    paths = (
        set(methods) for path, methods in app.openapi()["paths"].items() if compile_path(path)[0].match(scope["path"])
    )
    known = {"head", *next(paths, _METHODS)}
    scopes = {method: {**scope, "method": method.upper()} for method in _METHODS if method in known}
    return [
        method.upper()
        for method, asked in scopes.items()
        if any(route.matches(asked)[0] is Match.FULL for route in app.router.routes)
    ]


def _refuse(connection: HTTPConnection, error: Exception) -> Response:
    """Describe a validation error without the rejected input, which may be secret, or not valid Unicode."""
    assert isinstance(error, RequestValidationError)  # noqa: S101 - registered for this class only
    problems = [{key: problem[key] for key in ("type", "loc", "msg")} for problem in error.errors()]
    message = "; ".join(_in_words(connection, problem) for problem in error.errors())
    return Response(json.dumps({"detail": problems, "message": message}), 422, media_type="application/json")


def _in_words(connection: HTTPConnection, problem: Any) -> str:
    place = problem["loc"]
    if problem["type"] == "json_invalid":
        return f"The body is not JSON: {problem['ctx']['error']}, at character {place[-1] + 1}"
    if problem["type"] == "model_attributes_type" and "json" not in connection.headers.get("Content-Type", ""):
        return "The body is not taken for JSON\nSet the header Content-Type: application/json."
    return f"{'.'.join(map(str, place))}: {problem['msg']}"


def _answer(connection: HTTPConnection, error: Exception) -> Response:
    assert isinstance(error, OdfError)  # noqa: S101 - registered for this class only
    for kind, status in _STATUSES:
        if isinstance(error, kind):
            return JSONResponse({"detail": kind.__doc__, "message": kind.__doc__, "code": error.code}, status)
    log("failed", level=logging.ERROR, path=connection.scope["path"], code=error.code, problem=error.message)
    message = "Internal error; the server's log has the details"
    return JSONResponse({"detail": message, "message": message, "code": error.code}, 500)
