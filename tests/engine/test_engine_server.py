"""The worker's side of the socket, with a stand-in for Spark that works until it is told to stop."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from odfpy.engine.cancellation import Stage
from odfpy.engine.contract import SqlRequest, SqlResponseSuccess
from odfpy.engine.worker.messages import (
    Channel,
    FromWorker,
    Hello,
    Refusal,
    Status,
    StatusRequest,
    StopRequest,
    Welcome,
)
from odfpy.engine.worker.run_folder import RunFolder
from odfpy.engine.worker.server import PendingJob, Server

JOB = SqlRequest("SELECT 1", (), "/nowhere/result")
STATUS = Status(
    pid=1, java_pid=None, ready=True, busy=False, uptime_millis=5, start_millis=3, jobs_done=0, memory_bytes=9,
    engine_version="v", java="25", startup_cache=False,
    sandbox="off",
)  # fmt: skip


class HandMadeWork:
    """Jobs are done when the test says so."""

    def __init__(self) -> None:
        self.jobs: list[PendingJob] = []
        self.submitted = threading.Event()
        self.cancelled = threading.Event()
        self.stopped: bool | None = None
        self.takes_jobs = True

    def submit(self, job: PendingJob) -> bool:
        if self.takes_jobs:
            self.jobs.append(job)
            self.submitted.set()
        return self.takes_jobs

    def tasks(self) -> tuple[int, int]:
        return 2, 7

    def cancel(self, job: PendingJob) -> None:
        assert job.is_abandoned
        self.cancelled.set()

    def status(self) -> Status:
        return STATUS

    def stop(self, *, force: bool) -> None:
        self.stopped = force


@pytest.fixture
def work() -> HandMadeWork:
    return HandMadeWork()


@pytest.fixture
def run(tmp_path: Path, work: HandMadeWork) -> Iterator[RunFolder]:
    folder = RunFolder(tmp_path)
    with folder.listen() as listener:
        Server(listener, folder.make_secret(), Welcome("fingerprint"), work).start()
        yield folder
        listener.shutdown(socket.SHUT_RDWR)  # ends the thread that accepts


@pytest.fixture
def client(run: RunFolder) -> Iterator[Channel]:
    with run.connect() as connected:
        connected.settimeout(20)
        yield Channel(connected)


def greet(client: Channel, run: RunFolder) -> None:
    client.send(Hello(run.read_secret()))
    assert client.receive(FromWorker) == Welcome("fingerprint")


def test_a_wrong_secret_is_refused(client: Channel, work: HandMadeWork):
    client.send(Hello("guessed"))
    assert client.receive(FromWorker) == Refusal("The secret is wrong", retry=False)
    assert client.receive(FromWorker) is None
    assert not work.jobs


def test_nothing_is_served_before_the_secret(client: Channel, work: HandMadeWork):
    client.send(StopRequest(force=True))
    assert client.receive(FromWorker) is None
    assert work.stopped is None


def test_noise_is_refused(client: Channel):
    client.socket.sendall(b"GET / HTTP/1.1\r\n\r\n")
    answer = client.receive(FromWorker)
    assert isinstance(answer, Refusal)
    assert "Not understood" in answer.message


def test_a_client_hears_of_progress_and_gets_the_answer(client: Channel, run: RunFolder, work: HandMadeWork):
    greet(client, run)
    client.send(JOB)
    queued = client.receive(FromWorker)
    work.jobs[0].stage = Stage.RUNNING
    running = client.receive(FromWorker)
    work.jobs[0].answer(SqlResponseSuccess(3))
    assert (queued.stage, queued.tasks) == (Stage.QUEUED, 0)
    assert (running.stage, running.tasks_done, running.tasks) == (Stage.RUNNING, 2, 7)
    assert client.receive(FromWorker) == SqlResponseSuccess(3)
    assert client.receive(FromWorker) is None


def test_a_client_that_hangs_up_takes_its_job_back(client: Channel, run: RunFolder, work: HandMadeWork):
    greet(client, run)
    client.send(JOB)
    assert work.submitted.wait(20)
    client.close()
    assert work.cancelled.wait(20)
    work.jobs[0].answer(SqlResponseSuccess(3))  # which nobody hears


def test_jobs_are_refused_at_the_end_so_that_another_worker_may_take_them(
    client: Channel, run: RunFolder, work: HandMadeWork
):
    work.takes_jobs = False
    greet(client, run)
    client.send(JOB)
    assert client.receive(FromWorker) == Refusal("The engine is stopping", retry=True)


def test_status_and_stop(client: Channel, run: RunFolder, work: HandMadeWork):
    greet(client, run)
    client.send(StatusRequest())
    assert client.receive(FromWorker) == STATUS
    with run.connect() as other:
        channel = Channel(other)
        greet(channel, run)
        channel.send(StopRequest(force=True))
        assert channel.receive(FromWorker) == STATUS
        assert channel.receive(FromWorker) is None
    assert work.stopped is True
