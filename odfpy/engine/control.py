"""Whether somebody still wants what is under way: stopped from any thread, by a person, a client or the clock."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING

from odfpy.errors import OdfError, QueryCancelled, QueryTimedOut

if TYPE_CHECKING:
    from odfpy.engine.messages import Progress


class Control:
    """A query under way; a context manager, at whose end the clock stops.

    Attributes:
        on_progress: hears now and then how the engine gets on.
    """

    def __init__(self, timeout: float | None = None, on_progress: Callable[[Progress], None] | None = None) -> None:
        """Begin.

        Args:
            timeout: seconds after which it is stopped.
            on_progress: hears now and then how the engine gets on.
        """
        self.on_progress = on_progress
        self._lock = threading.Lock()
        self._why: OdfError | None = None
        self._callbacks: list[Callable[[], None]] = []
        self._timer: threading.Timer | None = None
        if timeout is not None:
            late = QueryTimedOut(f"The query took longer than {timeout:g} s, and was stopped")
            self._timer = threading.Timer(timeout, self._stop, [late])
            self._timer.daemon = True
            self._timer.start()

    @property
    def is_stopped(self) -> bool:
        """Whether nobody wants it any more."""
        return self._why is not None

    def cancel(self) -> None:
        """Nobody wants it any more."""
        self._stop(QueryCancelled("The query was stopped"))

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
        if self._why is not None:
            raise self._why

    def close(self) -> None:
        """It is done: the clock stops, and nobody is called any more."""
        if self._timer is not None:
            self._timer.cancel()
        with self._lock:
            self._callbacks.clear()

    def _stop(self, why: OdfError) -> None:
        with self._lock:
            if self._why is not None:
                return
            self._why = why
            callbacks = [*self._callbacks]
            self._callbacks.clear()
        for callback in callbacks:
            callback()

    def __enter__(self) -> Control:  # noqa: PYI034
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
