"""Running the application on a socket, until it is stopped."""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import resource
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace

import uvicorn

from odfpy.automation.background import scheduling
from odfpy.automation.listener import Listener
from odfpy.coordinator.workspace import Workspace
from odfpy.serving.app import create_app
from odfpy.serving.callers.sessions import SignInTickets
from odfpy.serving.http.addresses import Addresses
from odfpy.serving.http.budget import MemoryBudget
from odfpy.serving.http.listen_address import ListenAddress
from odfpy.serving.http.logs import log, set_up_logging
from odfpy.serving.http.mounted_apps import MountedAppFactory
from odfpy.serving.http.protocol import GuardedProtocol
from odfpy.serving.http.tls import CannotServe, Tls, check_certificate
from odfpy.serving.http.websocket_protocol import BudgetedWebSocket
from odfpy.serving.settings import ServeSettings
from odfpy.stopping import stopped_by_signals

_BACKLOG = 2048
_MAX_HEAD = 64 * 1024
_FILES_PER_CONNECTION = 2


def serve(
    workspaces: Sequence[Workspace],
    address: ListenAddress,
    settings: ServeSettings | None = None,
    *,
    flight_port: int | None = None,
    quiet: bool = False,
    tickets: SignInTickets | None = None,
    mounted_apps: Mapping[str, MountedAppFactory] | None = None,
    listener: Listener | None = None,
    on_listening: Callable[[str, str | None], object] = lambda _url, _flight: None,
) -> None:
    """Serve the datasets of some workspaces until SIGTERM or Ctrl-C; running requests then get some time to finish.

    Args:
        workspaces: the workspaces; if several have a dataset of the same name, the first workspace's is served.
        address: the address to listen on.
        settings: limits and timeouts.
        flight_port: port of Flight SQL, 0 for any free port; None to disable it.
        quiet: log only errors.
        tickets: tickets that browsers exchange for a session.
        mounted_apps: additional ASGI applications, by the path they are mounted at.
        listener: listener for scheduled runs; None to disable the scheduler.
        on_listening: called with the server's URL, and that of Flight SQL, when it is ready.

    Raises:
        CannotServe: it cannot listen on that address, or with that certificate.
    """
    settings = settings or ServeSettings()
    with listen(address.host, address.port) as listening, ExitStack() as stack:
        flight: str | None = None
        tell: Callable[[str], object] = lambda url: on_listening(url, flight)  # noqa: E731
        budget = MemoryBudget(settings)
        server = DatasetServer(
            workspaces,
            listening,
            settings=settings,
            tls=address.tls,
            budget=budget,
            tickets=tickets,
            mounted_apps=mounted_apps,
            on_listening=tell,
        )
        set_up_logging(quiet=quiet)
        if flight_port is not None:
            from odfpy.serving.flight.lifecycle import serving_flight

            flight = stack.enter_context(
                serving_flight(
                    workspaces,
                    replace(address, port=flight_port),
                    settings,
                    budget,
                    on_stuck=lambda: atexit.register(_leave),
                )
            )
        _allow_open_files(settings.max_connections * _FILES_PER_CONNECTION)
        for workspace in workspaces if listener is not None else ():
            stack.enter_context(scheduling(workspace, listener, grace=settings.grace))
        server.run([listening])


class DatasetServer(uvicorn.Server):
    """A uvicorn server that ends event streams when it stops, and does not re-raise the signal that stopped it.

    Attributes:
        app: the ASGI application.
        url: URL for clients.
    """

    def __init__(
        self,
        workspaces: Sequence[Workspace],
        listener: socket.socket,
        *,
        settings: ServeSettings,
        tls: Tls | None = None,
        budget: MemoryBudget | None = None,
        tickets: SignInTickets | None = None,
        mounted_apps: Mapping[str, MountedAppFactory] | None = None,
        on_listening: Callable[[str], object] = lambda _url: None,
    ) -> None:
        """
        Args:
            workspaces: workspaces to serve.
            listener: the listening socket; to be passed to `run`, too.
            settings: limits and timeouts.
            tls: certificate and key.
            budget: memory for data sent by clients, if shared with other servers of this process.
            tickets: tickets that browsers exchange for a session.
            mounted_apps: additional ASGI applications, by the path they are mounted at.
            on_listening: called with the URL when the server is ready.

        Raises:
            UsageError, CannotServe: certificate or key are unusable.
        """
        if tls is not None:
            check_certificate(tls)
        budget, addresses = budget or MemoryBudget(settings), Addresses(settings.max_connections_each)
        self.app = create_app(workspaces, settings, budget, tickets, mounted_apps)
        self.url = _url_of(listener, tls)
        self._on_listening = on_listening
        config = uvicorn.Config(
            self.app,
            http=GuardedProtocol.within(settings.patience, addresses),
            ws=BudgetedWebSocket.within(budget, addresses),
            ws_max_size=settings.max_message,
            ws_per_message_deflate=False,
            loop="asyncio",
            log_config=None,
            access_log=False,
            server_header=False,
            limit_concurrency=settings.max_connections + 1,  # beyond that number, they are rejected
            backlog=_BACKLOG,
            timeout_keep_alive=int(settings.keep_alive),
            timeout_graceful_shutdown=int(settings.grace),
            h11_max_incomplete_event_size=_MAX_HEAD,
            ssl_certfile=str(tls.certificate) if tls else None,
            ssl_keyfile=str(tls.key) if tls else None,
        )
        super().__init__(config)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        log("listening", url=self.url)
        self._on_listening(self.url)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        log("stopping")
        self.app.state.heads.stop()
        await super().shutdown(sockets)
        log("stopped")

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop the server, not the process, on signals; a second Ctrl-C stops it immediately."""
        if threading.current_thread() is not threading.main_thread():  # the caller stops it
            yield
            return
        with stopped_by_signals(lambda number: self.handle_exit(number, None)):
            yield


def listen(host: str, port: int) -> socket.socket:
    """Open a listening socket.

    Raises:
        CannotServe: the address is not available.
    """
    try:
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, _, _, _, address = addresses[0]
        listener = socket.create_server(address[:2], family=family, backlog=_BACKLOG)
        # Inherited by connections: otherwise a small response waits 40 ms for the client's acknowledgement.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    except (OSError, OverflowError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise CannotServe(
            f"Cannot listen at {host}, port {port}: {reason}",
            hint="Is another server already running there? Choose another one with --host and --port.",
        ) from error
    return listener


def _url_of(listener: socket.socket, tls: Tls | None) -> str:
    host, port = listener.getsockname()[:2]
    return f"{'https' if tls else 'http'}://{f'[{host}]' if ':' in host else host}:{port}"


def _leave() -> None:
    """Exit the process, even if threads still wait for clients that do not read."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(0)


def _allow_open_files(count: int) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = max(soft, count) if hard == resource.RLIM_INFINITY else max(soft, min(count, hard))
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    if wanted < count:
        log("few open files", level=logging.WARNING, allowed=wanted, wanted=count)
