"""Errors in the form of the Delta Sharing protocol: `{errorCode, message}`, and no 5xx for expected errors."""

from __future__ import annotations

import errno
import logging
import math
from collections.abc import Mapping
from typing import Final

from fastapi import FastAPI, HTTPException
from fastapi.exceptions import RequestValidationError
from pyarrow import ArrowInvalid
from starlette.requests import HTTPConnection
from starlette.responses import JSONResponse, Response

from odfpy.errors import IntegrityError, MalformedData, NotFound, OdfError, SchemaError, UsageError
from odfpy.serving.http.errors import Refused
from odfpy.serving.http.logs import log
from odfpy.sharing.errors import CannotShare, SharedObjectNotFound
from odfpy.sharing.tables.contract import NoSuchVersion

_CODES: Final = {
    400: "INVALID_PARAMETER_VALUE",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "RESOURCE_DOES_NOT_EXIST",
    405: "UNSUPPORTED_OPERATION",
    413: "REQUEST_TOO_LARGE",
    422: "INVALID_PARAMETER_VALUE",
    429: "REQUEST_LIMIT_EXCEEDED",
    503: "TEMPORARILY_UNAVAILABLE",
}
_UNREADABLE: Final = "The data of this table is not available at the moment; the log of the server has the reason"
_MISSING: Final = "There is no such share, schema or table, or you have no access to it"


class SharingError(Exception):
    """An answer that is an error.

    Attributes:
        status: HTTP status.
        message: what is wrong.
        headers: further headers of the answer, None for none.
    """

    def __init__(self, status: int, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.headers = None if retry_after is None else {"Retry-After": str(math.ceil(retry_after))}


def missing() -> SharingError:
    """Return the same error for missing and for hidden objects."""
    return SharingError(404, _MISSING)


def add_handlers(app: FastAPI) -> None:
    """Register the error handlers of the protocol."""
    app.add_exception_handler(SharingError, _sharing)
    app.add_exception_handler(Refused, _sharing)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(404, _http)
    app.add_exception_handler(405, _http)
    app.add_exception_handler(RequestValidationError, _validation)
    app.add_exception_handler(OdfError, _ours)
    app.add_exception_handler(ArrowInvalid, _unreadable)
    app.add_exception_handler(OSError, _unreadable)
    app.add_exception_handler(Exception, _bug)


def in_protocol(error: OdfError) -> SharingError:
    """Return the response for an error of odfpy; what the request did not cause is only logged."""
    if isinstance(error, SharedObjectNotFound):
        return missing()
    if isinstance(error, (NoSuchVersion, SchemaError)) or (
        isinstance(error, UsageError) and not isinstance(error, CannotShare)
    ):
        return SharingError(400, f"{error.message}{f' ({error.hint})' if error.hint else ''}")
    log("failed", level=logging.ERROR, code=error.code, problem=error.message)
    if isinstance(error, (CannotShare, NotFound, MalformedData, IntegrityError)):
        return SharingError(404, _UNREADABLE)
    return SharingError(500, "Internal error; the server's log has the details")


def _answer(status: int, message: str, more: Mapping[str, str] | None = None) -> Response:
    headers = {**({"WWW-Authenticate": 'Bearer realm="odf"'} if status == 401 else {}), **(more or {})}
    return JSONResponse({"errorCode": _CODES.get(status, "INTERNAL_ERROR"), "message": message}, status, headers)


def _sharing(connection: HTTPConnection, error: Exception) -> Response:
    del connection
    assert isinstance(error, (SharingError, Refused))  # noqa: S101 - registered for these classes only
    return _answer(error.status, error.message, error.headers)


def _http(connection: HTTPConnection, error: Exception) -> Response:
    del connection
    status = getattr(error, "status_code", 500)
    return _answer(status, _MISSING if status == 404 else str(getattr(error, "detail", error)))


def _validation(connection: HTTPConnection, error: Exception) -> Response:
    del connection
    assert isinstance(error, RequestValidationError)  # noqa: S101 - registered for this class only
    problems = (f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}" for problem in error.errors())
    return _answer(400, "; ".join(problems))


def _unreadable(connection: HTTPConnection, error: Exception) -> Response:
    """Return the response for a damaged or missing file of a publisher; a full disk and the like are server errors.

    Errors of the Parquet reader are `OSError`, too, but have no `errno`.
    """
    log("failed", level=logging.ERROR, error=error)
    if isinstance(error, OSError) and error.errno not in {None, errno.ENOENT}:
        return _bug(connection, error)
    return _answer(404, _UNREADABLE)


def _bug(connection: HTTPConnection, error: Exception) -> Response:
    del connection, error  # it is in the server's log
    return _answer(500, "Internal error; the server's log has the details")


def _ours(connection: HTTPConnection, error: Exception) -> Response:
    del connection
    assert isinstance(error, OdfError)  # noqa: S101 - registered for this class only
    protocol_error = in_protocol(error)
    return _answer(protocol_error.status, protocol_error.message)
