"""The notices of a workspace: queued immediately and durably, delivered later.

  Notices(workspace).post(notice)      queues a file for each receiver that wants the notice
  Notices(workspace).deliver()         delivers due notices; failures are retried later

A notice is delivered at least once: after a crash between its delivery and the removal of its file, it is delivered
again with the same id.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path

from odfpy.automation.notifications.channels import Channel, Refused
from odfpy.automation.notifications.mail import MailChannel
from odfpy.automation.notifications.notice import Notice
from odfpy.automation.notifications.queue import NoticeQueue
from odfpy.automation.notifications.receivers import ChannelKind, Receiver, Receivers
from odfpy.automation.notifications.webhook import WebhookChannel
from odfpy.coordinator.workspace import Workspace
from odfpy.errors import OdfError
from odfpy.settings.sections import MailSection

_LOGGER = logging.getLogger("odf.automation")


class Notices:
    """The notices of a workspace, and their receivers. Thread-safe.

    Attributes:
        receivers: the registered receivers.
    """

    def __init__(self, workspace: Workspace, *, clock: Callable[[], float] = time.time) -> None:
        """
        Args:
            workspace: the workspace.
            clock: returns the current time, in seconds since the epoch.
        """
        self.receivers = Receivers(workspace.odf)
        self._workspace = workspace
        self._clock = clock
        self._lock = threading.Lock()
        self._under_way: dict[str, threading.Thread] = {}

    def post(self, notice: Notice) -> None:
        """Queue a notice for all receivers that want it; it is sent with the next delivery.

        Args:
            notice: the notice.

        Raises:
            OdfError: the notice cannot be written.
        """
        for receiver in self.receivers.usable():
            if receiver.wants(notice):
                self._queue(receiver.id).put(notice)

    def deliver(self, wait: float = 60.0, *, is_last: bool = False) -> None:
        """Deliver due notices to all receivers independently, so that an unresponsive receiver does not delay others.

        Failures are retried by later calls at growing intervals; after some attempts, a notice is given up and logged.
        Errors are logged, and not raised.

        Args:
            wait: seconds after which unfinished deliveries are left to their threads.
            is_last: whether no delivery will follow soon, so that nothing is held back for a batch.
        """
        due = self._due()
        if not due:  # the common case takes some microseconds: nothing is parsed
            return
        receivers = self.receivers.usable()
        for id_ in due - self.receivers.ids():
            self._queue(id_).drop()  # the receiver was removed
        deadline = time.monotonic() + wait
        for thread in [self._delivering(receiver, is_last=is_last) for receiver in receivers if receiver.id in due]:
            thread.join(max(0.0, deadline - time.monotonic()))

    def send(self, receiver: Receiver, notice: Notice) -> None:
        """Send a notice to a receiver immediately, bypassing the queue.

        Args:
            receiver: the receiver.
            notice: the notice.

        Raises:
            NotDelivered: the receiver has not accepted the notice.
        """
        self._channel(receiver).send([notice])

    def _due(self) -> set[str]:
        """Return the ids of receivers with waiting notices whose next attempt is due."""
        found = [path.name for path in (self._workspace.odf / "automation" / "notices").glob("[!.]*")]
        return {id_ for id_ in found if self._is_due(self._queue(id_))}

    def _is_due(self, queue: NoticeQueue) -> bool:
        return not queue.is_empty() and queue.attempts().are_due(self._clock())

    def _delivering(self, receiver: Receiver, *, is_last: bool) -> threading.Thread:
        """Return the thread that delivers to a receiver; start it if it is not running."""
        with self._lock:
            thread = self._under_way.get(receiver.id)
            if thread is None or not thread.is_alive():
                # A daemon thread: an exiting process does not wait for an unresponsive receiver. Undelivered notices
                # are retained.
                thread = threading.Thread(target=self._deliver_all, args=(receiver, is_last), daemon=True)
                self._under_way[receiver.id] = thread
                thread.start()
            return thread

    def _deliver_all(self, receiver: Receiver, is_last: bool) -> None:
        queue = self._queue(receiver.id)
        try:
            with queue.locked():
                if self._is_due(queue):  # another process may have been faster
                    self._round(receiver, queue, self._channel(receiver), None if is_last else self._clock())
        except (OdfError, OSError) as error:
            _LOGGER.error("notices to %s cannot be delivered: %s", receiver.place, error)  # noqa: TRY400 - no bug
        except Exception:
            _LOGGER.exception("notices to %s cannot be delivered", receiver.place)

    def _round(self, receiver: Receiver, queue: NoticeQueue, channel: Channel, now: float | None) -> None:
        """Try each batch once; if the receiver cannot be reached, count an attempt for all of them."""
        waiting = queue.waiting()
        batches = channel.batches(waiting, now)
        failed: list[Path] = []
        for number, batch in enumerate(batches):
            try:
                channel.send([waiting[path] for path in batch])
            except OdfError as error:
                _LOGGER.warning("a notice to %s was not delivered: %s", receiver.place, error.message)
                failed += batch
                if not isinstance(error, Refused):
                    failed += [path for later in batches[number + 1 :] for path in later]
                    break
            else:
                queue.remove(batch)
                _LOGGER.info("a notice to %s was delivered", receiver.place)
        attempts = queue.attempts()
        given_up = attempts.count(failed, self._clock()) if failed else []
        if batches:
            queue.keep(attempts if failed else None)
        for path in given_up:
            _LOGGER.error("a notice to %s is dropped: %s", receiver.place, waiting[path].subject)
        queue.remove(given_up)

    def _queue(self, receiver_id: str) -> NoticeQueue:
        return NoticeQueue(self._workspace.odf, receiver_id)

    def _channel(self, receiver: Receiver) -> Channel:
        if receiver.way is ChannelKind.WEBHOOK:
            return WebhookChannel(receiver)
        return MailChannel(receiver, self._workspace.config.section(MailSection))
