"""The profile of a job on its way: as it was sent, merged where it arrives, and engines that send none."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest

from odfpy.dataset.transform import TransformSql
from odfpy.engine.contract import SqlRequest, SqlResponseSuccess, TransformResponseInternalError
from odfpy.engine.datafusion.engine import DataFusionEngine
from odfpy.engine.datafusion.isolated import ForkServer
from odfpy.engine.settings import EngineSettings
from odfpy.engine.worker.client import SparkEngine
from odfpy.engine.worker.job_profile import JobProfile
from odfpy.engine.worker.messages import Answer, Channel
from odfpy.stages import StageTime, profiling, stage

REQUEST = SqlRequest("select 1", (), "/tmp/nowhere")
DONE = SqlResponseSuccess(1)


def measured() -> StageTime:
    with profiling("job") as whole:
        with stage("plan") as plan, stage("optimize"):
            assert plan is not None
            plan.calls += 7
        with stage("Spark job") as job:
            assert job is not None
            job.jobs += 2
        whole.calls += 3
    return whole


def arrived(message: JobProfile) -> JobProfile:
    """The same message behind a socket."""
    one, other = map(Channel, socket.socketpair())
    one.send(message)
    found = other.receive(Answer)
    one.close()
    other.close()
    assert isinstance(found, JobProfile)
    return found


def test_it_arrives_as_it_was_sent():
    message = JobProfile.of(measured())
    assert arrived(message) == message
    lines = [line.split(" ", 5) for line in message.text.splitlines()]
    assert [(depth, name, calls, jobs) for depth, _, _, calls, jobs, name in lines] == [
        ("0", "job", "3", "0"),
        ("1", "plan", "7", "0"),
        ("2", "optimize", "0", "0"),
        ("1", "Spark job", "0", "2"),
    ]


def test_what_arrives_is_part_of_the_stage_that_waits_for_it():
    job = measured()
    with profiling("work") as whole, stage("Spark"):
        arrived(JobProfile.of(job)).add_to_current()
        arrived(JobProfile.of(job)).add_to_current()
    found = whole.at("Spark", "job")
    assert found is not None
    assert (found.times, found.all_calls, found.all_jobs) == (2, 20, 4)
    for _, one in found.walk():
        assert sum(part.seconds for part in one.parts.values()) <= one.seconds


def test_what_is_within_a_job_goes_into_the_job_that_is_measured_here():
    with profiling("job") as outside:
        arrived(JobProfile.within(measured())).add_to_current()
    assert list(outside.parts) == ["plan", "Spark job"]
    assert (outside.calls, outside.all_calls, outside.all_jobs) == (3, 10, 2)


def test_nobody_has_to_want_it():
    JobProfile.of(measured()).add_to_current()


def test_lines_that_go_deeper_than_they_may_do_no_harm():
    with profiling("work") as whole:
        JobProfile("3 1 5 0 0 deep\n1 1 5 0 0 less").add_to_current()
    assert [(depth, one.name) for depth, one in whole.walk()] == [(0, "work"), (1, "deep"), (2, "less")]


@pytest.mark.parametrize("text", ["nonsense", "0 1 -5 0 0 less", "0 1 5 0 0 ", "\x00", "0 1 5 0", "1e9 1 1 1 1 name"])
def test_what_makes_no_sense_is_passed_over(text: str):
    with profiling("work") as whole:
        assert JobProfile(f"{text}\n0 1 2000000 0 0 job").add_to_current() == 2.0
    assert list(whole.parts) == ["job"]


# --- Clients ---------------------------------------------------------------------------------------------------------


@contextmanager
def asked(*answers: object) -> Iterator[Callable[[], object]]:
    """Asks a worker that has these answers for a request."""
    ours, theirs = map(Channel, socket.socketpair())

    class Engine(SparkEngine):
        def _open(self, control: object) -> Channel:
            return ours

    def serve() -> None:
        theirs.receive(SqlRequest | JobProfile)
        for answer in answers:
            theirs.send(answer)  # type: ignore[arg-type]

    worker = threading.Thread(target=serve)
    worker.start()
    yield lambda: Engine(Path("/nowhere"), EngineSettings()).sql(REQUEST)
    worker.join()
    theirs.close()


def test_a_worker_that_sends_none_is_understood():
    with asked(DONE) as ask, profiling("work") as whole:
        assert ask() == DONE
    spark = whole.at("Spark")
    assert spark is not None
    assert list(spark.parts) == ["connect"]
    assert spark.seconds >= spark.parts["connect"].seconds


@pytest.mark.parametrize("answer", [DONE, TransformResponseInternalError("it is broken")])
def test_the_profile_comes_with_every_answer(answer: object):
    with asked(JobProfile("0 1 1 0 0 queue\n0 1 2 0 0 job"), answer) as ask, profiling("w") as whole:
        assert ask() == answer
    spark = whole.at("Spark")
    assert spark is not None
    assert list(spark.parts) == ["connect", "queue", "job"]


def test_a_client_without_a_profile_passes_over_it():
    with asked(JobProfile("0 1 2 0 0 job"), DONE) as ask:
        assert ask() == DONE


def test_datafusion_tells_its_stages_from_its_own_process():
    server = ForkServer(1 << 30)
    engine = DataFusionEngine(server)
    table = pa.table({"a": [1, 2, 3]})
    transform = TransformSql(engine="datafusion", query="select a * 2 as b from input")
    with profiling("work") as whole:
        assert engine.preprocess(transform, {"input": table}).num_rows == 3
    server._end()
    found = whole.at("DataFusion")
    assert found is not None
    assert list(found.parts) == ["start", "job"]
    assert sum(part.seconds for part in found.parts.values()) <= found.seconds
