"""The Flight SQL server beside the one for HTTP: where it listens, and how it ends."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa

from odfpy.coordinator.workspace import Workspace
from odfpy.serving.flight.server import FlightSqlServer
from odfpy.serving.http.budget import MemoryBudget
from odfpy.serving.http.logs import log
from odfpy.serving.http.tls import CannotServe, Tls
from odfpy.serving.settings import ServeSettings


@contextmanager
def serving_flight(
    workspaces: Sequence[Workspace],
    *,
    host: str,
    port: int,
    tls: Tls | None,
    settings: ServeSettings,
    budget: MemoryBudget | None = None,
    on_stuck: Callable[[], object] = lambda: None,
) -> Iterator[str]:
    """Answer questions over Flight SQL inside of the block; gives the URL.

    Args:
        workspaces: of several datasets of the same name, that of the first workspace is served.
        host: name or address to listen at.
        port: port to listen at; 0 for any that is free.
        tls: certificate and key; without them nothing is encrypted.
        settings: limits and times. At the end, queries under way are stopped.
        budget: memory for what clients send, where other servers of this process share it.
        on_stuck: called at the end if a client neither takes rows nor goes away: then gRPC waits for it without end.

    Raises:
        CannotServe: it cannot listen there.
    """
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # it would write into the log, in a form of its own
    place = f"[{host}]" if ":" in host else host
    scheme = "grpc+tls" if tls else "grpc"
    try:
        server = FlightSqlServer(workspaces, f"{scheme}://{place}:{port}", settings, tls=tls, budget=budget)
    except (pa.ArrowException, OSError) as error:
        raise CannotServe(
            f"Cannot listen at {host}, port {port}, for Flight SQL",
            hint="Is another server already running there? Choose another port with --flight-port.",
        ) from error
    url = f"{scheme}://{place}:{server.port}"
    log("listening", url=url)
    try:
        yield url
    finally:
        if not _ended(server, settings.grace):
            log("clients cut off")
            on_stuck()


def _ended(server: FlightSqlServer, grace: float) -> bool:
    """End the server; clients that take no rows are not waited for longer than that many seconds."""
    server.running.stop()
    ending = threading.Thread(target=server.shutdown, name="flight-end", daemon=True)
    ending.start()
    ending.join(grace)
    return not ending.is_alive()
