"""The web as one database: SQL over the entities of a relay, answered by all relays that have rows of them.

with connect("grpc+tls://na.example.com:50051", "ann.pem", "ann.key", "ca.pem") as web:
    with web.sql("SELECT returnflag, sum(quantity) AS q FROM lineitem GROUP BY returnflag") as answer:
        answer.missing, answer.to_arrow()

The query is split here: its fragments travel, and what they bring is put together by DataFusion on this machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from typing_extensions import Self

from odfpy.engine.cancellation import CancellationToken
from odfpy.errors import UsageError
from odfpy.federation.errors import InvalidCertificate
from odfpy.federation.execution.answer import WebAnswer
from odfpy.federation.execution.deferred import DeferredQueries
from odfpy.federation.execution.execute import execute
from odfpy.federation.execution.explain import without_explain
from odfpy.federation.execution.options import DEFAULTS, MEMORY, SECONDS, QueryOptions
from odfpy.federation.execution.user import User
from odfpy.federation.relay.bounds import RECEIVED
from odfpy.federation.relay.flight import LOCATION, Connections
from odfpy.federation.relay.requesters import Authorities, Credentials

if TYPE_CHECKING:
    from odfpy.coordinator.workspace import Workspace
    from odfpy.federation.evidence.verifying import Verification


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
    return Web(relay, credentials, _read(authorities))


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
        self.later = DeferredQueries(self.asker)

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
        signed: bool = False,
        control: CancellationToken | None = None,
    ) -> WebAnswer:
        """Ask a query, or have one explained: `EXPLAIN SELECT ...`, `EXPLAIN ANALYZE SELECT ...`.

        Args:
            query: SQL of DataFusion over the entities.
            require_complete: whether an answer without the rows of a relay is an error.
            seconds: for all of it.
            memory: bytes that putting the answer together may take.
            received: bytes of Arrow data that all relays together may send; one that sends more is missing.
            single_use: whether tickets are to be good for one reading.
            signed: whether relays are to sign what they give, so that the answer can be kept.
            control: stops it from elsewhere; then the relays are told.

        Raises:
            InvalidQuery: the query is invalid.
            RelayUnavailable: the relay does not answer.
            IncompleteAnswer: a relay is missing, and that is not wanted.
            QueryCancelled, QueryTimedOut: it was stopped.
        """
        options = QueryOptions(require_complete, seconds, memory, received, single_use, signed)
        return execute(self.asker, query, options, control)

    def sql_into(
        self,
        query: str,
        workspace: Workspace,
        name: str,
        options: QueryOptions = DEFAULTS,
    ) -> Verification:
        """Ask a query, and keep the answer as a dataset, with what the relays have signed.

        Args:
            query: SQL of DataFusion over the entities.
            workspace: where the answer goes.
            name: of its dataset.
            options: bounds; relays sign in any case.

        Raises:
            AlreadyExists, UsageError: the name is taken, or a column cannot be one of a dataset; nobody was asked.
            OdfError: what `sql` and `keep` raise.
        """
        from odfpy.federation.evidence.keeping import check_columns

        self.check_free(workspace, name)
        if without_explain(query)[1] is not None:
            raise UsageError("An explanation cannot be kept", hint="Ask the query itself.")
        wanted = replace(options, signed=True)
        with execute(self.asker, query, wanted, check=check_columns) as answer:
            return self.keep(answer, workspace, name, wanted)

    @staticmethod
    def check_free(workspace: Workspace, name: str) -> None:
        """Check that an answer can be kept under a name, before anything is asked or fetched.

        Args:
            workspace: where it is to go.
            name: of its dataset.

        Raises:
            AlreadyExists: the name is taken.
            InvalidValue: it is not a name of a dataset.
        """
        from odfpy.federation.evidence.place import AnswerPlace

        AnswerPlace(workspace, name).check()

    def keep(
        self,
        answer: WebAnswer,
        workspace: Workspace,
        name: str,
        options: QueryOptions = DEFAULTS,
    ) -> Verification:
        """Keep an answer as a dataset, with what the relays have signed; it is verified at once.

        Args:
            answer: to a query that was asked with signatures, now or to be fetched later.
            workspace: where it goes.
            name: of its dataset.
            options: whether it must be complete, and the memory that putting it together may take.

        Raises:
            AlreadyExists: the name is taken.
            UsageError: the answer is not signed, or has columns that no dataset can have.
            IncompleteAnswer: a relay is missing, and that is not wanted.
            AnswerNotKept: it cannot be verified afterwards.
            OdfError: the datasets cannot be written; nothing of them stays.
        """
        from odfpy.federation.evidence.keeping import keep

        return keep(
            answer,
            workspace,
            name,
            self.credentials,
            Authorities(self.authorities),
            require_complete=options.require_complete,
            memory=options.memory,
        )


def verify(
    workspace: Workspace, name: str, authorities: str | Path, *, control: CancellationToken | None = None
) -> Verification:
    """Verify an answer that was kept: offline, from its datasets alone.

    Args:
        workspace: that it is in.
        name: name or id of its dataset.
        authorities: PEM file of the authorities of the relays, and of whoever has asked.
        control: stops it from elsewhere.

    Raises:
        InvalidCertificate: the file cannot be read.
        DatasetNotFound: there is no such dataset.
        UsageError: it is not an answer of a web.
    """
    from odfpy.federation.evidence.verifying import verify as verify_answer

    return verify_answer(workspace, name, Authorities(_read(authorities)), control=control)


def _read(authorities: str | Path) -> bytes:
    try:
        return Path(authorities).read_bytes()
    except OSError as error:
        raise InvalidCertificate(f"Cannot read {authorities}: {error.strerror}") from error
