"""The stores of a dataset behind a static file server."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.fixtures import KAMU
from support.static_server import StaticServer, send, static_server

from odfpy.chain.layout import DatasetLayout
from odfpy.chain.ref_store import HEAD
from odfpy.data.multihash import Multihash
from odfpy.errors import HashMismatch, InvalidValue, ObjectNotFound, TransferError
from odfpy.repository.http import http_dataset

LOCAL = DatasetLayout.local(KAMU / "cities")
ABSENT = Multihash.of(b"nothing")


@pytest.fixture
def server() -> Iterator[StaticServer]:
    with static_server(KAMU) as site:
        yield site


@pytest.fixture
def remote(server: StaticServer) -> DatasetLayout:
    return http_dataset(f"{server.url}/cities/")


def test_whole_dataset_can_be_read_in_place(remote: DatasetLayout, server: StaticServer):
    assert remote.chain.state() == LOCAL.chain.state()
    for name in LOCAL.data:
        assert remote.data.read(name) == LOCAL.data.read(name)
    assert server.connections == 1


def test_objects_that_are_there_and_those_that_are_not(remote: DatasetLayout):
    for name in LOCAL.data:
        assert name in remote.data
        assert remote.data.size(name) == LOCAL.data.size(name)
    assert ABSENT not in remote.data
    assert "text" not in remote.data
    with pytest.raises(ObjectNotFound, match=f"cities/data/{ABSENT}"):
        remote.data.size(ABSENT)
    with pytest.raises(ObjectNotFound, match=f"cities/data/{ABSENT}"):
        remote.data.open(ABSENT)
    assert remote.data.local_path(ABSENT) is None


def test_reading_checks_the_hash(remote: DatasetLayout, server: StaticServer):
    server.special[str(ABSENT)] = lambda handler: send(handler, b"something")
    with pytest.raises(HashMismatch, match=f"cities/data/{ABSENT}"):
        remote.data.read(ABSENT)


def test_references(remote: DatasetLayout):
    assert remote.refs.get(HEAD) == LOCAL.refs.get(HEAD)
    assert remote.refs.get("other") is None
    with pytest.raises(InvalidValue):
        remote.refs.get("../blocks")


def test_nothing_can_be_written_or_listed(remote: DatasetLayout, tmp_path):
    for attempt in (
        lambda: remote.refs.compare_and_swap(HEAD, None, ABSENT),
        lambda: remote.refs.delete(HEAD, ABSENT),
        lambda: remote.data.insert(b"x"),
        lambda: remote.data.insert_file(tmp_path, ABSENT),
        lambda: remote.data.delete(ABSENT),
    ):
        with pytest.raises(TransferError, match="read-only"):
            attempt()
    for listing in (lambda: list(remote.data), remote.refs.names):
        with pytest.raises(TransferError, match="cannot list"):
            listing()


@pytest.mark.parametrize("status", [401, 403, 500, 206])
def test_refusals_are_told_with_the_place_and_without_the_password(server: StaticServer, status: int):
    server.special["/head"] = lambda handler: send(handler, b"no", status=status)
    remote = http_dataset(server.url.replace("//", "//user:secret@") + "/cities")
    with pytest.raises(TransferError, match=f"cities/refs/head: the server answers with status {status}") as caught:
        remote.refs.get(HEAD)
    assert "secret" not in str(caught.value) + remote.data.describe(ABSENT) + remote.refs.describe(HEAD)


def test_size_that_is_not_told(remote: DatasetLayout, server: StaticServer):
    server.special[str(ABSENT)] = lambda handler: send(handler, b"", Content_Length=None)
    with pytest.raises(TransferError, match="does not say how large"):
        remote.data.size(ABSENT)
