"""Streams of rows, read ahead by threads, so that a silent server can be detected."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from queue import Empty, Queue
from typing import Any, Final

import pyarrow as pa

_AHEAD: Final = 4
"""Maximum number of buffered batches."""
_END: Final = object()


class StreamTimeout(Exception):
    """A stream has not sent data for longer than permitted."""


class ReadAhead:
    """The batches of a stream, read ahead by a thread. Leaving the context stops the stream in any state."""

    def __init__(self, open_stream: Callable[[], Any], patience: float | None) -> None:
        """Start reading.

        Args:
            open_stream: opens pyarrow's reader; called in the thread, since it waits for the server.
            patience: seconds without data before a timeout, None for no timeout.
        """
        self._open = open_stream
        self._patience = patience
        self._found: Queue[Any] = Queue(_AHEAD)
        self._given_up = threading.Event()
        self._reader: Any = None
        threading.Thread(target=self._read, name="flight-stream", daemon=True).start()

    def schema(self) -> pa.Schema:
        """Return the columns of the stream. Must be called first, and once.

        Raises:
            StreamTimeout, pyarrow's errors: the server is silent, or has aborted the stream.
        """
        return self._next()

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Yield the batches in order; raises like `schema`."""
        while (found := self._next()) is not _END:
            yield found

    def close(self) -> None:
        """Stop the stream. The thread of a silent server ends when data arrive."""
        self._given_up.set()
        if self._reader is not None:
            self._reader.cancel()
        while True:  # the thread may wait for space in the queue
            try:
                self._found.get_nowait()
            except Empty:
                return

    def _next(self) -> Any:
        try:
            found = self._found.get(timeout=self._patience)
        except Empty:
            raise StreamTimeout(f"it did not respond for {self._patience:g} s") from None
        if isinstance(found, BaseException):
            raise found
        return found

    def _read(self) -> None:
        try:
            self._reader = self._open()
            self._found.put(self._reader.schema)
            for chunk in self._reader:
                if self._given_up.is_set():
                    self._reader.cancel()
                    return
                if chunk.data is not None:  # a message may consist of metadata only
                    self._found.put(chunk.data)
            self._found.put(_END)
        except BaseException as error:  # noqa: BLE001  it belongs to whoever reads
            self._found.put(error)
