"""Rows of a query as they are made: by another thread, or by another process into a file that grows."""

from __future__ import annotations

import ctypes
import io
import os
import queue
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from odfpy.engine.control import Control
from odfpy.errors import EngineError

if TYPE_CHECKING:
    import pyarrow as pa

_POLL_SECONDS: Final = 0.005
_LONGEST_POLL: Final = 0.05
_END_SECONDS: Final = 20.0
_AHEAD: Final = 2
_INTERRUPTIONS: Final = 8
"""After so many a thread is left behind: it ends with what native code is at."""
_BETWEEN_INTERRUPTIONS: Final = 0.25


class RowStream(Protocol):
    """The rows of a query, to be read once."""

    @property
    def schema(self) -> pa.Schema:
        """Their columns."""

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """The rows as they are made.

        Raises:
            OdfError: the query has failed or was stopped.
        """

    def close(self) -> None:
        """Make no more of them."""


class Spooled:
    """An Arrow IPC stream in a file, which somebody else still writes; slow readers do not hold the writer back.

    Attributes:
        schema: of the rows.
    """

    def __init__(self, path: Path, write: Callable[[], None], control: Control) -> None:
        """Have it written, and wait for its first bytes.

        Args:
            path: the file, which is not there yet.
            write: writes it and comes back when it is complete; it ends soon once the control has stopped it.
            control: says whether it is still wanted.

        Raises:
            OdfError: as `write` does, or because it was stopped.
        """
        import pyarrow as pa

        self._control = control
        self._growing = _Growing(path, control)
        self._thread = threading.Thread(target=self._write, args=(write,), name="query", daemon=True)
        self._thread.start()
        try:
            self._reader = pa.ipc.open_stream(pa.PythonFile(self._growing, "r"))
        except BaseException as error:  # noqa: BLE001  raised again, or what it stands for
            why = self._growing.why(error)
            self.close()
            raise why from (None if why is error else error)
        self.schema: pa.Schema = self._reader.schema

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Implement `RowStream`."""
        while True:
            try:
                batch = self._reader.read_next_batch()
            except StopIteration:
                self._growing.finish()
                return
            except Exception as error:  # noqa: BLE001  as above
                why = self._growing.why(error)
                raise why from (None if why is error else error)
            if batch.num_rows:
                yield batch

    def close(self) -> None:
        """Implement `RowStream`."""
        if self._thread.is_alive():
            self._control.cancel()
        self._thread.join(_END_SECONDS)
        self._growing.close()

    def _write(self, write: Callable[[], None]) -> None:
        try:
            write()
        except BaseException as error:  # noqa: BLE001  whoever reads gets it
            self._growing.error = error
        finally:
            self._control.stop_clock()
            self._growing.complete.set()


class _Growing(io.RawIOBase):
    """A file to be read while it grows: reading waits for what is not there yet."""

    def __init__(self, path: Path, control: Control) -> None:
        self.complete = threading.Event()
        self.error: BaseException | None = None
        self._path = path
        self._control = control
        self._file: io.FileIO | None = None

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        """So many bytes; fewer only at the end of the complete file."""
        parts: list[bytes] = []
        pause = _POLL_SECONDS
        while size > 0:
            is_complete = self.complete.is_set()
            self._control.check()
            if is_complete and self.error is not None:
                raise self.error
            piece = self._piece(size)
            if piece:
                parts.append(piece)
                size -= len(piece)
                pause = _POLL_SECONDS
            elif is_complete:
                break
            else:
                self.complete.wait(pause)
                pause = min(2 * pause, _LONGEST_POLL)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _piece(self, size: int) -> bytes:
        if self._file is None:
            try:
                self._file = io.FileIO(self._path, opener=_plain_file)
            except FileNotFoundError:
                return b""
        return self._file.read(size) or b""

    def finish(self) -> None:
        """The stream is at its end; whether the query is, and well, its maker says."""
        while not self.complete.wait(_LONGEST_POLL):
            self._control.check()
        if self.error is not None:
            raise self.error

    def why(self, error: BaseException) -> BaseException:
        """Return what to tell when reading has failed: that it was stopped, or what the writer says, comes first."""
        if not isinstance(error, Exception):
            return error  # an interruption
        if self._control.is_stopped:
            return self._control.why
        if self.error is not None:
            return self.error
        if isinstance(error, EOFError | OSError | ValueError):
            return EngineError(f"The engine's result cannot be read: {error}")
        return error

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
        super().close()


def _plain_file(path: str, flags: int) -> int:
    """Open what an engine has written, which must be a file: a link might lead to what it may not see itself."""
    try:
        descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            return descriptor
        os.close(descriptor)
    except FileNotFoundError:
        raise
    except OSError:
        pass
    raise EngineError(f"The engine has left something that is not a file: {path}")


class Interruption(BaseException):
    """An exception for a thread that nobody waits for any more."""


class Beside:
    """Rows that a thread of their own makes, a few batches ahead of who reads them; it can be stopped in native code.

    Attributes:
        schema: of the rows.
    """

    def __init__(self, schema: pa.Schema, make: Callable[[], Iterator[pa.RecordBatch]], control: Control) -> None:
        self.schema = schema
        self._make = make
        self._control = control
        self._made: queue.Queue[pa.RecordBatch | BaseException | None] = queue.Queue(_AHEAD)
        self._thread = threading.Thread(target=self._work, name="query", daemon=True)
        self._is_over = threading.Event()

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Implement `RowStream`."""
        self._control.check()
        self._thread.start()
        self._control.on_stop(self._interrupt)
        while True:
            match self._next():
                case None:
                    return
                case BaseException() as error:
                    self._control.check()
                    raise error
                case batch:
                    yield batch

    def _next(self) -> pa.RecordBatch | BaseException | None:
        while True:
            self._control.check()
            try:
                return self._made.get(timeout=_LONGEST_POLL)
            except queue.Empty:
                continue

    def _work(self) -> None:
        with suppress(Interruption):  # one that comes when all is done
            self._make_all()

    def _make_all(self) -> None:
        last: BaseException | None = None
        try:
            for batch in self._make():
                self._hand_over(batch)
                self._control.check()
        except BaseException as error:  # noqa: BLE001  whoever reads gets it
            last = error
        self._is_over.set()
        self._control.stop_clock()
        if not self._control.is_stopped:
            self._hand_over(last)

    def _hand_over(self, item: pa.RecordBatch | BaseException | None) -> None:
        while not self._control.is_stopped:
            try:
                self._made.put(item, timeout=_LONGEST_POLL)
            except queue.Full:
                continue
            return

    def _interrupt(self) -> None:
        """Raise an exception in the thread: DataFusion looks for one now and then, and drops its work. Where it comes
        while a callback runs, it may be taken for the callback's and be lost.
        """
        if self._thread.ident is not None and not self._is_over.is_set():
            ctypes.pythonapi.PyThreadState_SetAsyncExc(
                ctypes.c_ulong(self._thread.ident), ctypes.py_object(Interruption)
            )

    def close(self) -> None:
        """Implement `RowStream`."""
        if self._thread.ident is None:
            return
        if self._thread.is_alive():
            self._control.cancel()
        for _ in range(_INTERRUPTIONS):
            self._thread.join(_BETWEEN_INTERRUPTIONS)
            if not self._thread.is_alive():
                return
            self._interrupt()
