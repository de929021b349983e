"""Errors as clients see them: a Flight status and a sentence, never a traceback.

pyarrow has classes for some statuses; for others it maps Python's own: a ValueError is INVALID_ARGUMENT. With those it
sends the traceback, unless formatting that fails, which `_Quiet` provides for.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, Final, NoReturn, TypeVar

import pyarrow as pa
import pyarrow.flight as fl

from odfpy.errors import (
    DatasetNotFound,
    EngineError,
    EngineNotFound,
    EngineUnavailable,
    InvalidQuery,
    NotFound,
    ObjectNotFound,
    OdfError,
    QueryCancelled,
    QueryEnded,
    QueryTimedOut,
    ResultTooLarge,
    SandboxRequired,
    SchemaError,
    UnsupportedQuery,
    UsageError,
)
from odfpy.federation.errors import AuthenticationFailed, SourceFailed
from odfpy.federation.relay.errors import (
    IncompleteAnswer,
    InvalidAnswer,
    RelayRefused,
    RelayUnavailable,
    TicketRefused,
)
from odfpy.serving.http.logs import log

_Call = TypeVar("_Call", bound=Callable[..., Any])
_MAX_LENGTH: Final = 1500
"""Maximum characters of a message: it is sent in several headers, and clients accept 8 KB of headers."""


class FlightSqlError(OdfError, code="E730"):
    """An invalid Flight SQL call."""


class WrongMessage(FlightSqlError, code="E731"):
    """Bytes are not a message of Flight SQL, or not a ticket or handle of this server."""


class UnknownStatement(FlightSqlError, code="E732"):
    """A prepared statement does not exist, or no longer exists."""


class ReadOnly(FlightSqlError, code="E733"):
    """A client tries to write. Datasets grow by ingestion and by transforms, not by SQL."""


class NotSupported(FlightSqlError, code="E734"):
    """The server does not support a call of Flight SQL: transactions, Substrait plans."""


class Unauthenticated(FlightSqlError, code="E735"):
    """A token or password is unknown."""


class TooBusy(FlightSqlError, code="E736"):
    """The server has reached its limit of running queries."""


class _Quiet(Exception):
    """An exception without a traceback: formatting one fails, because it reads the cause first."""

    @property
    def __cause__(self) -> NoReturn:  # type: ignore[override]
        raise RuntimeError


class InvalidArgument(_Quiet, ValueError):
    """Status `INVALID_ARGUMENT`."""


class NotThere(_Quiet, KeyError):
    """Status `NOT_FOUND`."""

    def __str__(self) -> str:
        return str(self.args[0])


class Unimplemented(_Quiet, NotImplementedError):
    """Status `UNIMPLEMENTED`."""


_STATUSES: Final[tuple[tuple[type[OdfError], Callable[[str], Exception]], ...]] = (
    (Unauthenticated, fl.FlightUnauthenticatedError),
    (AuthenticationFailed, fl.FlightUnauthenticatedError),
    (TicketRefused, fl.FlightUnauthorizedError),
    *((kind, fl.FlightUnauthorizedError) for kind in (RelayRefused, RelayUnavailable, InvalidAnswer)),
    (SourceFailed, fl.FlightUnavailableError),
    (IncompleteAnswer, fl.FlightUnavailableError),
    (TooBusy, fl.FlightUnavailableError),
    (SandboxRequired, fl.FlightUnauthorizedError),
    (EngineUnavailable, fl.FlightUnavailableError),
    (QueryCancelled, fl.FlightCancelledError),
    (QueryTimedOut, fl.FlightTimedOutError),
    (UnknownStatement, NotThere),
    (DatasetNotFound, NotThere),
    (ReadOnly, Unimplemented),
    (NotSupported, Unimplemented),
    (ObjectNotFound, fl.FlightInternalError),
    (NotFound, NotThere),
    *((kind, InvalidArgument) for kind in (FlightSqlError, InvalidQuery, UnsupportedQuery, ResultTooLarge, QueryEnded)),
    *((kind, InvalidArgument) for kind in (EngineNotFound, SchemaError, UsageError)),
)
"""The first match counts; all other errors are faults of the server."""


@contextmanager
def as_client_errors() -> Iterator[None]:
    """Translate errors, so that clients only see safe ones."""
    try:
        yield
    except (fl.FlightError, _Quiet, GeneratorExit, StopIteration):
        raise
    except BaseException as error:  # noqa: BLE001  also the interruptions of threads
        raise as_flight(error) from None


def guarded(call: _Call) -> _Call:
    """Decorate a call of a server, so that only safe errors leave it."""

    @wraps(call)
    def inner(*arguments: Any) -> Any:
        with as_client_errors():
            return call(*arguments)

    return inner  # type: ignore[return-value]


def as_flight(error: BaseException) -> Exception:
    """Return the client's view of an error; server errors are logged, and reported without details."""
    status, text = fl.FlightInternalError, "Internal error; the server's log has the details"
    if isinstance(error, OdfError):
        exact_status = next((flight_error for kind, flight_error in _STATUSES if isinstance(error, kind)), status)
        if type(error) is EngineError:  # the data does not match the query
            exact_status = InvalidArgument
        if exact_status is not status:
            status, text = exact_status, _sentence(error)
        else:
            log("failed", level=logging.ERROR, code=error.code, problem=error.message)
            text = f"{text} [{error.code}]"
    else:
        log("failed", level=logging.ERROR, error=error)
    translated: Exception = status(text)
    return translated


def _sentence(error: OdfError) -> str:
    """Return message and hint, as the command line shows them."""
    hint = f"\nhint: {error.hint}" if error.hint else ""
    text = f"{error.message} [{error.code}]{hint}"
    return text if len(text) <= _MAX_LENGTH else f"{text[:_MAX_LENGTH]}..."


def as_arrow(make: Callable[[], Any], what: str) -> Any:
    """Run a pyarrow function on a client's bytes.

    Raises:
        WrongMessage: pyarrow cannot parse them.
    """
    try:
        return make()
    except (pa.ArrowException, ValueError, TypeError, OSError, KeyError, EOFError) as error:
        raise WrongMessage(f"{what}: {error}") from error
