"""Queries in processes of their own, for servers: one that takes too long, or too much memory, ends alone.

DataFusion looks only now and then whether its work is still wanted; in a join without a condition, for example, it
does not for hours. A process can be ended at any time. It is forked from one that has everything imported, so that a
query costs some milliseconds more than in this process.
"""

from __future__ import annotations

import io
import os
import select
import socket
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Final

from odfpy.engine.contract import (
    SqlRequest,
    SqlResponse,
    SqlResponseSuccess,
    TransformResponseInternalError,
    TransformResponseInvalidQuery,
)
from odfpy.engine.control import Control
from odfpy.engine.messages import Channel
from odfpy.engine.responses import as_error
from odfpy.engine.scans import ScanRequest
from odfpy.errors import EngineError, EngineUnavailable, MalformedData

if TYPE_CHECKING:
    import pyarrow as pa
    from typing_extensions import Buffer

_ATTEMPTS: Final = 2
_SETTINGS: Final = {
    "MIMALLOC_ARENA_EAGER_COMMIT": "0",  # else a gigabyte that is only set aside counts as taken
    "JE_ARROW_MALLOC_CONF": "background_thread:false",  # threads are not forked
    "OPENBLAS_NUM_THREADS": "1",
}
_END_SECONDS: Final = 10.0
_LOOK_MILLIS: Final = 50
_BUFFER: Final = 1 << 20


class ForkServer:
    """Starts processes for queries; threads may share it. It ends with this process.

    Attributes:
        memory: bytes that a query may take.
    """

    def __init__(self, memory: int) -> None:
        self.memory = memory
        self._lock = threading.Lock()
        self._control: socket.socket | None = None
        self._end: Callable[[], object] = lambda: None

    def fork(self) -> tuple[Channel, int]:
        """A new process: where it takes its request, and the pipe that its rows come from.

        Raises:
            EngineUnavailable: there is none to be had.
        """
        mine, theirs = socket.socketpair()
        reading, writing = os.pipe()
        try:
            self._send([theirs.fileno(), writing])
        except OSError as error:
            mine.close()
            os.close(reading)
            raise EngineUnavailable(f"No process can be started for the query: {error.strerror}") from error
        finally:
            theirs.close()
            os.close(writing)
        return Channel(mine), reading

    def _send(self, descriptors: list[int]) -> None:
        with self._lock:
            for attempt in range(_ATTEMPTS):
                self._control = self._control or self._start()
                try:
                    socket.send_fds(self._control, [b"q"], descriptors)
                except OSError:  # it has been killed
                    self._end()
                    self._control = None
                    if attempt + 1 == _ATTEMPTS:
                        raise
                else:
                    return

    def _start(self) -> socket.socket:
        mine, theirs = socket.socketpair()
        with theirs:
            process = subprocess.Popen(
                [sys.executable, "-m", "odfpy.engine.datafusion.fork_server", str(self.memory)],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,  # where Rust tells that it has no memory
                env={**os.environ, **_SETTINGS, "PYTHONPATH": os.pathsep.join(sys.path)},
                start_new_session=True,  # Ctrl-C is not for it
            )
        self._end = weakref.finalize(self, _end, mine, process)
        return mine


def _end(control: socket.socket, process: subprocess.Popen[bytes]) -> None:
    """A server ends when its socket is closed."""
    control.close()
    with suppress(subprocess.TimeoutExpired):
        process.wait(_END_SECONDS)


@cache
def fork_server(memory: int) -> ForkServer:
    """The one of this process.

    Args:
        memory: bytes that a query may take.
    """
    return ForkServer(memory)


class _Pipe(io.RawIOBase):
    """What a process writes; whoever waits for it looks now and then whether it is still wanted."""

    def __init__(self, descriptor: int, control: Control) -> None:
        self._file = io.FileIO(descriptor)
        self._control = control
        self._poll = select.poll()
        self._poll.register(descriptor, select.POLLIN)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Buffer) -> int | None:
        while not self._poll.poll(_LOOK_MILLIS):
            self._control.check()
        return self._file.readinto(buffer)

    def close(self) -> None:
        self._file.close()
        super().close()


class Apart:
    """The rows of a query in a process of its own, which ends when nobody wants them any more.

    Attributes:
        schema: of the rows.
    """

    def __init__(self, server: ForkServer, request: SqlRequest | ScanRequest, control: Control) -> None:
        """Begin, and wait for the columns.

        Raises:
            OdfError: the query is at fault or was stopped, or it has ended in some other way.
        """
        import pyarrow as pa

        control.check()
        self._memory = server.memory
        self._control = control
        self._channel, reading = server.fork()
        self._rows = io.BufferedReader(_Pipe(reading, control), _BUFFER)
        try:
            control.on_stop(self._channel.hang_up)
            with suppress(OSError):  # it has ended already
                self._channel.send(request)
            self._reader = pa.ipc.open_stream(pa.PythonFile(self._rows, "r"))
        except BaseException as error:  # noqa: BLE001  raised again, or what it stands for
            why = self._why() if isinstance(error, Exception) else error
            self.close()
            raise why from (None if why is error else error)
        self.schema: pa.Schema = self._reader.schema

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """See `RowStream`."""
        while True:
            self._control.check()
            try:
                batch = self._reader.read_next_batch()
            except StopIteration:
                break
            except Exception as error:
                raise self._why() from error
            if batch.num_rows:
                yield batch
        result = self._result()
        self._control.stop_clock()
        if not isinstance(result, SqlResponseSuccess):
            raise self._why(result)

    def close(self) -> None:
        """See `RowStream`."""
        self._channel.close()
        self._rows.close()

    def _result(self) -> SqlResponse | None:
        """What the process says in the end; nothing if it was ended."""
        with suppress(OSError, MalformedData):
            return self._channel.receive(SqlResponse)
        return None

    def _why(self, result: SqlResponse | None = None) -> Exception:
        """Why there are no more rows."""
        if self._control.is_stopped:
            return self._control.why
        result = result or self._result()
        if isinstance(result, TransformResponseInvalidQuery | TransformResponseInternalError):
            return as_error(result)
        return EngineError(
            f"The query was ended, most likely since it took more than {self._memory / 2**30:.2g} GiB of memory",
            hint="Ask for less: fewer rows or columns, joins with a condition, LIMIT.",
        )
