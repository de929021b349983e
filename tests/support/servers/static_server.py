"""A real static file server on the loopback interface, which records requests and can be made to misbehave."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote

Special = Callable[[SimpleHTTPRequestHandler], object]
"""Handles a request in its own way; it has the whole connection to itself."""


class StaticServer:
    """A server of one folder.

    Attributes:
        url: where it listens.
        requests: method and path of all requests.
        connections: how many connections were made to it.
        special: handlers of special paths, by the end of the path.
    """

    def __init__(self, scheme: str, host: str, port: int) -> None:
        self.url = f"{scheme}://{host}:{port}"
        self.requests: list[tuple[str, str]] = []
        self.headers: list[dict[str, str]] = []
        self.connections = 0
        self.special: dict[str, Special] = {}

    def asked(self, part: str = "") -> list[str]:
        """Return the requested paths that contain a text."""
        return [path for _, path in self.requests if part in path]

    def forget(self) -> None:
        self.requests.clear()


@contextmanager
def static_server(
    folder: Path, tls: ssl.SSLContext | None = None, *, host: str = "127.0.0.1"
) -> Iterator[StaticServer]:
    """Serve a folder, over TLS if there is a context for it."""

    class Handler(SimpleHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def __init__(self, *args: object) -> None:
            super().__init__(*args, directory=str(folder))

        def setup(self) -> None:
            site.connections += 1
            super().setup()

        def do_GET(self) -> None:
            self._answer(super().do_GET)

        def do_HEAD(self) -> None:
            self._answer(super().do_HEAD)

        def _answer(self, usual: Callable[[], object]) -> None:
            site.requests.append((self.command, unquote(self.path)))
            site.headers.append(dict(self.headers.items()))
            for end, special in site.special.items():
                if self.path.endswith(end):
                    special(self)
                    return
            usual()

        def handle(self) -> None:
            try:
                super().handle()
            except OSError:  # the client has disconnected
                self.close_connection = True

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer((host, 0), Handler) as server:
        site = StaticServer("https" if tls else "http", host, server.server_port)
        if tls:
            server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        with running(server):
            yield site


@contextmanager
def running(server: ThreadingHTTPServer) -> Iterator[None]:
    """Run a server in a separate thread."""
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()


def send(handler: SimpleHTTPRequestHandler, body: bytes, *, status: int = 200, **headers: object) -> None:
    """Send a response with a body; its length is announced unless the headers say otherwise."""
    handler.send_response(status)
    for name, value in ({"Content_Length": len(body)} | headers).items():
        if value is not None:
            handler.send_header(name.replace("_", "-"), str(value))
    handler.end_headers()
    if handler.command != "HEAD":
        handler.wfile.write(body)
    if headers.get("Content_Length", 0) is None:
        handler.close_connection = True


def cut_after(body: bytes, count: int) -> Special:
    """Announce a whole body, send its beginning and hang up."""

    def answer(handler: SimpleHTTPRequestHandler) -> None:
        send(handler, body[:count], Content_Length=len(body))
        handler.close_connection = True

    return answer


def endless(chunk: bytes = b"\0" * 65536) -> Special:
    """Send endlessly, without announcing a length."""

    def answer(handler: SimpleHTTPRequestHandler) -> None:
        send(handler, b"", Content_Length=None)
        while True:
            handler.wfile.write(chunk)

    return answer
