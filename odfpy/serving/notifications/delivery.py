"""Delivery of webhooks: each new head at least once, until the receiver confirms it.

The last delivered head is stored next to the webhook, so that nothing is forgotten while the server is down. When heads
move faster than a receiver responds, it only receives the latest; the blocks in between are in the chain.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from odfpy.coordinator.storage.storage import Storage, StoredDataset
from odfpy.data.multihash import Multihash
from odfpy.dataset.identity import DID_ODF_PREFIX, DatasetId
from odfpy.errors import InvalidValue, OdfError, TransferError
from odfpy.http.client import HttpClient
from odfpy.serving.http.logs import log
from odfpy.serving.http.metrics import Metrics
from odfpy.serving.notifications.events import head_event
from odfpy.serving.notifications.heads import head_of
from odfpy.serving.notifications.webhooks import Webhook, Webhooks
from odfpy.serving.settings import ServeSettings

_PARALLEL = 8
_MAX_ANSWER = 64 * 1024


@dataclass(frozen=True, slots=True)
class _Due:
    """A webhook that has not received the current head."""

    webhooks: Webhooks
    webhook: Webhook
    head: Multihash

    @property
    def key(self) -> tuple[str, str]:
        """Return a key that identifies the webhook."""
        return str(self.webhooks.dataset.folder), self.webhook.url

    def again(self) -> _Due | None:
        """Return the same with the current head, None if nothing is left to deliver."""
        head = head_of(self.webhooks.dataset)
        is_there = any(known == self.webhook for known in self.webhooks.list())
        if head is None or not is_there or self.webhooks.last_told(self.webhook) == str(head):
            return None
        return _Due(self.webhooks, self.webhook, head)


class Deliveries:
    """Calls the webhooks of all datasets of some workspaces."""

    def __init__(self, storages: Sequence[Storage], settings: ServeSettings, metrics: Metrics) -> None:
        self._storages = storages
        self._settings = settings
        self._metrics = metrics
        self._client = HttpClient(TransferError, timeout=settings.webhook_timeout)
        self._slots = asyncio.Semaphore(_PARALLEL)
        self._under_way: dict[tuple[str, str], asyncio.Task[None]] = {}
        self._problems: set[str] = set()

    async def run(self) -> None:
        """Look for heads to deliver, until cancelled."""
        try:
            while True:
                for due in await asyncio.to_thread(self._all_due):
                    if due.key not in self._under_way:
                        task = asyncio.create_task(self._deliver(due))
                        self._under_way[due.key] = task
                        task.add_done_callback(partial(self._end, due.key))
                await asyncio.sleep(self._settings.poll)
        finally:
            for task in list(self._under_way.values()):
                task.cancel()

    def _end(self, key: tuple[str, str], task: asyncio.Task[None]) -> None:
        self._under_way.pop(key, None)
        if not task.cancelled() and (error := task.exception()) is not None:
            log("webhook failed", level=logging.ERROR, error=error)

    def _all_due(self) -> list[_Due]:
        due, problems = [], set()
        for storage in self._storages:
            for dataset_id in _with_webhooks(storage):
                try:
                    due += _due_of(storage.get(dataset_id))
                except OdfError as error:
                    problems.add(error.message)
        for problem in problems - self._problems:  # each is reported once, not in every round
            log("webhooks cannot be read", level=logging.ERROR, problem=problem)
        self._problems = problems
        return due

    async def _deliver(self, due: _Due) -> None:
        delay = self._settings.webhook_delay
        for attempt in range(1, self._settings.webhook_attempts + 1):
            async with self._slots:
                problem = await asyncio.to_thread(self._call, due)
            self._metrics.deliveries.labels("failed" if problem else "delivered").inc()
            what: dict[str, Any] = {
                "dataset": str(due.webhooks.dataset.handle),
                "receiver": due.webhook.shown,
                "head": str(due.head),
            }
            if problem is None:
                log("webhook delivered", **what, attempt=attempt)
                return
            log("webhook failed", level=logging.WARNING, **what, attempt=attempt, problem=problem)
            if attempt < self._settings.webhook_attempts:
                await asyncio.sleep(delay)
                delay = min(2 * delay, self._settings.webhook_longest_delay)
                newest = await asyncio.to_thread(due.again)
                if newest is None:
                    return
                due = newest
        log("webhook given up until the next head", level=logging.ERROR, receiver=due.webhook.shown)
        await asyncio.to_thread(due.webhooks.tell, due.webhook, due.head)

    def _call(self, due: _Due) -> str | None:
        """Call a webhook once; returns the error, if any."""
        event = {
            **head_event(due.webhooks.dataset, due.head),
            "previousHead": due.webhooks.last_told(due.webhook),
        }
        body = json.dumps(event).encode()
        id_ = hashlib.sha256("\n".join((*due.key, str(due.head))).encode()).hexdigest()[:32]
        headers = due.webhook.headers(id_, int(time.time()), body)
        label = f"The webhook at {due.webhook.shown}"
        try:
            with self._client.post(due.webhook.url, body, headers, max_size=_MAX_ANSWER, label=label) as answer:
                status = answer.status
            if not 200 <= status < 300:
                return f"status {status}"
            due.webhooks.tell(due.webhook, due.head)
        except OdfError as error:
            return error.message
        return None


def _with_webhooks(storage: Storage) -> list[DatasetId]:
    """Return the datasets that have webhooks; of all others, nothing is read."""
    ids = []
    for folder in (storage.odf / "datasets").glob("[!.]*/info/webhooks"):
        with suppress(InvalidValue):
            ids.append(DatasetId.parse(DID_ODF_PREFIX + folder.parents[1].name))
    return ids


def _due_of(dataset: StoredDataset) -> list[_Due]:
    webhooks = Webhooks(dataset)
    known = webhooks.list()
    head = head_of(dataset) if known else None
    if head is None:
        return []
    return [_Due(webhooks, webhook, head) for webhook in known if webhooks.last_told(webhook) != str(head)]
