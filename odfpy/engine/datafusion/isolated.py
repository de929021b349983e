"""DataFusion's work in separate processes: if one exceeds its time or memory, it is terminated alone.

DataFusion rarely checks for cancellation; in a join without a condition, for example, not for hours. It crashes on
deeply nested queries, together with its process. So all work is done in a process that can be killed at any time. It
is forked from one that has imported everything, which takes some milliseconds.
"""

from __future__ import annotations

import io
import os
import select
import socket
import subprocess
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Final, TypeAlias

from odfpy.engine.cancellation import CancellationToken
from odfpy.engine.contract import (
    SqlRequest,
    SqlResponseSuccess,
    TransformResponseInternalError,
    TransformResponseInvalidQuery,
)
from odfpy.engine.responses import as_error
from odfpy.engine.scans import ScanRequest
from odfpy.engine.sql.files import FilesRequest
from odfpy.engine.worker.job_profile import JobProfile
from odfpy.engine.worker.messages import Breakdown, Channel, Job, Result
from odfpy.errors import EngineUnavailable, MalformedData, QueryEnded
from odfpy.sandbox.python import python_command, python_environment
from odfpy.stages import current, stage

if TYPE_CHECKING:
    import pyarrow as pa
    from typing_extensions import Buffer

PLANNING: Final = b"p"
"""Requests a process for planning, without any computation."""

PLANNING_MEMORY: Final = 1 << 30
"""Maximum memory of such a process in bytes."""

PLANNING_SECONDS: Final = 60.0
"""Maximum seconds of such a process."""

IDLE_SECONDS: Final = 600.0
"""Idle seconds after which the process that forks all others exits."""

_COMPUTING: Final = b"q"
_ATTEMPTS: Final = 2
_SETTINGS: Final = {
    "MIMALLOC_ARENA_EAGER_COMMIT": "0",  # otherwise a gigabyte that is only reserved counts as used
    "JE_ARROW_MALLOC_CONF": "background_thread:false",  # threads are not forked
    "OPENBLAS_NUM_THREADS": "1",
}
_LOOK_MILLIS: Final = 50
_BUFFER: Final = 1 << 20
_OF_MEMORY: Final = frozenset(("SIGABRT", "SIGKILL"))
"""Signals of a process that gets no memory: it aborts, or is killed by the system."""

Ending: TypeAlias = Result | Breakdown


class ForkServer:
    """A server that forks a process for each request; thread-safe. It ends with this process, or after an idle period.

    Attributes:
        memory: maximum memory of a request in bytes.
        idle: idle seconds after which it releases its memory; the next request restarts it.
        pid: id of the process that forks all others, once it exists.
    """

    def __init__(self, memory: int, idle: float = IDLE_SECONDS) -> None:
        self.memory = memory
        self.idle = idle
        self._lock = threading.Lock()
        self._control: socket.socket | None = None
        self._owner: int | None = None
        self.pid: int | None = None
        self._end: Callable[[], object] = lambda: None

    def begin(self) -> None:
        """Start the forking process, which takes a while, if it is not running; do not wait."""
        with self._lock, suppress(OSError):
            self._connected()

    def fork(self, *, is_planning: bool) -> tuple[Channel, int]:
        """Return a new process: its request channel, and the pipe of its rows.

        Args:
            is_planning: whether it only plans; then it gets little memory.

        Raises:
            EngineUnavailable: no process can be started.
        """
        own_end, child_end = socket.socketpair()
        reading, writing = os.pipe()
        try:
            self._send(PLANNING if is_planning else _COMPUTING, [child_end.fileno(), writing])
        except OSError as error:
            own_end.close()
            os.close(reading)
            raise EngineUnavailable(f"No process can be started for the query: {error.strerror}") from error
        finally:
            # In any case: while a copy is open here, the exit of the child does not end its rows.
            child_end.close()
            os.close(writing)
        return Channel(own_end), reading

    def _send(self, kind: bytes, descriptors: list[int]) -> None:
        with self._lock:
            for attempt in range(_ATTEMPTS):
                control = self._connected()
                try:
                    socket.send_fds(control, [kind], descriptors)
                except OSError:  # it was killed
                    self._end()
                    self._control = None
                    if attempt + 1 == _ATTEMPTS:
                        raise
                else:
                    return

    def _connected(self) -> socket.socket:
        if self._control is None or self._owner != os.getpid():  # one created before a fork is not ours
            self._control, self._owner = self._start(), os.getpid()
        return self._control

    def _start(self) -> socket.socket:
        own_end, child_end = socket.socketpair()
        with child_end:
            process = subprocess.Popen(
                python_command("odfpy.engine.datafusion.fork_server", str(self.memory), str(self.idle)),
                stdin=child_end.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,  # where Rust reports that it has no memory
                env=python_environment(os.environ, **_SETTINGS),
                start_new_session=True,  # Ctrl-C is not for it
            )
        self.pid = process.pid
        self._end = weakref.finalize(self, _end, own_end, process, os.getpid())
        return own_end


