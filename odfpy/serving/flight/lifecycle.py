"""The lifecycle of the Flight SQL server next to the HTTP server."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa

from odfpy.coordinator.workspace import Workspace
from odfpy.serving.flight.server import FlightSqlServer
from odfpy.serving.http.budget import MemoryBudget
from odfpy.serving.http.listen_address import ListenAddress
from odfpy.serving.http.logs import log
from odfpy.serving.http.tls import CannotServe
from odfpy.serving.settings import ServeSettings


@contextmanager
def serving_flight(
    workspaces: Sequence[Workspace],
    address: ListenAddress,
    settings: ServeSettings,
    budget: MemoryBudget | None = None,
    *,
    on_stuck: Callable[[], object] = lambda: None,
) -> Iterator[str]:
    """Run the Flight SQL server while the `with` block runs; yields its URL.

    Args:
        workspaces: the workspaces; if several have a dataset of the same name, the first workspace's is served.
        address: the address to listen on.
        settings: limits and timeouts. At the end, running queries are stopped.
        budget: memory for data sent by clients, if shared with other servers of this process.
        on_stuck: called at the end if a client neither reads rows nor disconnects: gRPC then waits for it forever.

    Raises:
        CannotServe: it cannot listen on that address.
    """
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # gRPC would log in its own format
    host = f"[{address.host}]" if ":" in address.host else address.host
    scheme = "grpc+tls" if address.tls else "grpc"
    try:
        server = FlightSqlServer(
            workspaces, f"{scheme}://{host}:{address.port}", settings, tls=address.tls, budget=budget
        )
    except (pa.ArrowException, OSError) as error:
        raise CannotServe(
            f"Cannot listen at {address.host}, port {address.port}, for Flight SQL",
            hint="Is another server already running there? Choose another port with --flight-port.",
        ) from error
    url = f"{scheme}://{host}:{server.port}"
    log("listening", url=url)
    try:
        yield url
    finally:
        if not _ended(server, settings.grace):
            log("clients cut off")
            on_stuck()


def _ended(server: FlightSqlServer, grace: float) -> bool:
    """Shut the server down. Wait at most `grace` seconds for clients that do not read rows."""
    server.running.stop()
    ending = threading.Thread(target=server.shutdown, name="flight-end", daemon=True)
    ending.start()
    ending.join(grace)
    return not ending.is_alive()
