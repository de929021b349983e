"""The stores of a dataset behind a static file server."""

from __future__ import annotations

from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler

import pytest
from support.fixtures import KAMU
from support.servers.static_server import Special, StaticServer, cut_after, send, static_server

from odfpy.chain.layout import DatasetLayout
from odfpy.chain.stores.ref_store import HEAD
from odfpy.data.multihash import Multihash
from odfpy.errors import HashMismatch, InvalidValue, ObjectNotFound, TransferError
from odfpy.repository.locations.http import http_dataset

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


def test_the_signature_of_a_bucket_that_a_server_redirects_to_is_not_told(server: StaticServer, remote: DatasetLayout):
    location = "/bucket/object?X-Amz-Signature=5ec2e7"
    server.special[location] = lambda handler: send(handler, b"expired", status=403)
    server.special[str(ABSENT)] = lambda handler: send(handler, b"", status=307, Location=location)
    for ask in (remote.data.open, remote.data.size):
        with pytest.raises(TransferError, match=r"/bucket/object: the server answers with status 403$"):
            ask(ABSENT)


def test_size_that_is_not_told(remote: DatasetLayout, server: StaticServer):
    server.special[str(ABSENT)] = lambda handler: send(handler, b"", Content_Length=None)
    with pytest.raises(TransferError, match="does not say how large"):
        remote.data.size(ABSENT)


# --- Connections that break -------------------------------------------------------------------------------------------


def breaking(content: bytes, *cuts: int, ranges: bool = True) -> Special:
    """Gives each answer only up to the next of some places, and the last one whole; 0 stands for an overloaded moment."""
    left = list(cuts)

    def answer(handler: SimpleHTTPRequestHandler) -> None:
        begin = int((handler.headers.get("Range") or "bytes=0-")[6:-1]) if ranges else 0
        end = left.pop(0) if left else len(content)
        if end == 0:
            send(handler, b"", status=503)
            return
        headers = {"Content_Range": f"bytes {begin}-{len(content) - 1}/{len(content)}"} if begin else {}
        length = len(content) - begin
        send(handler, content[begin:end], status=206 if begin else 200, Content_Length=length, **headers)
        handler.close_connection = True

    return answer


@pytest.mark.parametrize("ranges", [True, False])
def test_a_download_goes_on_where_it_broke_off(server: StaticServer, remote: DatasetLayout, ranges: bool):
    content = bytes(range(256)) * 1000
    name = Multihash.of(content)
    server.special[f"/data/{name}"] = breaking(content, 100_000, 0, ranges=ranges)
    target = DatasetLayout.in_memory().data
    with remote.data.open(name) as stream:
        target.insert_stream(stream, name, size=len(content))
    assert target.size(name) == len(content)
    assert [h.get("Range") for h in server.headers] == [None, "bytes=100000-", "bytes=100000-"]


def test_a_download_is_given_up_when_it_breaks_again_and_again(server: StaticServer, remote: DatasetLayout):
    name = Multihash.of(content := b"x" * 1000)
    server.special[f"/data/{name}"] = breaking(content, *range(1, 900))
    with remote.data.open(name) as stream, pytest.raises(TransferError, match=r"tried 4 times") as caught:
        stream.read(-1)
    assert caught.value.hint == "Run the command again."


def test_a_server_that_goes_on_elsewhere_is_found_out(server: StaticServer, remote: DatasetLayout):
    name = Multihash.of(content := b"x" * 1000)

    def wrong(handler: SimpleHTTPRequestHandler) -> None:
        if "Range" in handler.headers:
            send(handler, content[5:], status=206, Content_Range="bytes 5-999/1000")
        else:
            cut_after(content, 10)(handler)

    server.special[f"/data/{name}"] = wrong
    with remote.data.open(name) as stream, pytest.raises(TransferError, match="does not resume at byte 10"):
        stream.read(-1)


def test_a_download_that_waits_to_try_again_can_be_stopped(server: StaticServer, remote: DatasetLayout):
    name = Multihash.of(content := b"x" * 1000)
    server.special[f"/data/{name}"] = breaking(content, 1, 2, 3)
    stream = remote.data.open(name)
    assert stream.read(1) == b"x"
    stream.close()
    with pytest.raises(TransferError):
        stream.read(1)
