"""Messages between clients and the worker of an engine over its socket: one JSON document per line.

A connection is for one request:

    client   Hello, then one request
    worker   Welcome or Refusal; then Progress every second or so, and in the end a profile and one response

A client that hangs up cancels its request. Jobs and results also go between the worker and the process that it
confines, which has no other connections.
"""

from __future__ import annotations

import json
import socket
from contextlib import suppress
from enum import Enum
from typing import Any, TypeAlias, TypeVar

from odfpy.codec.errors import RaisedError, as_value, error_of
from odfpy.codec.tree import from_tree, to_tagged_tree
from odfpy.data.scalars import U32, U64
from odfpy.engine.cancellation import JobProgress
from odfpy.engine.contract import (
    AnalyzeRequest,
    AnalyzeResponseSuccess,
    JobRequest,
    JobResponseDone,
    PreprocessRequest,
    PreprocessResponseSuccess,
    SqlRequest,
    SqlResponseSuccess,
    TransformRequest,
    TransformResponseInternalError,
    TransformResponseInvalidQuery,
    TransformResponseNeedsHistory,
    TransformResponseProgress,
    TransformResponseSuccess,
)
from odfpy.engine.scans import ScanRequest
from odfpy.engine.sql.files import FilesRequest
from odfpy.engine.tracing import TraceRequest, TraceResponseSuccess
from odfpy.engine.worker.job_profile import JobProfile
from odfpy.errors import EngineUnavailable, MalformedData, OdfError
from odfpy.values import dataclass

MAX_MESSAGE_SIZE = 64 << 20
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Hello:
    """The first message of a client, with the workspace's secret."""

    secret: str


@dataclass(frozen=True, slots=True)
class Welcome:
    """The answer to a correct secret.

    Attributes:
        fingerprint: fingerprint of the worker (`odfpy.engine.worker.launch`); if the client's differs, it needs another
            worker.
        weakness: what its sandbox lacks, in words.
    """

    fingerprint: str
    weakness: str | None = None


@dataclass(frozen=True, slots=True)
class Refusal:
    """The request will not be served, and nothing has been done for it.

    Attributes:
        message: the reason.
        retry: whether another worker may serve it.
    """

    message: str
    retry: bool


@dataclass(frozen=True, slots=True)
class Breakdown:
    """The engine broke down during the request, and ends.

    Attributes:
        message: what happened.
        hint: how to fix it, if known.
        error: the error as it was raised; older workers do not send it.
    """

    message: str
    hint: str | None = None
    error: RaisedError | None = None

    @classmethod
    def of(cls, error: OdfError) -> Breakdown:
        """Return the message for an error."""
        return cls(error.message, error.hint, as_value(error))

    def raised(self) -> OdfError:
        """Return the error, with the class that it was raised with."""
        if self.error is None:
            return EngineUnavailable(self.message, hint=self.hint)
        return error_of(self.error, EngineUnavailable)


@dataclass(frozen=True, slots=True)
class StatusRequest:
    """A request for the status of the worker."""


@dataclass(frozen=True, slots=True)
class StopRequest:
    """A request that ends the worker.

    Attributes:
        force: whether to end at once, instead of after the current job.
    """

    force: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """The status of a worker.

    Attributes:
        pid: process id of the worker.
        java_pid: process id of Spark's Java process.
        ready: whether Spark has started.
        busy: whether a job is running.
        uptime_millis: milliseconds since the worker began.
        start_millis: milliseconds from the worker's begin until Spark could serve the first job.
        jobs_done: number of jobs served so far, whatever their results.
        memory_bytes: how much memory both processes hold.
        engine_version: see `odfpy.engine.registry.Engine.version`.
        java: version of Java, and where it comes from.
        startup_cache: whether Java uses a start-up cache.
        sandbox: how it is confined, in words.
    """

    pid: U32
    java_pid: U32 | None
    ready: bool
    busy: bool
    uptime_millis: U64
    start_millis: U64 | None
    jobs_done: U64
    memory_bytes: U64
    engine_version: str
    java: str
    startup_cache: bool
    sandbox: str


Job: TypeAlias = AnalyzeRequest | TransformRequest | PreprocessRequest | SqlRequest | TraceRequest | JobRequest
FromClient: TypeAlias = Hello | Job | StatusRequest | StopRequest
Result: TypeAlias = (
    AnalyzeResponseSuccess
    | TransformResponseSuccess
    | PreprocessResponseSuccess
    | SqlResponseSuccess
    | TraceResponseSuccess
    | JobResponseDone
    | TransformResponseNeedsHistory
    | TransformResponseProgress
    | TransformResponseInvalidQuery
    | TransformResponseInternalError
)
Answer: TypeAlias = Refusal | Breakdown | JobProgress | JobProfile | Result
FromWorker: TypeAlias = Welcome | Status | Answer


# --- Between the worker and the process that it confines -------------------------------------------------------------


class HostQueryKind(Enum):
    """The kinds of questions that the worker asks while a job is running."""

    TASKS = "tasks"
    CANCEL = "cancel"
    SETTLES = "settles"
    DEATH = "death"


@dataclass(frozen=True, slots=True)
class HostQuery:
    """A question.

    Attributes:
        what: the question.
        millis: how many milliseconds to wait for the answer.
    """

    what: HostQueryKind
    millis: U64 = 0


@dataclass(frozen=True, slots=True)
class HostReply:
    """The answer to a question: some numbers, or a text."""

    numbers: tuple[U64, ...] = ()
    text: str | None = None


@dataclass(frozen=True, slots=True)
class StartPart:
    """A phase of the start, and when it was done."""

    name: str
    millis: U64


@dataclass(frozen=True, slots=True)
class Started:
    """Spark has started.

    Attributes:
        java_pid: process id of Java, as seen from inside.
        uses_cache: whether Java uses the start-up cache.
        parts: see `SparkHost.timings`.
    """

    java_pid: U32
    uses_cache: bool
    parts: tuple[StartPart, ...]


Start: TypeAlias = Started | Breakdown
HostMessage: TypeAlias = HostQuery | HostReply


class Channel:
    """Messages over a connected socket. One thread may send while another one receives.

    Attributes:
        socket: the socket.
    """

    def __init__(self, connected: socket.socket) -> None:
        self.socket = connected
        self._received = bytearray()

    def send(self, message: FromClient | FromWorker | ScanRequest | FilesRequest | Started | HostMessage) -> None:
        """Send a message.

        Raises:
            OSError: the other side is gone, or has not read for longer than the socket's time-out.
        """
        self.socket.sendall(json.dumps(to_tagged_tree(message), separators=(",", ":")).encode() + b"\n")

    def receive(self, of: type[T] | Any) -> T | None:
        """Return the next message, which must be of a type or union; None at the end of the connection.

        Raises:
            MalformedData: something else came.
            OSError: the connection broke, or the socket's time-out has passed; a partly received message is retained.
        """
        seen = 0
        while (end := self._received.find(b"\n", seen)) < 0:
            seen = len(self._received)
            if seen > MAX_MESSAGE_SIZE:
                raise MalformedData(f"A message to or from the engine is longer than {MAX_MESSAGE_SIZE} bytes")
            chunk = self.socket.recv(1 << 16)
            if not chunk:
                return None
            self._received += chunk
        line = bytes(self._received[:end])
        del self._received[: end + 1]
        try:
            tree = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise MalformedData(f"A message to or from the engine is not JSON: {line[:80]!r}") from error
        value: T = from_tree(of, tree)
        return value

    def hang_up(self) -> None:
        """Close the connection, from any thread: the receiver sees its end."""
        with suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Hang up."""
        self.socket.close()
