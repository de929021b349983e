"""What clients are told when something goes wrong: never where the server keeps its files."""

from __future__ import annotations

import json
import logging

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.requests import HTTPConnection
from starlette.responses import Response

from odfpy.errors import DatasetLocked, DatasetNotFound, OdfError, UsageError
from odfpy.serving.logs import log

_STATUSES = ((DatasetLocked, 409), (DatasetNotFound, 404), (UsageError, 400))


def add_handlers(app: FastAPI) -> None:
    """Let the application answer errors."""
    app.add_exception_handler(OdfError, _answer)
    app.add_exception_handler(RequestValidationError, _refuse)


def _refuse(connection: HTTPConnection, error: Exception) -> Response:
    """What is wrong with a request, without what was in it: that may be a secret, or no text at all."""
    del connection
    assert isinstance(error, RequestValidationError)  # noqa: S101 - it is asked about no others
    problems = [{key: problem[key] for key in ("type", "loc", "msg")} for problem in error.errors()]
    return Response(json.dumps({"detail": problems}), 422, media_type="application/json")


def _answer(connection: HTTPConnection, error: Exception) -> Response:
    assert isinstance(error, OdfError)  # noqa: S101 - it is asked about no others
    for kind, status in _STATUSES:
        if isinstance(error, kind):
            return JSONResponse({"detail": kind.__doc__, "code": error.code}, status)
    log("failed", level=logging.ERROR, path=connection.scope["path"], code=error.code, problem=error.message)
    return JSONResponse({"detail": "The server could not do that; its log says why", "code": error.code}, 500)
