"""The web as one database: SQL over the entities of a relay, executed on all relays that have rows of them.

with connect("grpc+tls://na.example.com:50051", "ann.pem", "ann.key", "ca.pem") as web:
    with web.sql("SELECT returnflag, sum(quantity) AS q FROM lineitem GROUP BY returnflag") as answer:
        answer.missing, answer.to_arrow()

The query is split on this machine: its fragments travel to the relays, and DataFusion combines their results here.
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
    """Connect to a web through one of its relays.

    Args:
        relay: location of the relay: `grpc+tls://HOST:PORT`.
        certificate: PEM file of the user's certificate.
        key: PEM file of its key.
        authorities: PEM file of the authorities that relays' certificates must be issued by.

    Raises:
        InvalidCertificate: a file cannot be read, or certificate and key do not match.
    """
    credentials = Credentials.load(Path(certificate), Path(key))
    return Web(relay, credentials, _read(authorities))


class Web:
    """A connection to a web, through one of its relays: runs queries and stores their answers. Thread-safe.

    Attributes:
        relay: location of the relay that is queried.
        credentials: credentials of the caller.
        authorities: certificates in PEM form; those of the relays must be issued by one of them.
        asker: the user, as a client of relays.
        later: the user's deferred queries, whose rows are fetched later.
    """

    def __init__(self, relay: str, credentials: Credentials, authorities: bytes) -> None:
        """
        Args:
            relay: location of the relay that is queried.
            credentials: credentials of the caller.
            authorities: certificates in PEM form; those of the relays must be issued by one of them.

        Raises:
            UsageError: the location is not that of a relay.
        """
        if not LOCATION.fullmatch(relay):
            raise UsageError(f"Not the URL of a relay: {relay}", hint="Write grpc+tls://HOST:PORT.")
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
        """Return the entities of the relay, by name.

        Args:
            seconds: maximum time to wait.

        Raises:
            RelayUnavailable: the relay does not respond.
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
        """Run a query, or explain it with `EXPLAIN SELECT ...` or `EXPLAIN ANALYZE SELECT ...`.

        Args:
            query: a query in DataFusion's SQL over the entities.
            require_complete: whether the missing rows of any relay are an error.
            seconds: time limit for the whole operation.
            memory: bytes that assembling the answer may use.
            received: maximum bytes of Arrow data from all relays together; a relay that sends too much counts as
                missing.
            single_use: whether each ticket can be redeemed only once.
            signed: whether relays sign what they return, so that the answer can be stored as evidence.
            control: lets another thread cancel the query; the relays are notified of that.

        Raises:
            InvalidQuery: the query is invalid.
            RelayUnavailable: the relay does not respond.
            IncompleteAnswer: a relay is missing, and the answer must be complete.
            QueryCancelled, QueryTimedOut: the query was stopped.
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
        """Run a query, and store the answer as a dataset together with the relays' signatures.

        Args:
            query: a query in DataFusion's SQL over the entities.
            workspace: the target workspace.
            name: name of the new dataset.
            options: bounds; relays sign in any case.

        Raises:
            AlreadyExists, UsageError: the name is taken, or a column cannot be in a dataset; no relay was queried.
            OdfError: whatever `sql` and `keep` raise.
        """
        from odfpy.federation.evidence.storing import check_columns

        self.check_free(workspace, name)
        if without_explain(query)[1] is not None:
            raise UsageError("The result of EXPLAIN cannot be stored", hint="Run the query without EXPLAIN.")
        wanted = replace(options, signed=True)
        with execute(self.asker, query, wanted, check=check_columns) as answer:
            return self.keep(answer, workspace, name, wanted)

    @staticmethod
    def check_free(workspace: Workspace, name: str) -> None:
        """Check that an answer can be stored under a name, before anything is queried or fetched.

        Args:
            workspace: the workspace that stores the answer.
            name: name of its dataset.

        Raises:
            AlreadyExists: the name is taken.
            InvalidValue: it is not a valid dataset name.
        """
        from odfpy.federation.evidence.answer_datasets import AnswerDatasets

        AnswerDatasets(workspace, name).check()

    def keep(
        self,
        answer: WebAnswer,
        workspace: Workspace,
        name: str,
        options: QueryOptions = DEFAULTS,
    ) -> Verification:
        """Store an answer as a dataset, with the relays' signatures; it is verified immediately.

        Args:
            answer: answer to a query with signatures; may be deferred.
            workspace: the workspace that stores it.
            name: name of the new dataset.
            options: whether the answer must be complete, and the memory limit for combining it.

        Raises:
            AlreadyExists: the name is taken.
            UsageError: the answer is not signed, or has columns that no dataset can have.
            IncompleteAnswer: a relay is missing, and the answer must be complete.
            AnswerNotKept: the stored answer does not pass verification.
            OdfError: the datasets cannot be written; all of them are removed.
        """
        from odfpy.federation.evidence.storing import store_answer

        return store_answer(
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
    """Verify a stored answer: offline, from its datasets alone.

    Args:
        workspace: the workspace that it is in.
        name: name or id of its dataset.
        authorities: PEM file of the authorities that issued the certificates of the relays and of the requester.
        control: lets another thread cancel it.

    Raises:
        InvalidCertificate: the file cannot be read.
        DatasetNotFound: there is no such dataset.
        UsageError: the dataset is not an answer of a web.
    """
    from odfpy.federation.evidence.verifying import verify as verify_answer

    return verify_answer(workspace, name, Authorities(_read(authorities)), control=control)


def _read(authorities: str | Path) -> bytes:
    try:
        return Path(authorities).read_bytes()
    except OSError as error:
        raise InvalidCertificate(f"Cannot read {authorities}: {error.strerror}") from error
