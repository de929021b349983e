"""A receiver of webhooks on the loopback interface, with configurable responses."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class WebhookReceiver:
    """Receives calls, and responds as configured.

    Attributes:
        calls: headers and body of each call.
        statuses: the next responses; 204 by default.
    """

    def __init__(self) -> None:
        self.calls: queue.Queue[tuple[dict[str, str], bytes]] = queue.Queue()
        self.statuses: queue.Queue[int] = queue.Queue()
        self.url = ""


@contextmanager
def receiving() -> Iterator[WebhookReceiver]:
    receiver = WebhookReceiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            receiver.calls.put(({name.lower(): value for name, value in self.headers.items()}, body))
            status = 204 if receiver.statuses.empty() else receiver.statuses.get()
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listener:
        receiver.url = f"http://127.0.0.1:{listener.server_port}/hook?key=s3cr3t"
        thread = threading.Thread(target=listener.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield receiver
        finally:
            listener.shutdown()
            thread.join()
