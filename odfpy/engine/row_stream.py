"""Streams of query rows that another process writes into a growing file."""

from __future__ import annotations

import io
import os
import stat
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from odfpy.engine.cancellation import CancellationToken
from odfpy.errors import EngineError

if TYPE_CHECKING:
    import pyarrow as pa

_POLL_SECONDS: Final = 0.005
_MAX_POLL: Final = 0.05
_END_SECONDS: Final = 20.0


class RowStream(Protocol):
    """The rows of a query, to be read once."""

    @property
    def schema(self) -> pa.Schema:
        """Return their columns."""

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows as they are computed.

        Raises:
            OdfError: the query has failed or was stopped.
        """

    def close(self) -> None:
        """Stop computing rows."""


class Spooled:
    """An Arrow IPC stream in a file that is still being written; slow readers do not block the writer.

    Attributes:
        schema: schema of the rows.
    """

    def __init__(self, path: Path, write: Callable[[], None], control: CancellationToken) -> None:
        """Start the writer, and wait for its first bytes.

        Args:
            path: the file, which does not exist yet.
            write: writes the file and returns when it is complete; it ends soon once it is cancelled.
            control: the token that can stop it.

        Raises:
            OdfError: as `write` does, or because it was stopped.
        """
        import pyarrow as pa

        self._control = control
        self._growing = _GrowingFile(path, control)
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


class _GrowingFile(io.RawIOBase):
    """A file that is read while it grows: reading waits for missing data."""

    def __init__(self, path: Path, control: CancellationToken) -> None:
        self.complete = threading.Event()
        self.error: BaseException | None = None
        self._path = path
        self._control = control
        self._file: io.FileIO | None = None

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        """Return some bytes; fewer than requested only at the end of the complete file."""
        parts: list[bytes] = []
        pause = _POLL_SECONDS
        while size > 0:
            # Checked before the file is read; otherwise, what is written in between would be cut off.
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
                pause = min(2 * pause, _MAX_POLL)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _piece(self, size: int) -> bytes:
        if self._file is None:
            try:
                self._file = io.FileIO(self._path, opener=_plain_file)
            except FileNotFoundError:
                return b""
        return self._file.read(size) or b""

    def finish(self) -> None:
        """End the stream; whether the query succeeded is reported by its writer."""
        while not self.complete.wait(_MAX_POLL):
            self._control.check()
        if self.error is not None:
            raise self.error

    def why(self, error: BaseException) -> BaseException:
        """Return the error to raise when reading has failed: a stop, or the writer's error, takes precedence."""
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
    """Open what an engine has written, which must be a file: a link might lead to files that it may not see."""
    try:
        descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            return descriptor
        os.close(descriptor)
    except FileNotFoundError:
        raise
    except OSError:
        pass
    raise EngineError(f"The engine wrote something that is not a file: {path}")
