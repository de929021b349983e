"""DataFusion's work in processes of its own: one that takes too long, or too much memory, ends alone.

DataFusion looks only now and then whether its work is still wanted; in a join without a condition, for example, it
does not for hours. It breaks down over a query that is nested deeply enough, and with it the process that it is in. So
everything is done in a process that can be ended at any time. That is forked from one that has everything imported,
which takes some milliseconds.
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
"""What asks for a process that is to plan, and not to compute anything."""

PLANNING_MEMORY: Final = 1 << 30
"""Bytes that such a process may take."""

PLANNING_SECONDS: Final = 60.0
"""Seconds that it may take."""

IDLE_SECONDS: Final = 600.0
"""Seconds after which a process that all others are forked from is not kept for the next request."""

_COMPUTING: Final = b"q"
_ATTEMPTS: Final = 2
_SETTINGS: Final = {
    "MIMALLOC_ARENA_EAGER_COMMIT": "0",  # else a gigabyte that is only set aside counts as taken
    "JE_ARROW_MALLOC_CONF": "background_thread:false",  # threads are not forked
    "OPENBLAS_NUM_THREADS": "1",
}
_LOOK_MILLIS: Final = 50
_BUFFER: Final = 1 << 20
_OF_MEMORY: Final = frozenset(("SIGABRT", "SIGKILL"))
"""How a process ends that gets none: it gives up, or is ended by the system."""

Ending: TypeAlias = Result | Breakdown


class ForkServer:
    """Starts processes for requests; threads may share it. It ends with this process, or when nobody asks for a while.

    Attributes:
        memory: bytes that a request may take.
        idle: seconds without a request after which it gives its memory back; the next request starts it anew.
        pid: of the process that all others are forked from, once there is one.
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
        """Start what the processes are forked from, which takes a while, if it has not been started; do not wait."""
        with self._lock, suppress(OSError):
            self._connected()

    def fork(self, *, is_planning: bool) -> tuple[Channel, int]:
        """A new process: where it takes its request, and the pipe that its rows come from.

        Args:
            is_planning: whether it is to compute nothing; then it gets little memory.

        Raises:
            EngineUnavailable: there is none to be had.
        """
        mine, theirs = socket.socketpair()
        reading, writing = os.pipe()
        try:
            self._send(PLANNING if is_planning else _COMPUTING, [theirs.fileno(), writing])
        except OSError as error:
            mine.close()
            os.close(reading)
            raise EngineUnavailable(f"No process can be started for the query: {error.strerror}") from error
        finally:
            # In any case: as long as a copy is open here, the end of the child is not the end of its rows.
            theirs.close()
            os.close(writing)
        return Channel(mine), reading

    def _send(self, kind: bytes, descriptors: list[int]) -> None:
        with self._lock:
            for attempt in range(_ATTEMPTS):
                control = self._connected()
                try:
                    socket.send_fds(control, [kind], descriptors)
                except OSError:  # it has been killed
                    self._end()
                    self._control = None
                    if attempt + 1 == _ATTEMPTS:
                        raise
                else:
                    return

    def _connected(self) -> socket.socket:
        if self._control is None or self._owner != os.getpid():  # one of before a fork is not ours
            self._control, self._owner = self._start(), os.getpid()
        return self._control

    def _start(self) -> socket.socket:
        mine, theirs = socket.socketpair()
        with theirs:
            process = subprocess.Popen(
                python_command("odfpy.engine.datafusion.fork_server", str(self.memory), str(self.idle)),
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,  # where Rust tells that it has no memory
                env=python_environment(os.environ, **_SETTINGS),
                start_new_session=True,  # Ctrl-C is not for it
            )
        self.pid = process.pid
        self._end = weakref.finalize(self, _end, mine, process, os.getpid())
        return mine


def _end(control: socket.socket, process: subprocess.Popen[bytes], owner: int) -> None:
    """End a server; those whom it has started end with who has asked."""
    control.close()
    if owner == os.getpid():
        process.kill()
        process.wait()


@cache
def fork_server(memory: int) -> ForkServer:
    """The one of this process.

    Args:
        memory: bytes that a request may take.
    """
    return ForkServer(memory)


def ask(server: ForkServer, request: Job, control: CancellationToken, *, is_planning: bool = False) -> Result:
    """Return what a process of its own answers to a request.

    Args:
        server: the process that is forked.
        request: the request.
        control: tells when the work is cancelled.
        is_planning: whether it is for a plan only, with lower limits.

    Raises:
        QueryCancelled, QueryTimedOut: the token says that it is not wanted any more.
        QueryEnded: the process has ended in some other way.
        EngineUnavailable: none can be started.
    """
    control.check()
    with stage("DataFusion"):
        asked = time.perf_counter()
        channel, rows = server.fork(is_planning=is_planning)
        os.close(rows)
        try:
            control.on_stop(channel.hang_up)
            with suppress(OSError):  # it has ended already
                channel.send(request)
            found = _ending(channel, asked)
        finally:
            channel.close()
    if found is None or isinstance(found, Breakdown):
        raise control.why if control.is_stopped else _ended(found, server.memory, is_planning=is_planning)
    control.stop_clock()
    return found


def _ending(channel: Channel, asked: float | None = None) -> Ending | None:
    """Return what a process says in the end, or what is said of it; nothing if there is nobody any more.

    Args:
        channel: where it says so.
        asked: when the process was asked for, as `time.perf_counter` has it, where that is to be in a profile.
    """
    with suppress(OSError, MalformedData):
        found: Ending | JobProfile | None = channel.receive(Ending | JobProfile)
        if isinstance(found, JobProfile):
            here = current() if asked is not None else None
            start = None if here is None else here.part("start")
            seconds = found.take_in()
            if start is not None and asked is not None:
                start.add(max(0.0, time.perf_counter() - asked - seconds))
            found = channel.receive(Ending)
        return found
    return None


def _ended(how: Breakdown | None, memory: int, *, is_planning: bool) -> QueryEnded:
    """Why a process has ended without an answer."""
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
    """The output of a process; whoever waits for it checks now and then for cancellation."""

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
    """The rows of a query in a separate process, which ends when nobody wants them any more.

    Attributes:
        schema: of the rows.
    """

    def __init__(
        self, server: ForkServer, request: SqlRequest | ScanRequest | FilesRequest, control: CancellationToken
    ) -> None:
        """Begin, and wait for the columns.

        Args:
            server: starts the process.
            request: the query; it names no file for the rows.
            control: says whether it is still wanted.

        Raises:
            OdfError: the query is at fault or was stopped, or it has ended in some other way.
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
            with suppress(OSError):  # it has ended already
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
        """Why there are no more rows."""
        if self._control.is_stopped:
            return self._control.why
        result = result or _ending(self._channel)
        if isinstance(result, TransformResponseInvalidQuery | TransformResponseInternalError):
            return as_error(result)
        how = result if isinstance(result, Breakdown) else None
        return _ended(how, self._memory, is_planning=self._is_planning)
