"""A scheduler in a separate thread, for `odf run`, whose main thread handles signals, and for `odf serve --run`."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from odfpy.automation.listener import Listener
from odfpy.automation.notifications.notices import Notices
from odfpy.automation.notifications.sender import NoticeSender
from odfpy.automation.scheduler import Scheduler

if TYPE_CHECKING:
    from odfpy.coordinator.workspace import Workspace

_BEAT: Final = 0.2


class BackgroundScheduler:
    """A scheduler in a separate thread. Its runs end with the thread, so the thread must live as long as they do.

    Attributes:
        has_worked: whether it was active, known once it has stopped; False if another scheduler holds the lock.
    """

    def __init__(
        self, workspace: Workspace, listener: Listener | None = None, *, grace: float = 30.0, once: bool = False
    ) -> None:
        """
        Args:
            workspace: the workspace.
            listener: listener for its events.
            grace: seconds to wait for running jobs on stop.
            once: whether to run only what is due now, and then stop.
        """
        self._notices = NoticeSender(Notices(workspace))
        self._scheduler = Scheduler(workspace, (listener or Listener()).also(self._notices.post))
        self._grace = grace
        self._once = once
        self._stop = threading.Event()
        self._error: BaseException | None = None
        self.has_worked = False
        self._thread = threading.Thread(target=self._work, name="scheduler", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Stop the scheduler: the first call waits for running jobs, the second one terminates them."""
        if self._stop.is_set():
            self._scheduler.skip_grace_period()
        self._stop.set()

    def join(self) -> None:
        """Wait until the scheduler has stopped.

        Raises:
            OdfError: the scheduler could not start, or failed.
        """
        while self._thread.is_alive():  # with a timeout, otherwise signals would not be handled
            self._thread.join(_BEAT)
        if self._error is not None:
            raise self._error

    def _work(self) -> None:
        try:
            with self._notices:
                self.has_worked = self._scheduler.work(self._stop, grace=self._grace, once=self._once)
        except BaseException as error:  # noqa: BLE001  raised by `join`
            self._error = error


@contextmanager
def scheduling(workspace: Workspace, listener: Listener | None = None, *, grace: float = 30.0) -> Iterator[None]:
    """Run a scheduler during the block.

    Args:
        workspace: the workspace.
        listener: listener for its events.
        grace: seconds to wait for running jobs on stop.
    """
    scheduler = BackgroundScheduler(workspace, listener, grace=grace)
    scheduler.start()
    try:
        yield
    finally:
        scheduler.stop()
        scheduler.join()
