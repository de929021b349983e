"""Uploads during a conversation, in a thread; their end is an event, like a message of the server.

`websocket` reads messages in another thread, and handles the events of both threads in order.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

from odfpy.chain.layout import DatasetLayout
from odfpy.repository.smart_transfer.located import Uploads
from odfpy.repository.smart_transfer.session import Located

CLOSE_TIMEOUT: Final = 5.0
"""Maximum seconds to wait for the end of a connection and of its uploads."""


@dataclass(frozen=True, slots=True)
class Message:
    """A message of the server."""

    text: str


@dataclass(frozen=True, slots=True)
class ConnectionFailed:
    """The connection is closed, or has broken."""

    error: Exception


@dataclass(frozen=True, slots=True)
class UploadsEnded:
    """The uploads are complete, or have failed."""

    error: Exception | None


Event: TypeAlias = Message | ConnectionFailed | UploadsEnded


class UploadThread:
    """Uploads in a thread, which sends an event when they end."""

    def __init__(
        self,
        target: DatasetLayout,
        files: tuple[Located, ...],
        copy: Callable[[DatasetLayout, DatasetLayout, tuple[Located, ...]], None],
        source: DatasetLayout,
        events: queue.SimpleQueue[Event],
    ) -> None:
        """
        Args:
            target: layout with the upload locations.
            files: the files.
            copy: copies files from one layout to another.
            source: the local dataset.
            events: queue for the event at the end of the uploads.
        """
        self._target = target
        self._begin = time.monotonic()

        def run() -> None:
            try:
                copy(source, target, files)
            except Exception as error:  # noqa: BLE001 - reported to the waiting caller
                events.put(UploadsEnded(error))
            else:
                events.put(UploadsEnded(None))

        self._thread = threading.Thread(target=run, name="odf-uploads", daemon=True)
        self._thread.start()

    @property
    def count(self) -> int:
        """Return the number of uploaded files."""
        stores = (self._target.data, self._target.checkpoints)
        return sum(store.count for store in stores if isinstance(store, Uploads))

    @property
    def seconds(self) -> float:
        """Return the seconds since the start."""
        return time.monotonic() - self._begin

    def stop(self) -> None:
        """Make running uploads fail soon."""
        for store in (self._target.data, self._target.checkpoints):
            if isinstance(store, Uploads):
                store.stop()
        self._thread.join(CLOSE_TIMEOUT)
