"""The web as one database: SQL over the entities of a relay, answered by all relays that have rows of them.

with connect("grpc+tls://na.example.com:50051", "ann.pem", "ann.key", "ca.pem") as web:
    with web.sql("SELECT returnflag, sum(quantity) AS q FROM lineitem GROUP BY returnflag") as answer:
        answer.missing, answer.to_arrow()

The query is split here: its fragments travel, and what they bring is put together by DataFusion on this machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, suppress
from pathlib import Path

import pyarrow as pa
from typing_extensions import Self

from odfpy.engine.control import Control
from odfpy.errors import OdfError, UsageError
from odfpy.federation.asking.answer import WebAnswer
from odfpy.federation.asking.asker import Asker, PartRows
from odfpy.federation.asking.asking import AT_ONCE, answered
from odfpy.federation.asking.options import LARGEST, MEMORY, SECONDS, AskOptions
from odfpy.federation.errors import InvalidCertificate
from odfpy.federation.relay.errors import RelayUnavailable
from odfpy.federation.relay.flight import LOCATION, Connections
from odfpy.federation.relay.question import Answer, Cancellation, Part, Question, Wants
from odfpy.federation.relay.requesters import Credentials
from odfpy.federation.sql.fragment import Fragment


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


class User(Asker):
    """A user who asks a relay over Flight, known to all others by a token of their own signing."""

    def __init__(self, relay: str, credentials: Credentials, connections: Connections) -> None:
        """
        Args:
            relay: where it is.
            credentials: of the user.
            connections: of the user.
        """
        self._relay = relay
        self._credentials = credentials
        self._connections = connections

    def entities(self, seconds: float) -> Mapping[str, pa.Schema]:
        """The entities of the relay, by name.

        Args:
            seconds: to wait.

        Raises:
            RelayUnavailable: it does not answer.
        """
        return self._connections.entities(self._relay, seconds)

    def ask(self, query: str, fragments: Mapping[str, Fragment], wants: Wants, seconds: float) -> Mapping[str, Answer]:
        """The answers of the relay to the fragments of a query, which are asked at the same time.

        Args:
            query: its id.
            fragments: by name.
            wants: what is wished for beside the rows.
            seconds: to wait.

        Raises:
            RelayUnavailable, InvalidAnswer, OdfError: it does not answer, or refuses.
        """
        token = self._credentials.token(query, seconds=seconds)

        def ask(item: tuple[str, Fragment]) -> Answer:
            name, fragment = item
            question = Question(f"{query} {name}", fragment, seconds=seconds, requester=token, wants=wants)
            return self._connections.ask(self._relay, question)

        with ThreadPoolExecutor(min(AT_ONCE, len(fragments))) as threads:
            try:
                return dict(zip(fragments, threads.map(ask, fragments.items()), strict=True))
            except RelayUnavailable:
                raise  # there is nobody to tell
            except BaseException:
                self.cancel(query)  # or the threads would be waited for
                raise

    def rows(self, part: Part, seconds: float) -> AbstractContextManager[PartRows]:
        """The rows of a part, read where they are.

        Args:
            part: what is read.
            seconds: for all of it.

        Raises:
            RelayUnavailable, OdfError: the relay is not there, or refuses.
        """
        return self._connections.rows(part, seconds)

    def cancel(self, query: str) -> None:
        """Have the relay tell all others that a query is not wanted any more.

        Args:
            query: its id.
        """
        with suppress(OdfError):
            self._connections.cancel(self._relay, Cancellation(query))


class Web:
    """A web, as one relay of it shows it. For all threads.

    Attributes:
        relay: where it is asked.
        credentials: of whoever asks.
        authorities: certificates in PEM form, of which those of the relays must be.
        asker: the way to the relays.
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
        largest: int = LARGEST,
        single_use: bool = False,
        control: Control | None = None,
    ) -> WebAnswer:
        """Ask a query, or have one explained: `EXPLAIN SELECT ...`, `EXPLAIN ANALYZE SELECT ...`.

        Args:
            query: SQL of DataFusion over the entities.
            require_complete: whether an answer without the rows of a relay is an error.
            seconds: for all of it.
            memory: bytes that putting the answer together may take.
            largest: bytes of Arrow data that all parts together may have.
            single_use: whether tickets are to be good for one reading.
            control: stops it from elsewhere; then the relays are told.

        Raises:
            InvalidQuery: the query is none.
            RelayUnavailable: the relay does not answer.
            IncompleteAnswer: a relay is missing, and that is not wanted.
            QueryCancelled, QueryTimedOut: it was stopped.
        """
        options = AskOptions(require_complete, seconds, memory, largest, single_use)
        return answered(self.asker, query, options, control)
