"""The server of the relay of a workspace, put together."""

from __future__ import annotations

import hashlib
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from odfpy.federation.relay.flight import Connections, FlightPeers
from odfpy.federation.relay.reading import SourceReader
from odfpy.federation.relay.relay import Relay
from odfpy.federation.relay.requesters import Authorities, Credentials
from odfpy.federation.relay.stored import StoredKnowledge
from odfpy.federation.relay.tickets import Tickets
from odfpy.federation.sources.contract import ReadLimits
from odfpy.federation.sources.opened import SourceContext
from odfpy.serving.http.tls import Tls, check_certificate
from odfpy.serving.relay.server import RelayServer

if TYPE_CHECKING:
    from odfpy.coordinator.workspace import Workspace
    from odfpy.federation.identity import RelayIdentity
    from odfpy.federation.store.store import WebStore
    from odfpy.serving.settings import ServeSettings


@contextmanager
def relay_server(
    workspace: Workspace,
    identity: RelayIdentity,
    store: WebStore,
    settings: ServeSettings,
    *,
    host: str,
    port: int,
    public: str | None = None,
) -> Iterator[RelayServer]:
    """The server of a relay, which answers as long as the block lasts.

    Args:
        workspace: whose datasets it may read.
        identity: who it is.
        store: what it knows.
        settings: limits and times.
        host: name or address to listen at.
        port: port to listen at; 0 for any that is free.
        public: `HOST:PORT` by which others reach it; as it listens by default.

    Raises:
        InvalidCertificate, CannotServe: its certificate is of no use.
        OSError: it cannot listen there.
    """
    tls = Tls(identity.certificate, identity.key, identity.authorities)
    check_certificate(tls)
    credentials = Credentials.load(identity.certificate, identity.key)
    trusted = identity.authorities.read_bytes()
    knowledge = StoredKnowledge(store)
    authorities = Authorities(trusted, is_revoked=knowledge.is_revoked)
    # Servers of one relay have one key, and so open each other's tickets.
    key = hashlib.sha256(b"tickets\0" + credentials.key).digest()
    tickets = Tickets(key, is_first=knowledge.is_first)
    context = SourceContext(workspace.queries.service, workspace.odf, settings.query_memory)
    reader = SourceReader(knowledge, context, ReadLimits(seconds=settings.flight_timeout))
    with ExitStack() as stack:
        stack.callback(reader.close)
        connections = Connections(credentials, trusted)
        stack.callback(connections.close)

        def location_of(peer: str) -> str | None:
            found = knowledge.web.peers.get(peer)
            return None if found is None or knowledge.is_shut_out(found) else found.flight_endpoint

        def made(location: str) -> Relay:
            return Relay(
                identity.name,
                credentials.fingerprint,
                location,
                knowledge,
                tickets,
                FlightPeers(connections, location_of),
                identify=authorities.requester,
                vouch=lambda who, query, seconds: credentials.token(
                    query, seconds=seconds, on_behalf_of=who.certificate
                ),
            )

        server = RelayServer(
            made,
            knowledge,
            reader,
            tickets,
            connections,
            host=host,
            port=port,
            tls=tls,
            settings=settings,
            public=public,
        )
        stack.callback(server.shutdown)
        yield server


def wait_for_the_end(tell: Callable[[], object]) -> None:
    """Wait until somebody wants the server to end: Ctrl-C, or SIGTERM.

    Args:
        tell: is called when it has come to that.
    """
    over = threading.Event()
    before = {number: signal.signal(number, lambda *_: over.set()) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        over.wait()
        tell()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
