"""Cancellation of work under way, from any thread, by a person or the clock; and how the work gets on."""

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
    """The stage of a job."""

    STARTING = "starting"
    QUEUED = "queued"
    RUNNING = "running"


@dataclass(frozen=True, slots=True)
class JobProgress:
    """A job is not done yet.

    Attributes:
        stage: whether the engine still starts, does other jobs first, or is at this one.
        tasks_done: tasks of Spark's present stages that are done.
        tasks: tasks of Spark's present stages.
    """

    stage: Stage
    tasks_done: U32 = 0
    tasks: U32 = 0


class CancellationToken:
    """The cancellation of work under way; a context manager, at whose end the clock stops.

    Attributes:
        on_progress: hears now and then how the engine gets on.
    """

    def __init__(
        self,
        timeout: float | None = None,
        on_progress: Callable[[JobProgress], None] | None = None,
        *,
        parent: CancellationToken | None = None,
    ) -> None:
        """Begin.

        Args:
            timeout: seconds after which it is stopped.
            on_progress: hears now and then how the engine gets on.
            parent: something larger; when that is stopped, so is this.
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
        """True if nobody wants it any more."""
        return self._why is not None

    def cancel(self) -> None:
        """Nobody wants it any more."""
        self._stop(QueryCancelled(_STOPPED))

    def on_stop(self, callback: Callable[[], None]) -> None:
        """Have something called, by any thread, when it is stopped; at once if it is already."""
        with self._lock:
            if self._why is None:
                self._callbacks.append(callback)
                return
        callback()

    def check(self) -> None:
        """Go on only if it is wanted.

        Raises:
            QueryCancelled, QueryTimedOut: it is not.
        """
        if self._parent is not None and self._why is None:
            self._parent.check()
        if self._why is not None:
            raise self._why

    def stop_clock(self) -> None:
        """The work is done; how long its result is read does not count."""
        if self._timer is not None:
            self._timer.cancel()

    def close(self) -> None:
        """It is done: the clock stops, and nobody is called any more."""
        self.stop_clock()
        with self._lock:
            self._callbacks.clear()
        if self._parent is not None:
            self._parent.forget(self._stop_with)

    def forget(self, callback: Callable[[], None]) -> None:
        """Have something not called any more, which was to be called when it is stopped."""
        with self._lock:
            if callback in self._callbacks:
                self._callbacks.remove(callback)

    def _stop_with(self) -> None:
        """Stop together with its parent."""
        if self._parent is not None:
            self._stop(self._parent.why)

    @property
    def why(self) -> OdfError:
        """Why it was stopped."""
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
            except Exception:  # such as of a database that does not answer: the others have to hear of it all the same
                logging.getLogger("odfpy").exception("A part of a query could not be stopped")

    def __enter__(self) -> CancellationToken:  # noqa: PYI034
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def timed_out(timeout: float) -> QueryTimedOut:
    """The error of a query that took longer than some seconds."""
    return QueryTimedOut(
        f"The query took longer than {timeout:g} s, and was stopped",
        hint="Give it more time, or ask for less: a shorter time, fewer columns, a LIMIT.",
    )
