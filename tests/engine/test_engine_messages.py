"""Messages between clients and the worker."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from odfpy.engine.cancellation import JobProgress, Stage
from odfpy.engine.contract import TransformResponseInternalError
from odfpy.engine.worker.messages import (
    Answer,
    Channel,
    FromClient,
    FromWorker,
    Hello,
    Refusal,
    StopRequest,
)
from odfpy.engine.worker.training import training_jobs
from odfpy.errors import MalformedData

Pair = tuple[Channel, Channel]


@pytest.fixture
def pair() -> Iterator[Pair]:
    one, other = socket.socketpair()
    with one, other:
        one.settimeout(10)
        other.settimeout(10)
        yield Channel(one), Channel(other)


def test_requests_arrive_as_they_were_sent(pair: Pair, tmp_path: Path):
    client, worker = pair
    sent = [Hello("abc"), *training_jobs(tmp_path), StopRequest(force=True)]
    for message in sent:
        client.send(message)
    assert [worker.receive(FromClient) for _ in sent] == sent


def test_answers_arrive_as_they_were_sent(pair: Pair):
    client, worker = pair
    sent = [
        JobProgress(Stage.RUNNING, 3, 8),
        Refusal("no", retry=True),
        TransformResponseInternalError("lines\nand \u2028 more", "x" * 10_000),
    ]
    for message in sent:
        worker.send(message)
    assert [client.receive(FromWorker) for _ in sent] == sent


def test_the_end_of_a_connection_is_none(pair: Pair):
    client, worker = pair
    client.close()
    assert worker.receive(FromClient) is None


@pytest.mark.parametrize(
    "line",
    [b"GET / HTTP/1.1", b"\xff\xfe", b"[" * 100_000, b"{}", b'{"kind":"Hello"}', b'{"kind":"Rm","path":"/"}', b"7"],
)
def test_what_is_no_message_is_an_error(pair: Pair, line: bytes):
    client, worker = pair
    client.socket.sendall(line + b"\n")
    with pytest.raises(MalformedData):
        worker.receive(FromClient)


def test_a_client_does_not_take_a_greeting_for_an_answer(pair: Pair):
    client, worker = pair
    worker.socket.sendall(b'{"kind":"Welcome","fingerprint":"x"}\n')
    with pytest.raises(MalformedData, match="unknown kind 'Welcome'"):
        client.receive(Answer)
