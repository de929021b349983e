"""What clients are told when something goes wrong: never where the server keeps its files."""

from __future__ import annotations

import logging

from fastapi import FastAPI
from fastapi.responses import JSONResponse
from starlette.requests import HTTPConnection
from starlette.responses import Response

from odfpy.errors import DatasetLocked, DatasetNotFound, OdfError, UsageError
from odfpy.serving.logs import log

_STATUSES = ((DatasetLocked, 409), (DatasetNotFound, 404), (UsageError, 400))


def add_handlers(app: FastAPI) -> None:
    """Let the application answer errors."""
    app.add_exception_handler(OdfError, _answer)


def _answer(connection: HTTPConnection, error: Exception) -> Response:
    assert isinstance(error, OdfError)  # noqa: S101 - it is asked about no others
    for kind, status in _STATUSES:
        if isinstance(error, kind):
            return JSONResponse({"detail": kind.__doc__, "code": error.code}, status)
    log("failed", level=logging.ERROR, path=connection.scope["path"], code=error.code, problem=error.message)
    return JSONResponse({"detail": "The server could not do that; its log says why", "code": error.code}, 500)
