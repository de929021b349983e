"""Servers of libraries on threads of their own."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class _Server(Protocol):
    def serve_forever(self) -> None: ...

    def shutdown(self) -> None: ...


@contextmanager
def running_server(server: _Server) -> Iterator[None]:
    """Run a server within the block."""
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
