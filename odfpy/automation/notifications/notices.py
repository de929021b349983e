"""The notices of a workspace: posted at once and durably, delivered when somebody has time for it.

    Notices(workspace).post(notice)      a file for each receiver that wants it
    Notices(workspace).deliver()         what is due goes out; what fails is tried again later

A notice goes out at least once: a kill between its arrival and the removal of its file repeats it, with the same id.
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
    """The notices of a workspace, and who is told. For all threads.

    Attributes:
        receivers: who is told.
    """

    def __init__(self, workspace: Workspace, *, clock: Callable[[], float] = time.time) -> None:
        """
        Args:
            workspace: the workspace.
            clock: tells the time, in seconds since 1970.
        """
        self.receivers = Receivers(workspace.odf)
        self._workspace = workspace
        self._clock = clock
        self._lock = threading.Lock()
        self._under_way: dict[str, threading.Thread] = {}

    def post(self, notice: Notice) -> None:
        """Let all who want to know a notice have it, with the next delivery. Nobody is called yet.

        Args:
            notice: the notice.

        Raises:
            OdfError: it cannot be written.
        """
        for receiver in self.receivers.usable():
            if receiver.wants(notice):
                self._queue(receiver.id).put(notice)

    def deliver(self, wait: float = 60.0, *, is_last: bool = False) -> None:
        """Send what is due to each receiver. None waits for another, and one that hangs is left behind.

        What fails is tried again by a later call, ever less often, and given up after some attempts with a line of the
        log. Nothing is raised: whatever goes wrong is told there.

        Args:
            wait: seconds after which receivers that have not finished are left to their threads.
            is_last: whether nobody may deliver for long after this, so that nothing waits for more to go with it.
        """
        due = self._due()
        if not due:  # a look costs some microseconds: nothing is parsed
            return
        receivers = self.receivers.usable()
        for id_ in due - self.receivers.ids():
            self._queue(id_).drop()  # the receiver is no more
        deadline = time.monotonic() + wait
        for thread in [self._delivering(one, is_last=is_last) for one in receivers if one.id in due]:
            thread.join(max(0.0, deadline - time.monotonic()))

    def send(self, receiver: Receiver, notice: Notice) -> None:
        """Send one notice to one receiver at once, past all others.

        Args:
            receiver: who is told.
            notice: the notice.

        Raises:
            NotDelivered: it has not taken it.
        """
        self._channel(receiver).send([notice])

    def _due(self) -> set[str]:
        """Return the ids of receivers for whom something waits that may be tried now."""
        found = [path.name for path in (self._workspace.odf / "automation" / "notices").glob("[!.]*")]
        return {id_ for id_ in found if self._is_due(self._queue(id_))}

    def _is_due(self, queue: NoticeQueue) -> bool:
        return not queue.is_empty() and queue.attempts().are_due(self._clock())

    def _delivering(self, receiver: Receiver, *, is_last: bool) -> threading.Thread:
        """Return the thread that sends to a receiver, which may be at it already."""
        with self._lock:
            thread = self._under_way.get(receiver.id)
            if thread is None or not thread.is_alive():
                # A daemon: a process that ends need not wait for somebody who hangs; what was not sent is still there.
                thread = threading.Thread(target=self._deliver_all, args=(receiver, is_last), daemon=True)
                self._under_way[receiver.id] = thread
                thread.start()
            return thread

    def _deliver_all(self, receiver: Receiver, is_last: bool) -> None:
        queue = self._queue(receiver.id)
        try:
            with queue.locked():
                if self._is_due(queue):  # another process may have been quicker
                    self._round(receiver, queue, self._channel(receiver), None if is_last else self._clock())
        except (OdfError, OSError) as error:
            _LOGGER.error("notices to %s cannot be delivered: %s", receiver.place, error)  # noqa: TRY400 - no bug
        except Exception:
            _LOGGER.exception("notices to %s cannot be delivered", receiver.place)

    def _round(self, receiver: Receiver, queue: NoticeQueue, channel: Channel, now: float | None) -> None:
        """Try each batch once; as soon as the receiver cannot be reached, all of them count as tried."""
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
            _LOGGER.error("a notice to %s is given up: %s", receiver.place, waiting[path].subject)
        queue.remove(given_up)

    def _queue(self, receiver_id: str) -> NoticeQueue:
        return NoticeQueue(self._workspace.odf, receiver_id)

    def _channel(self, receiver: Receiver) -> Channel:
        if receiver.way is ChannelKind.WEBHOOK:
            return WebhookChannel(receiver)
        return MailChannel(receiver, self._workspace.config.section(MailSection))
