"""A Flight SQL server for tests, in this process, over a small workspace; and clients' messages as bytes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.flight as fl
from support.chains.workspaces import feed, root, workspace_with

from odfpy.coordinator.workspace import Workspace
from odfpy.serving.callers.tokens import Scope, Tokens
from odfpy.serving.callers.visibility import Visibility, set_visibility
from odfpy.serving.flight.messages import message, unwrap, wrap
from odfpy.serving.flight.server import FlightSqlServer
from odfpy.serving.settings import ServeSettings

OPEN = "com.example.open"
SECRET = "alice/com.example.secret"


@dataclass(frozen=True)
class Served:
    """A server and its workspace."""

    workspace: Workspace
    server: FlightSqlServer
    token: str

    @property
    def url(self) -> str:
        return f"grpc://127.0.0.1:{self.server.port}"

    def client(self) -> Any:
        """Return a client of pyarrow, which shows no token."""
        return fl.connect(self.url)

    def options(self, **headers: str) -> Any:
        """With the token, and other headers."""
        fields = {"authorization": f"Bearer {self.token}", **headers}
        return fl.FlightCallOptions(headers=[(k.replace("_", "-").encode(), v.encode()) for k, v in fields.items()])


def small_workspace(folder: Path) -> Workspace:
    """Return a public dataset of three slices and six rows, and a private one of an account."""
    workspace = workspace_with(folder, root(OPEN, "{kind: Append}"), root(SECRET))
    for day, rows in enumerate((("1 a", "2 b"), ("3 c",), ("4 d", "5 e", "6 f")), start=1):
        feed(workspace, OPEN, *rows, day=day)
    feed(workspace, SECRET, "1 hidden")
    set_visibility(workspace.storage.get(OPEN).folder, Visibility.PUBLIC)
    return workspace


@contextmanager
def serving_flight(*workspaces: Workspace, **settings: Any) -> Iterator[Served]:
    """A server of some workspaces, and a token for the first of them."""
    tokens = Tokens(workspaces[0].odf)
    name = f"reader-{len(tokens.list())}"
    server = FlightSqlServer(workspaces, "grpc://127.0.0.1:0", ServeSettings(**settings))
    try:
        yield Served(workspaces[0], server, tokens.new(name, Scope.READ))
    finally:
        server.running.stop()
        server.shutdown()


def command(name: str, **fields: Any) -> Any:
    """Return a descriptor with a command of Flight SQL."""
    return fl.FlightDescriptor.for_command(wrap(message(name, **fields)))


def query(text: str) -> Any:
    """Return a descriptor of a query."""
    return command("CommandStatementQuery", query=text)


def act(client: Any, kind: str, body: bytes, options: Any = None) -> bytes:
    """Return the one result of an action."""
    (result,) = client.do_action(fl.Action(kind, body), options)
    return result.body.to_pybytes()


def prepare(client: Any, text: str, options: Any = None) -> Any:
    """Return the server's description of a prepared statement."""
    request = message("ActionCreatePreparedStatementRequest", query=text)
    return unwrap(act(client, "CreatePreparedStatement", wrap(request), options))


def fetch(client: Any, descriptor: Any, options: Any = None) -> Any:
    """Return all rows of an answer, endpoint by endpoint, in a table."""
    import pyarrow as pa

    info = client.get_flight_info(descriptor, options)
    parts = [client.do_get(endpoint.ticket, options).read_all() for endpoint in info.endpoints]
    return pa.concat_tables(parts)
