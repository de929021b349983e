"""A Flight server, and calls to it: with credentials, within limits of time, and with errors of ours."""

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
    """Limits of patience and of memory.

    Attributes:
        call: seconds that a question may take, such as GetFlightInfo.
        patience: seconds that a stream of rows may be silent before the next location is tried.
        rounds: how often all locations of an endpoint are tried.
        held_bytes: bytes of an endpoint that are held back before the first row is handed over. As long as nothing is
            handed over, an endpoint that fails can begin again.
        at_once: endpoints that `read` asks at the same time.
    """

    call: float = 60.0
    patience: float = 60.0
    rounds: int = 2
    held_bytes: int = 16 << 20
    at_once: int = 8


@dataclass(frozen=True)
class Server:
    """A server, and how it is spoken to. Thread-safe; pickled, it leaves its connections behind.

    Attributes:
        location: the server's URI.
        commands: its words.
        authenticator: who asks.
        tls: certificates.
        limits: of patience and memory.
        headers: that every call has.
        credentials: of the user who asks; they come before those of the authenticator.
        pool: where connections are kept.
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
        """Leave the connections here: who gets the server elsewhere has the shared pool there."""
        return {name: value for name, value in self.__dict__.items() if name != "pool"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, pool=SHARED)

    def ask(self, question: Callable[[Any, Any], _Answer]) -> _Answer:
        """Ask something that takes no longer than it may.

        Args:
            question: takes pyarrow's client and the options of its calls; asked again if a token has run out.

        Raises:
            FlightFailed, FlightRefused: the server does not answer; the message has its reason.
        """
        try:
            with self.client() as client:
                return self.call(client, question, self.limits.call)
        except FAILURES as error:
            raise as_ours(error, self.location) from error

    def client(self, location: str | None = None) -> AbstractContextManager[PooledClient]:
        """Return a connection, for a block.

        Args:
            location: another one than that of the server.
        """
        return self.pool.client(location or self.location, self.tls)

    def call(self, client: PooledClient, question: Callable[[Any, Any], _Answer], timeout: float | None) -> _Answer:
        """Ask something over a connection; errors are pyarrow's.

        Args:
            client: of some location.
            question: as of `ask`.
            timeout: seconds that the call may take, None for no end.
        """
        try:
            return question(client.client, self._options(client, timeout))
        except REFUSED:
            if not client.tokens.pop(self._asker, None):
                raise
        return question(client.client, self._options(client, timeout))

    def _options(self, client: PooledClient, timeout: float | None) -> Any:
        headers = client.tokens.get(self._asker)
        if headers is None:  # the first call, or the first one after a refusal
            headers = self.authenticator.headers(client.client, self.credentials, self.limits.call)
            client.tokens[self._asker] = headers
        own = [(name.lower().encode(), value.encode()) for name, value in self.headers]
        return fl.FlightCallOptions(timeout=timeout, headers=[*headers, *self.commands.headers(), *own])

    @property
    def _asker(self) -> Any:
        return self.authenticator, tuple(sorted(self.credentials.items()))
