"""Translation of pyarrow's errors."""

from __future__ import annotations

import re
from typing import Final

import pyarrow as pa
import pyarrow.flight as fl

from odfpy.flight.errors import FlightFailed, FlightRefused

FAILURES: Final = (pa.ArrowException, OSError, fl.FlightError)
"""Exceptions that pyarrow raises when a call fails."""
REFUSED: Final = (fl.FlightUnauthenticatedError, fl.FlightUnauthorizedError)
"""Exceptions that pyarrow raises when a server rejects the credentials."""
_WORDS_OF_GRPC: Final = re.compile(
    r"^Flight (?:error: )?returned \w+ error, with message: |^Flight returned .*?, with message: |"
    r"\.? ?(?:gRPC client debug context|Client context):.*$|\. Detail: .*$",
    re.DOTALL,
)
_HINTS: Final[tuple[tuple[type[Exception], str], ...]] = (
    (fl.FlightTimedOutError, "Increase the time limit (option arrow-flight.call-timeout)."),
    (fl.FlightUnavailableError, "Check that it is a Flight port, and that TLS matches (grpc:// or grpc+tls://)."),
)


def as_ours(error: Exception, location: str) -> FlightFailed:
    """Translate an error of pyarrow.

    Args:
        error: the error.
        location: location of the server.
    """
    message = reason(error)
    if isinstance(error, REFUSED):
        return FlightRefused(
            f"{location} does not allow that: {message}",
            hint="Choose another authenticator (options arrow-flight.authenticator.name and flight.auth.*)",
        )
    hint = next((hint for kind, hint in _HINTS if isinstance(error, kind)), None)
    return FlightFailed(f"{location}: {message}", hint=hint)


def reason(error: BaseException) -> str:
    """Return the message of an error, without gRPC's additions."""
    return _WORDS_OF_GRPC.sub("", str(error)).strip() or type(error).__name__
