"""The web as one database: SQL over the entities of a relay, answered by all relays that have rows of them.

with connect("grpc+tls://na.example.com:50051", "ann.pem", "ann.key", "ca.pem") as web:
    with web.sql("SELECT returnflag, sum(quantity) AS q FROM lineitem GROUP BY returnflag") as answer:
        answer.missing, answer.to_arrow()

The query is split here: its fragments travel, and what they bring is put together by DataFusion on this machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
from typing_extensions import Self

from odfpy.engine.control import Control
from odfpy.errors import UsageError
from odfpy.federation.asking.answer import WebAnswer
from odfpy.federation.asking.asking import answered
from odfpy.federation.asking.later import LaterQueries
from odfpy.federation.asking.options import MEMORY, SECONDS, AskOptions
from odfpy.federation.asking.user import User
from odfpy.federation.errors import InvalidCertificate
from odfpy.federation.relay.bounds import RECEIVED
from odfpy.federation.relay.flight import LOCATION, Connections
from odfpy.federation.relay.requesters import Credentials


def connect(relay: str, certificate: str | Path, key: str | Path, authorities: str | Path) -> Web:
    """A connection to a web, by one of its relays.

    Args:
        relay: where it is: `grpc+tls://HOST:PORT`.
        certificate: PEM file of one's certificate.
        key: PEM file of its key.
        authorities: PEM file of the authorities of the relays.

    Raises:
        InvalidCertificate: a file cannot be read, or they do not go together.
    """
    credentials = Credentials.load(Path(certificate), Path(key))
    try:
        trusted = Path(authorities).read_bytes()
    except OSError as error:
        raise InvalidCertificate(f"Cannot read {authorities}: {error.strerror}") from error
    return Web(relay, credentials, trusted)


class Web:
    """A web, as one relay of it shows it. For all threads.

    Attributes:
        relay: where it is asked.
        credentials: of whoever asks.
        authorities: certificates in PEM form, of which those of the relays must be.
        asker: the user.
        later: the user's queries that are fetched later.
    """

    def __init__(self, relay: str, credentials: Credentials, authorities: bytes) -> None:
        """
        Args:
            relay: where it is asked.
            credentials: of whoever asks.
            authorities: certificates in PEM form, of which those of the relays must be.

        Raises:
            UsageError: no relay can be there.
        """
        if not LOCATION.fullmatch(relay):
            raise UsageError(f"Not the place of a relay: {relay}", hint="Write grpc+tls://HOST:PORT.")
        self.relay = relay
        self.credentials = credentials
        self.authorities = authorities
        self._connections = Connections(credentials, authorities)
        self.asker = User(relay, credentials, self._connections)
        self.later = LaterQueries(self.asker)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections."""
        self._connections.close()

    def entities(self, *, seconds: float = SECONDS) -> Mapping[str, pa.Schema]:
        """The entities of the relay, by name.

        Args:
            seconds: to wait.

        Raises:
            RelayUnavailable: it does not answer.
        """
        return self.asker.entities(seconds)

    def sql(
        self,
        query: str,
        *,
        require_complete: bool = False,
        seconds: float = SECONDS,
        memory: int = MEMORY,
        received: int = RECEIVED,
        single_use: bool = False,
        control: Control | None = None,
    ) -> WebAnswer:
        """Ask a query, or have one explained: `EXPLAIN SELECT ...`, `EXPLAIN ANALYZE SELECT ...`.

        Args:
            query: SQL of DataFusion over the entities.
            require_complete: whether an answer without the rows of a relay is an error.
            seconds: for all of it.
            memory: bytes that putting the answer together may take.
            received: bytes of Arrow data that all relays together may send; one that sends more is missing.
            single_use: whether tickets are to be good for one reading.
            control: stops it from elsewhere; then the relays are told.

        Raises:
            InvalidQuery: the query is none.
            RelayUnavailable: the relay does not answer.
            IncompleteAnswer: a relay is missing, and that is not wanted.
            QueryCancelled, QueryTimedOut: it was stopped.
        """
        options = AskOptions(require_complete, seconds, memory, received, single_use)
        return answered(self.asker, query, options, control)
