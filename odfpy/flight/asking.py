"""Calls to a location: with credentials, and errors as ours."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

import pyarrow as pa
import pyarrow.flight as fl

from odfpy.flight.errors import FlightFailed, FlightRefused
from odfpy.flight.pool import PooledClient

if TYPE_CHECKING:
    from odfpy.flight.service import FlightService

_Answer = TypeVar("_Answer")
FAILURES: Final = (pa.ArrowException, OSError, fl.FlightError)
"""What pyarrow raises when a call fails."""
REFUSED: Final = (fl.FlightUnauthenticatedError, fl.FlightUnauthorizedError)
"""What it raises when a server does not take the credentials."""
_WORDS_OF_GRPC: Final = re.compile(
    r"^Flight (?:error: )?returned \w+ error, with message: |^Flight returned .*?, with message: |"
    r"\.? ?(?:gRPC client debug context|Client context):.*$|\. Detail: .*$",
    re.DOTALL,
)
_HINTS: Final[tuple[tuple[type[Exception], str], ...]] = (
    (fl.FlightTimedOutError, "Give it more time (option arrow-flight.call-timeout)."),
    (fl.FlightUnavailableError, "Is it a Flight port, and does TLS match (grpc:// or grpc+tls://)?"),
)


@dataclass(frozen=True)
class Calls:
    """Calls of a service to one of its locations.

    Attributes:
        service: who asks.
        location: who is asked.
    """

    service: FlightService
    location: str

    def ask(self, question: Callable[[Any, Any], _Answer]) -> _Answer:
        """The answer to a question that takes no longer than it may; errors are ours.

        Args:
            question: takes pyarrow's client and the options of its calls.
        """
        try:
            with self.client() as client:
                return self.call(client, question, self.service.limits.call)
        except FAILURES as error:
            raise as_ours(error, self.location) from error

    def call(self, client: PooledClient, question: Callable[[Any, Any], _Answer], timeout: float | None) -> _Answer:
        """The answer to a question; errors are pyarrow's. It is asked again if a token has run out.

        Args:
            client: of the location.
            question: as of `ask`.
            timeout: seconds that the call may take, None for no end.
        """
        try:
            return question(client.client, self._options(client, timeout))
        except REFUSED:
            if not client.tokens.pop(self._key, None):
                raise
        return question(client.client, self._options(client, timeout))

    def client(self) -> AbstractContextManager[PooledClient]:
        """Return the connection, for a block."""
        return self.service.pool.client(self.location, self.service.tls)

    def _options(self, client: PooledClient, timeout: float | None) -> Any:
        headers = client.tokens.get(self._key)
        if headers is None:  # the first call, or the first one after a refusal
            headers = self.service.authenticator.headers(
                client.client, self.service.credentials, self.service.limits.call
            )
            client.tokens[self._key] = headers
        own = [(name.lower().encode(), value.encode()) for name, value in self.service.headers]
        return fl.FlightCallOptions(timeout=timeout, headers=[*headers, *self.service.commands.headers(), *own])

    @property
    def _key(self) -> Any:
        return self.service.authenticator, tuple(sorted(self.service.credentials.items()))


def as_ours(error: Exception, location: str) -> FlightFailed:
    """An error of pyarrow as ours.

    Args:
        error: what it has raised.
        location: of the server.
    """
    said = reason(error)
    if isinstance(error, REFUSED):
        return FlightRefused(
            f"{location} does not allow that: {said}",
            hint="Which authenticator does it want? (options arrow-flight.authenticator.name and flight.auth.*)",
        )
    hint = next((hint for kind, hint in _HINTS if isinstance(error, kind)), None)
    return FlightFailed(f"{location}: {said}", hint=hint)


def reason(error: BaseException) -> str:
    """Return what an error says, without the words of gRPC around it."""
    return _WORDS_OF_GRPC.sub("", str(error)).strip() or type(error).__name__
