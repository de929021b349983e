"""Notices by webhook: a signed POST request with JSON for each notice."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from odfpy.automation.notifications.channels import Channel, NotDelivered, Refused
from odfpy.automation.notifications.notice import Notice
from odfpy.automation.notifications.receivers import Receiver
from odfpy.http.client import HttpClient
from odfpy.http.standard_webhooks import signed_headers

TIMEOUT: Final = 10.0
"""Timeout for a receiver, in seconds."""

_MAX_ANSWER = 64 * 1024


class WebhookChannel(Channel):
    """Calls the URL of a receiver."""

    def __init__(self, receiver: Receiver, timeout: float = TIMEOUT) -> None:
        """
        Args:
            receiver: the receiver to call.
            timeout: timeout for a connection, or for the next bytes, in seconds.
        """
        self._receiver = receiver
        self._client = HttpClient(NotDelivered, timeout=timeout)

    def batches(self, waiting: Mapping[Path, Notice], now: float | None) -> list[list[Path]]:
        """Return each notice in a batch of its own."""
        del now
        return [[path] for path in waiting]

    def send(self, notices: Sequence[Notice]) -> None:
        """Call the URL once for each notice; the id of the call is that of the notice."""
        for notice in notices:
            body = json.dumps(notice.event).encode()
            shown, secret = self._receiver.place, self._receiver.secret or ""
            headers = signed_headers(secret, notice.id, int(time.time()), body, receiver=shown)
            label = f"the webhook at {shown}"
            with self._client.post(self._receiver.target, body, headers, max_size=_MAX_ANSWER, label=label) as answer:
                if not 200 <= answer.status < 300:
                    raise Refused(f"The webhook at {shown} answers with status {answer.status}")
