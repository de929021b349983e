"""Whatever an engine's process raises comes out as what it was: class, code, message, hint and fields."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest
from support.engine.raised_errors import JOBS, contents, error_classes, sample

from odfpy.codec.errors import RaisedError
from odfpy.data.vocabulary import DEFAULT_VOCABULARY
from odfpy.dataset.transform import TransformSql
from odfpy.engine.cancellation import CancellationToken
from odfpy.engine.contract import (
    AnalyzeRequest,
    JobRequest,
    JobResponseDone,
    SqlRequest,
    TransformResponseInternalError,
    TransformResponseInvalidQuery,
)
from odfpy.engine.datafusion import isolated
from odfpy.engine.datafusion.engine import DataFusionEngine
from odfpy.engine.datafusion.isolated import ForkServer
from odfpy.engine.jobs import result_of
from odfpy.engine.responses import as_error
from odfpy.engine.worker.job_profile import JobProfile
from odfpy.engine.worker.messages import Answer, Breakdown, Channel, Result, Start, Started
from odfpy.errors import (
    BadValue,
    EngineError,
    EngineUnavailable,
    InternalError,
    InvalidQuery,
    ObjectNotFound,
    OdfError,
    UnsupportedQuery,
)
from odfpy.ingest.lanes.failure import Failure
from odfpy.sandbox.python import python_command, python_environment

ALL = error_classes()
PROGRAM = "support.engine.raised_errors"


class SandboxedProcess:
    """A process that serves as the one in the sandbox does."""

    def __init__(self, *arguments: str) -> None:
        ours, theirs = socket.socketpair()
        self._questions, questions = socket.socketpair()
        descriptors = (theirs.fileno(), questions.fileno())
        command = python_command(PROGRAM, "spark", *map(str, descriptors), *arguments)
        with theirs, questions:
            self._process = subprocess.Popen(command, pass_fds=descriptors, env=python_environment(os.environ))
        self.channel = Channel(ours)
        ours.settimeout(120)

    def answer(self) -> Result | None:
        """What it says to a request, behind the profile of it."""
        assert isinstance(self.channel.receive(JobProfile | Result), JobProfile)
        answer: Result | None = self.channel.receive(Result)
        return answer

    def end(self) -> None:
        self.channel.close()
        self._questions.close()
        assert self._process.wait(60) in (0, 1)


@pytest.fixture(scope="module")
def process() -> Iterator[SandboxedProcess]:
    started = SandboxedProcess()
    try:
        assert isinstance(started.channel.receive(Start), Started)
        yield started
    finally:
        started.end()


@pytest.fixture(scope="module")
def datafusion() -> Iterator[DataFusionEngine]:
    def command(_module: str, memory: str, idle: str) -> list[str]:
        return python_command(PROGRAM, "datafusion", memory, idle)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(isolated, "python_command", command)
        server = ForkServer(1 << 30)
        server.begin()
        yield DataFusionEngine(server)
        server._end()


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__name__)
def test_an_operation_of_spark_raises_what_it_raised(process: SandboxedProcess, kind: type[OdfError]) -> None:
    process.channel.send(AnalyzeRequest(TransformSql(engine="spark", query=kind.code), DEFAULT_VOCABULARY, ()))
    response = process.answer()
    assert isinstance(response, TransformResponseInvalidQuery | TransformResponseInternalError)
    assert contents(as_error(response)) == contents(sample(kind))


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__name__)
def test_a_job_raises_what_it_raised(process: SandboxedProcess, kind: type[OdfError]) -> None:
    process.channel.send(JobRequest(f"{JOBS}:work", kind.code, ""))
    response = process.answer()
    assert isinstance(response, JobResponseDone)
    with pytest.raises(kind) as raised:
        result_of(response)
    assert contents(raised.value) == contents(sample(kind))


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__name__)
def test_a_process_of_datafusion_raises_what_it_raised(datafusion: DataFusionEngine, kind: type[OdfError]) -> None:
    with pytest.raises(kind) as raised:
        datafusion.stream(SqlRequest(kind.code, (), ""), CancellationToken())
    assert contents(raised.value) == contents(sample(kind))


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__name__)
def test_a_task_of_spark_raises_what_it_raised(kind: type[OdfError]) -> None:
    assert contents(Failure.of(sample(kind)).raised()) == contents(sample(kind))


def test_a_start_that_fails_says_what_it_was() -> None:
    started = SandboxedProcess("E507")
    answer = started.channel.receive(Start)
    started.end()
    assert isinstance(answer, Breakdown)
    error = answer.raised()
    assert (type(error).__name__, error.code, error.message) == ("JvmDied", "E507", sample(type(error)).message)


# --- Older workers, and other engines --------------------------------------------------------------------------------


def received(tree: dict[str, object], of: object) -> object:
    one, other = socket.socketpair()
    with one, other:
        one.sendall(json.dumps(tree).encode() + b"\n")
        return Channel(other).receive(of)


@pytest.mark.parametrize(
    ("tree", "kind"),
    [
        ({"kind": "TransformResponseInternalError", "message": "m"}, EngineError),
        ({"kind": "TransformResponseInvalidQuery", "message": "m", "fault": "unsupported"}, UnsupportedQuery),
        ({"kind": "TransformResponseInvalidQuery", "message": "m", "fault": "missing"}, ObjectNotFound),
        ({"kind": "TransformResponseInvalidQuery", "message": "m", "fault": "never heard of"}, InvalidQuery),
    ],
)
def test_a_response_without_the_error_is_understood_as_ever(tree: dict[str, object], kind: type[OdfError]) -> None:
    response = received(tree, Answer)
    assert isinstance(response, TransformResponseInvalidQuery | TransformResponseInternalError)
    error = as_error(response)
    assert (type(error), error.message) == (kind, "m")


def test_a_breakdown_without_the_error_is_understood_as_ever() -> None:
    ended = received({"kind": "Breakdown", "message": "m", "hint": "h"}, Answer)
    assert isinstance(ended, Breakdown)
    error = ended.raised()
    assert (type(error), error.message, error.hint) == (EngineUnavailable, "m", "h")


@pytest.mark.parametrize(
    ("name", "kind"),
    [("BadValue", BadValue), ("InternalError", InternalError), ("Nothing", EngineError), ("named", EngineError)],
)
def test_an_error_of_a_job_without_a_code_goes_by_its_name(name: str, kind: type[OdfError]) -> None:
    tree = {"kind": "JobResponseDone", "error": {"kind": name, "message": "m", "hint": "h"}}
    response = received(tree, Answer)
    assert isinstance(response, JobResponseDone)
    assert response.error == RaisedError(name, "m", "h")
    with pytest.raises(kind, match="m") as raised:
        result_of(response)
    assert (type(raised.value), raised.value.hint) == (kind, "h")


def test_classes_are_found_where_nothing_of_them_is_loaded() -> None:
    """By a process of its own, in which only the registry is."""
    program = (
        "import sys\n"
        "from odfpy.codec.errors import error_class\n"
        "for code in sys.stdin.read().split():\n"
        "    kind = error_class(code)\n"
        "    print(code, kind.__module__, kind.__qualname__)"
    )
    codes = " ".join(kind.code for kind in ALL)
    found = subprocess.run([sys.executable, "-c", program], input=codes, capture_output=True, text=True, check=True)
    assert found.stdout.splitlines() == [f"{kind.code} {kind.__module__} {kind.__qualname__}" for kind in ALL]
