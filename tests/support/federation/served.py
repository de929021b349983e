"""Relays of a test over real sockets with mTLS, each with a workspace and one CSV file of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from odfpy.coordinator.workspace import Workspace
from odfpy.federation.applying import prepare
from odfpy.federation.authority import Authority, Issued
from odfpy.federation.client import Web
from odfpy.federation.identity import RelayIdentity
from odfpy.federation.relay.requesters import Credentials
from odfpy.federation.store.store import WebStore
from odfpy.serving.relay.running import relay_server
from odfpy.serving.relay.server import RelayServer
from odfpy.serving.settings import ServeSettings

HOST = "localhost"
DOCUMENTS = """
apiVersion: odf/web/v1
kind: Entity
spec:
  name: item
  information:
    - {{name: id, arrow_dtype: Int64}}
    - {{name: {price}, arrow_dtype: Float64}}
    - {{name: flag, arrow_dtype: Utf8}}
---
apiVersion: odf/web/v1
kind: LocalData
spec:
  name: files
  connection: {{kind: files, tables: {{items: {{location: items.csv, format: csv}}}}}}
  data_sources:
    - name: items
      source_sql: items
      fields: [{{name: id}}, {{name: {price}}}, {{name: flag}}]
      default_permission: {default}
---
apiVersion: odf/web/v1
kind: LocalMapping
spec:
  entity: item
  mappings:
    - data: files
      source: items
      fields:
        - {{field: id, information: id}}
        - {{field: {price}, information: {price}}}
        - {{field: flag, information: flag}}
"""
PEER = """
apiVersion: odf/web/v1
kind: PeerRelay
spec: {{name: {name}, flight_endpoint: "{location}", certificates: [{certificate}]}}
---
apiVersion: odf/web/v1
kind: RemoteMapping
spec:
  entity: item
  relay: {name}
  remote_entity: item
  information:
    - {{information: id, remote: id}}
    - {{information: {price}, remote: {remote}, transformation: "{transformation}"}}
    - {{information: flag, remote: flag}}
"""
WHO = """
apiVersion: odf/web/v1
kind: {kind}
spec:
  name: {name}
  certificates: [{certificate}]
  {more}
  permissions: [{{data: files, source: items, allowed_columns: {columns}, allowed_rows: "{rows}"}}]
