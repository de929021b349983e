"""Detection of access to the outside: a listener on the loopback interface, and a pipe that nothing else would open."""

from __future__ import annotations

import errno
import os
import socket
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

_POLL_SECONDS = 0.005
_ADDRESS = "127.83.17.5"
"""A loopback address that other programs do not contact by chance."""


@dataclass
class Watch:
    """Traps that report access to them. A context manager.

    Attributes:
        folder: where its files are.
        caught: the detected accesses.
    """

    folder: Path
    caught: list[str] = field(default_factory=list)

    def __enter__(self) -> Watch:  # noqa: PYI034  Python 3.10 has no Self
        os.mkfifo(self.pipe)
        self.there.write_text("<a>there</a>")
        self._listener = socket.create_server((_ADDRESS, 0))
        self._ended = threading.Event()
        self._threads = [threading.Thread(target=look, daemon=True) for look in (self._accept, self._poll)]
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join()

    @property
    def url(self) -> str:
        """A URL with a listener."""
        return f"http://{_ADDRESS}:{self._listener.getsockname()[1]}/x.xsd"

    @property
    def pipe(self) -> Path:
        """A file that can be read only while it has a writer."""
        return self.folder / "pipe"

    @property
    def there(self) -> Path:
        """An existing file."""
        return self.folder / "jrtbj.xml"  # letters without meaning in formats of numbers and dates

    @property
    def missing(self) -> Path:
        """A missing file, with a name of the same letters."""
        return self.folder / "jtrbj.xml"

    def _accept(self) -> None:
        while not self._ended.is_set():
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection:
                connection.settimeout(1)
                with suppress(OSError):
                    self.caught.append(f"the network: {connection.recv(200)!r}")
                    continue
                self.caught.append("the network")

    def _poll(self) -> None:
        while not self._ended.wait(_POLL_SECONDS):
            try:
                descriptor = os.open(self.pipe, os.O_WRONLY | os.O_NONBLOCK)  # fails while it has no reader
            except OSError as error:
                assert error.errno == errno.ENXIO  # noqa: PT017
                continue
            os.close(descriptor)
            self.caught.append("a file")
