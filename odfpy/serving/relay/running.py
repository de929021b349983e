"""Assembly of the relay server of a workspace."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from odfpy.federation.relay.flight import Connections, FlightPeers
from odfpy.federation.relay.reading import SourceReader
from odfpy.federation.relay.relay import Relay
from odfpy.federation.relay.requesters import Authorities, Credentials, Identity
from odfpy.federation.relay.result_store import ResultStore
from odfpy.federation.relay.results import ResultMaker
from odfpy.federation.relay.rows import TicketReader
from odfpy.federation.relay.statements import RowsSigner
from odfpy.federation.relay.stored_catalog import StoredCatalog
from odfpy.federation.relay.tickets import Tickets
from odfpy.federation.sources.contract import ReadLimits
from odfpy.federation.sources.opening import SourceContext
from odfpy.serving.http.listen_address import ListenAddress
from odfpy.serving.http.tls import Tls, check_certificate
from odfpy.serving.relay.results import ResultCalls
from odfpy.serving.relay.server import RelayServer
from odfpy.settings.sections import RelaySection

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
    """Run the server of a relay while the `with` block runs.

    Args:
        workspace: the workspace, whose datasets it may read.
        identity: identity of the relay.
        store: state of the relay.
        settings: limits and timeouts.
        host: host name or address to listen on.
        port: port to listen on; 0 for any free port.
        public: `HOST:PORT` by which others reach it; by default the listening address.

    Raises:
        InvalidCertificate, CannotServe: its certificate is unusable.
        OSError: it cannot listen on that address.
    """
    tls = Tls(identity.certificate, identity.key, identity.authorities)
    check_certificate(tls)
    credentials = Credentials.load(identity.certificate, identity.key)
    trusted = identity.authorities.read_bytes()
    catalog = StoredCatalog(store)
    # Servers of one relay share the key, and so can open each other's tickets.
    key = hashlib.sha256(b"tickets\0" + credentials.key).digest()
    tickets = Tickets(key, is_first=catalog.redeem)
    context = SourceContext(workspace.queries.service, workspace.odf, settings.query_memory)
    sources = SourceReader(catalog, context, ReadLimits(seconds=settings.flight_timeout))
    with ExitStack() as stack:
        stack.callback(sources.close)
        connections = Connections(credentials, trusted)
        stack.callback(connections.close)
        reader = TicketReader(tickets, sources, connections, RowsSigner(identity.name, credentials))
        maker = _result_maker(workspace, store, settings, reader)
        stack.callback(maker.close)
        server = RelayServer(
            _relay_maker(identity, catalog, tickets, connections, credentials, trusted),
            catalog,
            reader,
            ResultCalls(maker, store.results, tickets, workspace.config.section(RelaySection).result_lifetime),
            ListenAddress(host, port, tls),
            settings,
            public=public,
        )
        stack.callback(server.shutdown)
        maker.resume()
        yield server


def _relay_maker(
    identity: RelayIdentity,
    catalog: StoredCatalog,
    tickets: Tickets,
    connections: Connections,
    credentials: Credentials,
    trusted: bytes,
) -> Callable[[str], Relay]:
    """Return a factory of the relay, called once the location of its server is known."""
    authorities = Authorities(trusted, is_revoked=catalog.is_revoked)

    def location_of(peer: str) -> str | None:
        known_peer = catalog.web.peers.get(peer)
        return None if known_peer is None or catalog.is_shut_out(known_peer) else known_peer.flight_endpoint

    def vouch(who: Identity, query: str, seconds: float) -> str:
        return credentials.token(query, seconds=seconds, on_behalf_of=who.certificate)

    def made(location: str) -> Relay:
        return Relay(
            identity.name,
            credentials.fingerprint,
            location,
            catalog,
            tickets,
            FlightPeers(connections, location_of),
            identify=authorities.requester,
            vouch=vouch,
        )

    return made


def _result_maker(
    workspace: Workspace,
    store: WebStore,
    settings: ServeSettings,
    reader: TicketReader,
) -> ResultMaker:
    """Return the maker of deferred results."""
    section = workspace.config.section(RelaySection)
    folder = workspace.odf / "relay"
    return ResultMaker(
        store.results,
        reader,
        ResultStore(section.results or str(folder / "results")),
        work=folder / "work",
        lifetime=section.result_lifetime,
        seconds=settings.flight_timeout,
        largest=section.max_result,
    )