"""
NA = "1,10.5,N\n2,20.5,R\n3,7.25,N\n"
GLOBAL = "10,1500,N\n11,900,R\n12,,N\n"
APAC = "20,300,N\n"
N_ONLY = "{allowed_columns: '*', allowed_rows: \"flag = 'N'\"}"


@dataclass
class ServedRelay:
    """A relay that answers.

    Attributes:
        workspace: workspace of the relay.
        store: state of the relay.
        server: server of the relay.
        identity: identity of the relay.
        price: its word for the price.
        running: stops the server.
    """

    workspace: Workspace
    store: WebStore
    server: RelayServer
    identity: RelayIdentity
    price: str
    running: ExitStack

    def restart(self) -> None:
        """Stop the server, and start another one at the same address."""
        port = int(self.server.location.rpartition(":")[2])
        self.running.close()
        self.server = self.running.enter_context(
            relay_server(self.workspace, self.identity, self.store, ServeSettings(), host=HOST, port=port)
        )

    def apply(self, text: str) -> None:
        """Apply a document, in addition to the existing ones."""
        folder = self.workspace.root / "web"
        folder.mkdir(exist_ok=True)
        file = folder / f"{len(list(folder.iterdir()))}.yaml"
        file.write_text(text)
        prepared = prepare(self.store, [file], self.workspace.odf, prune=False)
        self.store.applies.apply(prepared.steps, based_on=prepared.revision, who="test")


class ServedWeb:
    """Relays of one authority.

    Attributes:
        relays: relays by name.
        authority: authority of all certificates.
    """

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.authority, self.issued = Authority.new("web")
        self.relays: dict[str, ServedRelay] = {}
        self._folder = folder
        self._stack = stack
        (folder / "ca.pem").write_text(self.issued.facts.pem)

    def relay(
        self,
        name: str,
        price: str,
        rows: str,
        default: str = N_ONLY,
        settings: ServeSettings | None = None,
        configured: Mapping[str, str] | None = None,
    ) -> ServedRelay:
        """Start a relay.

        Args:
            name: name of the relay.
            price: its word for the price.
            rows: lines of CSV.
            default: default permission of the relay.
            settings: limits of its server.
            configured: settings of its workspace.
        """
        workspace = Workspace.init(self._folder / name)
        for key, value in (configured or {}).items():
            workspace.config.set(key, value)
        certificate, key = self._folder / f"{name}.pem", self._folder / f"{name}.key"
        self.authority.issue(name, 30, hosts=[HOST]).write(certificate, key)
        identity = RelayIdentity.given(workspace.odf, name, certificate, key, self._folder / "ca.pem")
        store = WebStore.of_workspace(workspace.odf, None)
        self._stack.callback(store.database.close)
        running = self._stack.enter_context(ExitStack())
        serving = relay_server(workspace, identity, store, settings or ServeSettings(), host=HOST, port=0)
        relay = ServedRelay(workspace, store, running.enter_context(serving), identity, price, running)
        (workspace.root / "web").mkdir()
        (workspace.root / "web" / "items.csv").write_text(f"id,{price},flag\n{rows}")
        relay.apply(DOCUMENTS.format(price=price, default=default))
        self.relays[name] = relay
        return relay

    def link(self, name: str, to: str, transformation: str) -> None:
        """Let a relay query another one.

        Args:
            name: the querying relay.
            to: the queried relay.
            transformation: transforms the price there to the price here.
        """
        here, there = self.relays[name], self.relays[to]
        here.apply(
            PEER.format(
                name=to,
                location=there.server.location,
                certificate=there.identity.certificate,
                price=here.price,
                remote=there.price,
                transformation=transformation,
            )
        )

    def grant(
        self, relay: str, issued: Issued, name: str, rows: str = "true", *, columns: str = "'*'", **more: str
    ) -> None:
        """Grant rows of a relay, instead of the default."""
        file = self._folder / f"{issued.facts.fingerprint[:12]}.pem"
        file.write_text(issued.facts.pem)
        text = WHO.format(
            kind=more.get("kind", "User"),
            name=name,
            certificate=file,
            rows=rows,
            columns=columns,
            more=more.get("more", ""),
        )
        self.relays[relay].apply(text)

    def known_user(self, name: str, relays: Sequence[str] = ("na", "global")) -> Issued:
        """Issue a certificate to a user who may see all rows of some relays."""
        issued = self.user(name)
        for relay in relays:
            self.grant(relay, issued, name)
        return issued

    def user(self, name: str, fields: Mapping[str, str] | None = None) -> Issued:
        """Issue a certificate to a user."""
        return self.authority.issue(name, 30, fields=fields)

    def asks(self, issued: Issued, relay: str) -> Web:
        """Return the web as seen by a user through a relay."""
        web = Web(self.relays[relay].server.location, credentials(issued), self.issued.facts.pem.encode())
        self._stack.callback(web.close)
        return web


def credentials(issued: Issued) -> Credentials:
    """Return the credentials of a certificate that was issued."""
    return Credentials(issued.facts.pem.encode(), issued.key_pem.encode())


@contextmanager
def served_web(folder: Path) -> Iterator[ServedWeb]:
    """Run a web to which relays are added; they stop after the block."""
    with ExitStack() as stack:
        yield ServedWeb(folder, stack)


@contextmanager
def linked_web(folder: Path, *, apac: bool = False) -> Iterator[ServedWeb]:
    """Run a web in which na and global query each other, optionally apac and global; prices at global are percents."""
    with served_web(folder) as made:
        made.relay("na", "price", NA)
        made.relay("global", "percent", GLOBAL)
        if apac:
            made.relay("apac", "price", APAC)
        for name in [one for one in ("na", "apac") if one in made.relays]:
            made.link(name, "global", "{v} / 100")
            made.link("global", name, "{v} * 100")
        yield made
