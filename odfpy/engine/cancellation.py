"""Cancellation of running work, from any thread, by a user or a time-out; and reports of its progress."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from enum import Enum
from types import TracebackType

from odfpy.data.scalars import U32
from odfpy.errors import OdfError, QueryCancelled, QueryTimedOut
from odfpy.values import dataclass

_STOPPED = "The query was stopped"


class Stage(Enum):
    """The stages of a job."""

    STARTING = "starting"
    QUEUED = "queued"
    RUNNING = "running"


@dataclass(frozen=True, slots=True)
class JobProgress:
    """The progress of a job that is not done yet.

    Attributes:
        stage: whether the engine is still starting, is busy with other jobs, or works on this one.
        tasks_done: the number of finished tasks of Spark's current stages.
        tasks: the number of tasks of Spark's current stages.
    """

    stage: Stage
    tasks_done: U32 = 0
    tasks: U32 = 0


class CancellationToken:
    """A token for the cancellation of running work. It is a context manager, whose end stops the clock.

    Attributes:
        on_progress: is called from time to time with the progress of the engine.
    """

    def __init__(
        self,
        timeout: float | None = None,
        on_progress: Callable[[JobProgress], None] | None = None,
        *,
        parent: CancellationToken | None = None,
    ) -> None:
        """Make a token, and start its clock.

        Args:
            timeout: seconds after which the work is stopped.
            on_progress: is called from time to time with the progress of the engine.
            parent: a token of enclosing work; when that is stopped, so is this.
        """
        inherited = None if parent is None else parent.on_progress
        self.on_progress: Callable[[JobProgress], None] | None = on_progress or inherited
        self._parent = parent
        self._lock = threading.Lock()
        self._why: OdfError | None = None
        self._callbacks: list[Callable[[], None]] = []
        self._timer: threading.Timer | None = None
        if timeout is not None:
            self._timer = threading.Timer(timeout, self._stop, [timed_out(timeout)])
            self._timer.daemon = True
            self._timer.start()
        if parent is not None:
            parent.on_stop(self._stop_with)

    @property
    def is_stopped(self) -> bool:
        """True if the work has been stopped."""
        return self._why is not None

    def cancel(self) -> None:
        """Cancel the work."""
        self._stop(QueryCancelled(_STOPPED))

    def on_stop(self, callback: Callable[[], None]) -> None:
        """Register a callback for when the work is stopped; any thread may call it, at once if already stopped."""
        with self._lock:
            if self._why is None:
                self._callbacks.append(callback)
                return
        callback()

    def check(self) -> None:
        """Continue only if the work has not been stopped.

        Raises:
            QueryCancelled, QueryTimedOut: it has been stopped.
        """
        if self._parent is not None and self._why is None:
            self._parent.check()
        if self._why is not None:
            raise self._why

    def stop_clock(self) -> None:
        """Stop the clock when the work is done; the time for reading its result does not count."""
        if self._timer is not None:
            self._timer.cancel()

    def close(self) -> None:
        """End the token: the clock stops, and no callback is called any longer."""
        self.stop_clock()
        with self._lock:
            self._callbacks.clear()
        if self._parent is not None:
            self._parent.forget(self._stop_with)

    def forget(self, callback: Callable[[], None]) -> None:
        """Unregister a callback."""
        with self._lock:
            if callback in self._callbacks:
                self._callbacks.remove(callback)

    def _stop_with(self) -> None:
        """Stop together with the parent."""
        if self._parent is not None:
            self._stop(self._parent.why)

    @property
    def why(self) -> OdfError:
        """Return why the work was stopped."""
        return self._why or QueryCancelled(_STOPPED)

    def _stop(self, why: OdfError) -> None:
        with self._lock:
            if self._why is not None:
                return
            self._why = why
            callbacks = [*self._callbacks]
            self._callbacks.clear()
        for callback in callbacks:
            try:
                callback()
            except Exception:  # e.g. a database that does not answer: others are still called
                logging.getLogger("odfpy").exception("Part of a query could not be stopped")

    def __enter__(self) -> CancellationToken:  # noqa: PYI034
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def timed_out(timeout: float) -> QueryTimedOut:
    """Return the error for a query that took longer than some seconds."""
    return QueryTimedOut(
        f"The query took longer than {timeout:g} s, and was stopped",
        hint="Increase the time limit, or request less: a shorter period, fewer columns, a LIMIT.",
    )
