"""Delivery of events to their receiver, in a separate thread and for a limited time.

A receiver that is down, slow or broken delays a pull by no more than the configured time, at its end, and is reported
once.
"""

from __future__ import annotations

import logging
import threading
import time
from contextlib import suppress
from pathlib import Path
from queue import Full, Queue
from typing import Final

from openlineage.client.event_v2 import RunEvent
from openlineage.client.transport.http import ApiKeyTokenProvider, HttpConfig, HttpTransport, TokenProvider

from odfpy.http.url import shown_url
from odfpy.settings.sections import OpenLineageSection

MAX_WAITING: Final = 1000
"""Maximum number of events waiting for a slow receiver; further ones are dropped."""

_RETRIES: Final = {
    "total": 1,
    "connect": 0,  # the library would log each retry
    "read": 0,
    "status_forcelist": [500, 502, 503, 504],
    "allowed_methods": ["POST"],
    "raise_on_status": False,
}
_TOO_LATE = "it did not answer in time"
_LOGGER = logging.getLogger("odfpy")


class EventSender:
    """A sender of events to one receiver."""

    def __init__(self, settings: OpenLineageSection) -> None:
        """
        Args:
            settings: the receiver.

        Raises:
            ValueError: the URL is invalid.
            OSError: the file with the key cannot be read.
        """
        url = settings.url or ""
        self._shown = shown_url(url)
        self._timeout = settings.timeout
        key = _key_of(settings)
        self._transport = HttpTransport(
            HttpConfig(
                url if url.endswith("/") else f"{url}/",
                timeout=settings.timeout,
                auth=ApiKeyTokenProvider({"api_key": key}) if key else TokenProvider({}),
                retry=dict(_RETRIES),
            )
        )
        self._waiting: Queue[RunEvent | None] = Queue(MAX_WAITING)  # None marks the end
        self._is_over = False
        self._counting = threading.Lock()
        self._lost = 0
        self._problem = ""
        # A daemon thread: an exiting process does not wait for an unresponsive receiver.
        self._thread = threading.Thread(target=self._send_all, name="openlineage", daemon=True)
        self._thread.start()

    def send(self, event: RunEvent) -> None:
        """Queue an event for delivery; neither waits nor raises.

        Args:
            event: the event.
        """
        try:
            self._waiting.put_nowait(event)
        except Full:
            self.lose("it accepts them too slowly")

    def lose(self, problem: str) -> None:
        """Count an event that cannot be sent.

        Args:
            problem: the reason; only the first one is reported.
        """
        self._lose(1, problem)

    def _lose(self, count: int, problem: str) -> None:
        with self._counting:  # called by the pull and by the sending thread
            self._lost += count
            self._problem = self._problem or problem

    def close(self) -> None:
        """Wait until all events are sent, up to the configured time; log a warning about lost ones."""
        deadline = time.monotonic() + self._timeout
        with suppress(Full):
            self._waiting.put(None, timeout=self._timeout)
        self._thread.join(max(0.0, deadline - time.monotonic()))
        self._is_over = True
        if self._thread.is_alive():
            self._lose(max(1, self._waiting.qsize()), _TOO_LATE)
        if self._lost:
            _LOGGER.warning("%s events of lineage did not reach %s: %s", self._lost, self._shown, self._problem)

    def _send_all(self) -> None:
        try:
            while (event := self._waiting.get()) is not None and not self._is_over:
                try:
                    self._transport.emit(event)
                except Exception as error:  # noqa: BLE001 - no error may fail a pull
                    self.lose(_reason(error))
        finally:
            self._transport.close()


def _key_of(settings: OpenLineageSection) -> str | None:
    if settings.api_key is not None or settings.api_key_file is None:
        return settings.api_key
    return Path(settings.api_key_file).expanduser().read_text(encoding="utf-8").strip()


def _reason(error: Exception) -> str:
    """Summarize an error; messages of the library may contain the whole URL."""
    status = getattr(getattr(error, "response", None), "status_code", None)
    if status is not None:
        return f"status {status}"
    return _TOO_LATE if "timed out" in str(error) else type(error).__name__
