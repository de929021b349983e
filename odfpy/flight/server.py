"""A Flight server, and calls to it: with credentials, timeouts, and translated errors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, TypeVar

import pyarrow.flight as fl

from odfpy.flight.authenticators import Authenticator, NoAuthentication
from odfpy.flight.commands.protocol import Commands
from odfpy.flight.commands.sql import FlightSql
from odfpy.flight.failures import FAILURES, REFUSED, as_ours
from odfpy.flight.locations import checked
from odfpy.flight.pool import SHARED, ClientPool, PooledClient
from odfpy.flight.tls import Tls

_Answer = TypeVar("_Answer")


@dataclass(frozen=True)
class Limits:
    """Limits on time and memory.

    Attributes:
        call: timeout of a call such as GetFlightInfo, in seconds.
        patience: seconds without data after which the next location is tried.
        rounds: how often all locations of an endpoint are tried.
        held_bytes: bytes of an endpoint that are buffered before the first row is passed on. Until then, an endpoint
            that fails can be restarted.
        at_once: number of endpoints that `read` reads concurrently.
    """

    call: float = 60.0
    patience: float = 60.0
    rounds: int = 2
    held_bytes: int = 16 << 20
    at_once: int = 8


@dataclass(frozen=True)
class Server:
    """A server, and how to call it. Thread-safe; connections are not pickled.

    Attributes:
        location: the server's URI.
        commands: encoding of requests.
        authenticator: authentication method.
        tls: TLS options.
        limits: limits on time and memory.
        headers: headers of every call.
        credentials: credentials of the query's user; take precedence over those of the authenticator.
        pool: pool of connections.
    """

    location: str
    commands: Commands = field(default_factory=FlightSql)
    authenticator: Authenticator = field(default_factory=NoAuthentication)
    tls: Tls = field(default_factory=Tls)
    limits: Limits = field(default_factory=Limits)
    headers: tuple[tuple[str, str], ...] = ()
    credentials: Mapping[str, str] = field(default_factory=dict, repr=False)
    pool: ClientPool = field(default=SHARED, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "location", checked(self.location))

    def __getstate__(self) -> dict[str, Any]:
        """Drop the connections: in another process, the server uses the shared pool there."""
        return {name: value for name, value in self.__dict__.items() if name != "pool"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, pool=SHARED)

    def ask(self, question: Callable[[Any, Any], _Answer]) -> _Answer:
        """Make a call within the time limit.

        Args:
            question: takes pyarrow's client and call options; called again if a token has expired.

        Raises:
            FlightFailed, FlightRefused: the server does not respond, or rejects the call; the message has the reason.
        """
        try:
            with self.client() as client:
                return self.call(client, question, self.limits.call)
        except FAILURES as error:
            raise as_ours(error, self.location) from error

    def client(self, location: str | None = None) -> AbstractContextManager[PooledClient]:
        """Borrow a connection; a context manager.

        Args:
            location: a location other than the server's.
        """
        return self.pool.client(location or self.location, self.tls)

    def call(self, client: PooledClient, question: Callable[[Any, Any], _Answer], timeout: float | None) -> _Answer:
        """Make a call over a connection; raises pyarrow's errors.

        Args:
            client: client of a location.
            question: as in `ask`.
            timeout: timeout of the call in seconds, None for none.
        """
        try:
            return question(client.client, self._options(client, timeout))
        except REFUSED:
            if not client.tokens.pop(self._asker, None):
                raise
        return question(client.client, self._options(client, timeout))

    def _options(self, client: PooledClient, timeout: float | None) -> Any:
        headers = client.tokens.get(self._asker)
        if headers is None:  # the first call, or the first one after a rejection
            headers = self.authenticator.headers(client.client, self.credentials, self.limits.call)
            client.tokens[self._asker] = headers
        own = [(name.lower().encode(), value.encode()) for name, value in self.headers]
        return fl.FlightCallOptions(timeout=timeout, headers=[*headers, *self.commands.headers(), *own])

    @property
    def _asker(self) -> Any:
        return self.authenticator, tuple(sorted(self.credentials.items()))