def _end(control: socket.socket, process: subprocess.Popen[bytes], owner: int) -> None:
    """Stop a server; its children exit with their clients."""
    control.close()
    if owner == os.getpid():
        process.kill()
        process.wait()


@cache
def fork_server(memory: int) -> ForkServer:
    """Return the one of this process.

    Args:
        memory: maximum memory of a request in bytes.
    """
    return ForkServer(memory)


def ask(server: ForkServer, request: Job, control: CancellationToken, *, is_planning: bool = False) -> Result:
    """Run a request in a separate process and return its response.

    Args:
        server: the process that is forked.
        request: the request.
        control: cancels the work.
        is_planning: whether only a plan is needed, with lower limits.

    Raises:
        QueryCancelled, QueryTimedOut: the token was stopped.
        QueryEnded: the process exited abnormally.
        EngineUnavailable: none can be started.
    """
    control.check()
    with stage("DataFusion"):
        asked = time.perf_counter()
        channel, rows = server.fork(is_planning=is_planning)
        os.close(rows)
        try:
            control.on_stop(channel.hang_up)
            with suppress(OSError):  # it has already exited
                channel.send(request)
            ending = _ending(channel, asked)
        finally:
            channel.close()
    if ending is None or isinstance(ending, Breakdown):
        raise control.why if control.is_stopped else _ended(ending, server.memory, is_planning=is_planning)
    control.stop_clock()
    return ending


def _ending(channel: Channel, asked: float | None = None) -> Ending | None:
    """Return the final message of a process, or the report on its exit; nothing if both are missing.

    Args:
        channel: channel to the process.
        asked: `time.perf_counter` at the request for the process, if its start is to be profiled.
    """
    with suppress(OSError, MalformedData):
        message: Ending | JobProfile | None = channel.receive(Ending | JobProfile)
        if isinstance(message, JobProfile):
            current_stage = current() if asked is not None else None
            start = None if current_stage is None else current_stage.part("start")
            seconds = message.add_to_current()
            if start is not None and asked is not None:
                start.add(max(0.0, time.perf_counter() - asked - seconds))
            message = channel.receive(Ending)
        return message
    return None


def _ended(how: Breakdown | None, memory: int, *, is_planning: bool) -> QueryEnded:
    """Return the reason why a process exited without a response."""
    most = min(memory, PLANNING_MEMORY) if is_planning else memory
    if how is not None and how.message.startswith("SIG") and how.message not in _OF_MEMORY:
        return QueryEnded(
            f"DataFusion crashed on the query ({how.message}), most likely because it is nested too deeply",
            hint="Write it in several steps, or with fewer operators in a row.",
        )
    return QueryEnded(
        f"The query was killed, most likely because it used more than {most / 2**30:.2g} GiB of memory",
        hint="Request less: fewer rows or columns, joins with a condition, LIMIT.",
    )


class _Pipe(io.RawIOBase):
    """The output of a process; reads check for cancellation from time to time."""

    def __init__(self, descriptor: int, control: CancellationToken) -> None:
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


class IsolatedQuery:
    """The rows of a query in a separate process, which exits when its client disconnects.

    Attributes:
        schema: schema of the rows.
    """

    def __init__(
        self, server: ForkServer, request: SqlRequest | ScanRequest | FilesRequest, control: CancellationToken
    ) -> None:
        """Start, and wait for the schema.

        Args:
            server: starts the process.
            request: the query; it names no file for the rows.
            control: cancels the query.

        Raises:
            OdfError: the query is invalid or was stopped, or its process failed.
        """
        import pyarrow as pa

        control.check()
        self._memory = server.memory
        self._control = control
        self._is_planning = isinstance(request, SqlRequest) and request.limit == 0
        self._channel, reading = server.fork(is_planning=self._is_planning)
        self._rows = io.BufferedReader(_Pipe(reading, control), _BUFFER)
        try:
            control.on_stop(self._channel.hang_up)
            with suppress(OSError):  # it has already exited
                self._channel.send(request)
            self._reader = pa.ipc.open_stream(pa.PythonFile(self._rows, "r"))
        except BaseException as error:  # noqa: BLE001  raised again, or what it stands for
            why = self._why() if isinstance(error, Exception) else error
            self.close()
            raise why from (None if why is error else error)
        self.schema: pa.Schema = self._reader.schema

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Implement `RowStream`."""
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
        result = _ending(self._channel)
        self._control.stop_clock()
        if not isinstance(result, SqlResponseSuccess):
            raise self._why(result)

    def close(self) -> None:
        """Implement `RowStream`."""
        self._channel.close()
        self._rows.close()

    def _why(self, result: Ending | None = None) -> Exception:
        """Return the error for a stream that ends early."""
        if self._control.is_stopped:
            return self._control.why
        result = result or _ending(self._channel)
        if isinstance(result, TransformResponseInvalidQuery | TransformResponseInternalError):
            return as_error(result)
        how = result if isinstance(result, Breakdown) else None
        return _ended(how, self._memory, is_planning=self._is_planning)
