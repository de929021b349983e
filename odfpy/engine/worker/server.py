"""The worker's side of the socket: connections are accepted, authenticated, and served until their request is answered.

Every connection has a thread, which notices when its client hangs up; jobs are done in another thread, one by one.
"""

from __future__ import annotations

import hmac
import select
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final, Protocol

from odfpy.engine.cancellation import JobProgress, Stage
from odfpy.engine.contract import AnalyzeRequest, JobRequest, PreprocessRequest, SqlRequest, TransformRequest
from odfpy.engine.tracing import TraceRequest
from odfpy.engine.worker.job_profile import JobProfile
from odfpy.engine.worker.messages import (
    Channel,
    FromClient,
    FromWorker,
    Hello,
    Job,
    Refusal,
    Status,
    StatusRequest,
    StopRequest,
    Welcome,
)
from odfpy.errors import OdfError

PROGRESS_SECONDS: Final = 1.0
"""A client with a job hears from the worker at least so often."""

_HELLO_SECONDS: Final = 30.0
_SEND_SECONDS: Final = 30.0


class PendingJob:
    """A job, and the client that waits for it.

    Attributes:
        request: the request.
        stage: the stage of the job.
        came: when it came, by `time.perf_counter`.
        finished: set when the client has its answer, or when it has hung up and the work has stopped.
    """

    def __init__(self, request: Job, channel: Channel) -> None:
        self.request = request
        self.stage = Stage.QUEUED
        self.came = time.perf_counter()
        self.finished = threading.Event()
        self._channel = channel
        self._abandoned = threading.Event()
        self._sending = threading.Lock()

    @property
    def is_abandoned(self) -> bool:
        """True if nobody waits for the job any longer."""
        return self._abandoned.is_set()

    def abandon(self) -> None:
        """Note that nobody waits for the job any longer."""
        self._abandoned.set()

    def report(self, tasks: tuple[int, int]) -> None:
        """Report the progress of the job to the client."""
        with self._sending:
            if not self.finished.is_set():
                self._channel.send(JobProgress(self.stage, *tasks))

    def answer(self, message: FromWorker, profile: JobProfile | None = None) -> None:
        """Send the final message to the client; a client that has gone is ignored.

        Args:
            message: the result of the job.
            profile: the profile of the job, None if nothing was done.
        """
        with self._sending, suppress(OSError):
            if not self.finished.is_set():
                self.finished.set()
                if not self.is_abandoned:
                    if profile is not None:
                        self._channel.send(profile)
                    self._channel.send(message)
                self._channel.socket.shutdown(socket.SHUT_RDWR)  # wakes up the thread that follows the client

    def follow(self, tasks: Callable[[], tuple[int, int]]) -> bool:
        """Report to the client until the job is finished; return False when the client hangs up before."""
        poll = select.poll()
        poll.register(self._channel.socket, select.POLLIN)
        try:
            while not self.finished.is_set():
                if poll.poll(PROGRESS_SECONDS * 1000):
                    if not self._channel.socket.recv(1 << 16):
                        break
                else:
                    self.report(tasks() if self.stage is Stage.RUNNING else (0, 0))
        except OSError:
            pass
        return self.finished.is_set()


class Work(Protocol):
    """The interface of the worker that the server needs."""

    def submit(self, job: PendingJob) -> bool:
        """Queue a job; return False when no more jobs are taken."""

    def tasks(self) -> tuple[int, int]:
        """Return how many tasks of the running job are done, and how many it has."""

    def cancel(self, job: PendingJob) -> None:
        """Stop a job that nobody waits for any longer; returns when it has stopped."""

    def status(self) -> Status:
        """Return the status of the worker."""

    def stop(self, *, force: bool) -> None:
        """Stop the worker, after the running job or at once."""


class Server:
    """Server for the connections of a listening socket.

    Attributes:
        work: the worker that does the jobs.
    """

    def __init__(self, listener: socket.socket, secret: str, welcome: Welcome, work: Work) -> None:
        self.work = work
        self._listener = listener
        self._secret = secret
        self._welcome = welcome

    def start(self) -> None:
        """Begin to serve, in daemon threads."""
        threading.Thread(target=self._accept, name="accept", daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                connected, _ = self._listener.accept()
            except OSError:
                return  # the worker ends
            threading.Thread(target=self._serve, args=(connected,), name="client", daemon=True).start()

    def _serve(self, connected: socket.socket) -> None:
        channel = Channel(connected)
        with connected, suppress(OSError):
            connected.settimeout(_HELLO_SECONDS)
            try:
                hello = channel.receive(FromClient)
                if not isinstance(hello, Hello):
                    return
                if not hmac.compare_digest(hello.secret.encode(), self._secret.encode()):
                    channel.send(Refusal("The secret is wrong", retry=False))
                    return
                channel.send(self._welcome)
                request = channel.receive(FromClient)
            except OdfError as error:
                channel.send(Refusal(f"Not understood: {error.message}", retry=False))
                return
            connected.settimeout(_SEND_SECONDS)
            self._answer(channel, request)

    def _answer(self, channel: Channel, request: FromClient | None) -> None:
        match request:
            case StatusRequest():
                channel.send(self.work.status())
            case StopRequest(force):
                channel.send(self.work.status())
                self.work.stop(force=force)
            case (
                AnalyzeRequest()
                | TransformRequest()
                | PreprocessRequest()
                | SqlRequest()
                | TraceRequest()
                | JobRequest()
            ):
                job = PendingJob(request, channel)
                if not self.work.submit(job):
                    channel.send(Refusal("The engine is stopping", retry=True))
                elif not job.follow(self.work.tasks):
                    job.abandon()
                    self.work.cancel(job)
            case Hello():
                channel.send(Refusal("A request was expected", retry=False))
            case None:
                pass
