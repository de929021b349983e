"""Running answers: their number is limited, they can be cancelled, and their batches are sent to clients."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Final

import pyarrow as pa

from odfpy.data.memory import bytes_of
from odfpy.data.nulls import emptied
from odfpy.data.rows.batch_stream import BatchStream
from odfpy.engine.cancellation import CancellationToken
from odfpy.errors import QueryCancelled
from odfpy.serving.flight.errors import TooBusy, as_client_errors

BATCH_ROWS: Final = 1 << 16
_BATCH_BYTES: Final = 4 << 20
"""Clients accept messages of up to 16 MiB by default."""
_CANCELLED_REMEMBERED: Final = 1000


class CallCancellation(CancellationToken):
    """The cancellation token of a query that also ends with its call, when the client disconnects."""

    def __init__(self, context: Any, timeout: float | None = None) -> None:
        super().__init__(timeout)
        self._context = context
        self._thread = threading.get_ident()

    def check(self) -> None:
        """Check as `CancellationToken` does; only the call's own thread may check whether its client is connected."""
        if self._context is not None and threading.get_ident() == self._thread and self._context.is_cancelled():
            self.cancel()
        super().check()

    def leave(self) -> None:
        """The call is over: it must no longer be accessed."""
        self._context = None


class RunningQueries:
    """The running queries, with limits on their number; thread-safe."""

    def __init__(self, most_streams: int, most_working: int, patience: float) -> None:
        """
        Args:
            most_streams: maximum number of open answers; more are rejected.
            most_working: maximum number of them, and of other calls, that compute at the same time; others wait.
            patience: seconds that they wait before they are rejected.
        """
        self._most = most_streams
        self._patience = patience
        self._slots = threading.BoundedSemaphore(most_working)
        self._lock = threading.Lock()
        self._open: dict[CallCancellation, str] = {}
        self._cancelled: OrderedDict[str, None] = OrderedDict()

    @contextmanager
    def working(self) -> Iterator[None]:
        """Compute something, when a slot is free.

        Raises:
            TooBusy: none becomes free in time.
        """
        if not self._slots.acquire(timeout=self._patience):
            raise TooBusy(f"The server is busy: no query finished for {self._patience:g} s", hint="Try again later.")
        try:
            yield
        finally:
            self._slots.release()

    def begin(self, name: str, control: CallCancellation) -> None:
        """Register an answer; it counts until it ends, or is stopped.

        Raises:
            TooBusy: there are too many.
            QueryCancelled: it was cancelled before.
        """
        with self._lock:
            if name in self._cancelled:
                raise QueryCancelled("The query was stopped")
            if len(self._open) >= self._most:
                raise TooBusy(f"{self._most} queries are under way, and there may be no more", hint="Try again later.")
            self._open[control] = name
        control.on_stop(lambda: self.end(control))

    def end(self, control: CallCancellation) -> None:
        """Unregister an answer."""
        with self._lock:
            self._open.pop(control, None)

    def cancel(self, name: str) -> None:
        """Cancel the query of a name, including answers that start later under it."""
        with self._lock:
            self._cancelled[name] = None
            if len(self._cancelled) > _CANCELLED_REMEMBERED:
                self._cancelled.popitem(last=False)
            controls = [control for control, known in self._open.items() if known == name]
        for control in controls:
            control.cancel()

    def stop(self) -> None:
        """Stop all queries."""
        with self._lock:
            controls = [*self._open]
        for control in controls:
            control.cancel()

    def __len__(self) -> int:
        return len(self._open)


class CallBatches:
    """The batches of an answer, for one call. It ends with the answer, with an error, or when the client disconnects.

    Not a generator: one that was never started would not be closed.

    Attributes:
        schema: schema of the batches.
        num_rows: number of rows sent.
    """

    def __init__(
        self,
        answer: BatchStream,
        running: RunningQueries,
        control: CallCancellation,
        resources: ExitStack,
        on_end: Callable[[int], object],
    ) -> None:
        """
        Args:
            answer: the answer.
            running: the registry that counts it.
            control: control of the answer.
            resources: closed at the end, together with the answer. They must not reference this object, whose deletion
                ends it.
            on_end: called with the number of rows sent.
        """
        self.schema: pa.Schema = answer.schema
        self.num_rows = 0
        self._rows = iter(answer)
        self._running = running
        self._control = control
        self._resources = resources
        self._on_end: Callable[[int], object] | None = on_end
        self._left: Iterator[pa.RecordBatch] = iter(())

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return self

    def __next__(self) -> pa.RecordBatch:
        """Return the next batch, of a size that clients accept.

        Raises:
            FlightError: it cannot be produced.
        """
        try:
            with as_client_errors():
                batch = next(self._left, None)
                while batch is None:
                    self._left = self._more()
                    batch = next(self._left, None)
                self.num_rows += batch.num_rows
                return batch
        except BaseException:
            self.close()
            raise

    def _more(self) -> Iterator[pa.RecordBatch]:
        self._control.check()
        with self._running.working():
            batch = next(self._rows)
        return fitting(batch, self.schema)

    def close(self) -> None:
        """Stop producing batches."""
        self._control.leave()
        self._resources.close()
        if self._on_end is not None:
            self._on_end(self.num_rows)
            self._on_end = None

    def __del__(self) -> None:
        self.close()


def fitting(batch: pa.RecordBatch, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Split a batch into batches of limited size, with exactly the columns of a schema.

    Values under NULLs are cleared: cells that the caller may not see are NULL, and engines leave their values in
    memory.
    """
    if batch.schema != schema:
        arrays = [column.cast(field.type) for column, field in zip(batch.columns, schema, strict=True)]
        batch = pa.record_batch(arrays, schema=schema)
    batch = emptied(batch)
    pieces = max(-(-batch.num_rows // BATCH_ROWS), min(batch.num_rows, -(-bytes_of(batch) // _BATCH_BYTES)))
    rows = -(-batch.num_rows // pieces) if pieces else 0
    return (batch.slice(start, rows) for start in range(0, batch.num_rows, rows)) if rows else iter(())
