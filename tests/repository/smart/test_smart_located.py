"""Where a server says that objects are: followed within limits."""

from __future__ import annotations

import io

import pytest
from support.servers.static_server import StaticServer, cut_after, endless, send, static_server

from odfpy.chain.layout import DatasetLayout
from odfpy.data.multihash import Multihash
from odfpy.errors import IntegrityError, OdfError, TransferError
from odfpy.http.client import HttpClient
from odfpy.repository.objects import ObjectKind, ObjectOfBlock, copy_objects
from odfpy.repository.peer_errors import ProtocolViolation
from odfpy.repository.smart_transfer.located import Downloads, Uploads
from odfpy.repository.smart_transfer.messages import HeaderRow, TransferUrl
from odfpy.repository.smart_transfer.session import Located

DATA = b"the bytes of an object"
NAME = Multihash.of(DATA)
ITEM = ObjectOfBlock(ObjectKind.DATA_SLICE, NAME, len(DATA), Multihash.of(b"block"))


@pytest.fixture
def server(tmp_path):
    with static_server(tmp_path) as site:
        yield site


def fetched(url: str, *headers: tuple[str, str], base: str = "http://node") -> DatasetLayout:
    rows = tuple(HeaderRow(*row) for row in headers)
    source = Downloads([Located(ITEM, TransferUrl(url, rows))], base, HttpClient(TransferError))
    target = DatasetLayout.in_memory()
    theirs = DatasetLayout(target.refs, target.blocks, source, target.checkpoints)
    copy_objects(theirs, target, [ITEM], lambda _done, _total: None)
    return target


def test_object_is_fetched_with_the_headers_that_the_server_wants(
    server: StaticServer, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("ODF_TOKEN", "secret")
    server.special["/x"] = lambda handler: send(handler, DATA)
    wanted = (("x-odf-smtp-version", "1"), ("Host", "elsewhere"), ("Transfer-Encoding", "chunked"))
    assert fetched(f"{server.url}/x", *wanted).data.read(NAME) == DATA
    (headers,) = server.headers
    assert headers["x-odf-smtp-version"] == "1"
    assert "elsewhere" not in headers.values()
    assert not {"Transfer-Encoding", "Authorization"} & headers.keys()


@pytest.mark.parametrize(
    "url", ["file:///etc/passwd", "javascript:alert(1)", "", "http://", "//host/x", "ftp://host/x", "http://[::1"]
)
def test_only_http_is_followed(url: str):
    with pytest.raises(ProtocolViolation):
        fetched(url)


def test_https_does_not_lead_to_http(server: StaticServer):
    with pytest.raises(ProtocolViolation, match="not safe"):
        fetched(f"{server.url}/x", base="https://node")
    assert not server.requests


@pytest.mark.parametrize("row", [("x", "a\r\nHost: evil"), ("x y", "1"), ("", "1"), ("x", "é"), ("x\r\ny", "1")])
def test_headers_that_are_none_are_refused(server: StaticServer, row: tuple[str, str]):
    with pytest.raises(ProtocolViolation, match="header"):
        fetched(f"{server.url}/x", row)
    with pytest.raises(ProtocolViolation, match="headers"):
        fetched(f"{server.url}/x", *[(f"x-{at}", "1") for at in range(100)])


@pytest.mark.parametrize(
    "answer",
    [
        endless(),
        cut_after(DATA, 5),
        lambda handler: send(handler, b"x" * len(DATA)),
        lambda handler: send(handler, DATA[:-1]),
        lambda handler: send(handler, DATA + b"!"),
        lambda handler: send(handler, b"expired", status=403),
        lambda handler: send(handler, b"gone", status=410),
    ],
    ids=["endless", "cut", "forged", "short", "long", "expired", "gone"],
)
def test_what_is_not_the_object_is_an_error_that_names_it_and_hides_the_url(server: StaticServer, answer):
    server.special["signature=secret"] = answer
    with pytest.raises(OdfError, match=str(NAME)) as caught:
        fetched(f"{server.url}/x?signature=secret")
    assert "secret" not in caught.value.message


def given(url: str, data: bytes = DATA, size: int = len(DATA)) -> Uploads:
    target = Uploads([Located(ITEM, TransferUrl(url))], "http://node", HttpClient(TransferError))
    target.insert_stream(io.BytesIO(data), NAME, size=size)
    return target


def test_server_that_answers_before_it_has_all_is_heard(server: StaticServer):
    # The static server knows no PUT: it refuses at once, without reading the body.
    with pytest.raises(TransferError, match="status 501"):
        given(f"{server.url}/x", b"x" * (8 << 20), 8 << 20)


def test_file_of_another_size_is_not_sent_as_if_it_were_whole(server: StaticServer):
    for data in (DATA[:-1], DATA + b"!"):
        with pytest.raises(IntegrityError, match="another size"):
            given(f"{server.url}/x", data)


def test_uploads_that_are_stopped_end(server: StaticServer):
    target = Uploads([Located(ITEM, TransferUrl(f"{server.url}/x"))], "http://node", HttpClient(TransferError))
    target.stop()
    with pytest.raises(TransferError, match="Stopped"):
        target.insert_stream(io.BytesIO(DATA), NAME, size=len(DATA))
    assert target.count == 0
