"""What clients write in headers is read as RFC 9110 has it, and in no time, however long it is."""

from __future__ import annotations

import time

import pytest
from starlette.requests import Request

from odfpy.serving.http.json_responses import reply
from odfpy.serving.http.ranges import Unsatisfiable, span_of

TREE = {"rows": ["x" * 2000]}
LONG = " " * 20_000


def request(**headers: str) -> Request:
    fields = [(name.replace("_", "-").lower().encode(), value.encode()) for name, value in headers.items()]
    return Request({"type": "http", "method": "GET", "path": "/", "headers": fields})


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("bytes=0-9", (0, 10)),
        ("bytes= 10 - 19 ", (10, 20)),
        ("bytes=90-", (90, 100)),
        ("bytes=90-999", (90, 100)),
        ("bytes=-7", (93, 100)),
        ("bytes= - 7", (93, 100)),
        ("bytes=-", None),
        ("bytes=5-4", None),
        ("bytes=0-1,3-4", None),
        ("rows=0-1", None),
        ("", None),
    ],
)
def test_a_range_is_one_of_bytes(text: str, span: tuple[int, int] | None) -> None:
    assert span_of(request(Range=text), '"tag"', 100) == span


@pytest.mark.parametrize("text", ["bytes=100-", "bytes=-0"])
def test_there_has_to_be_something_in_a_range(text: str) -> None:
    with pytest.raises(Unsatisfiable):
        span_of(request(Range=text), '"tag"', 100)


@pytest.mark.parametrize(
    ("accepted", "encoding"),
    [
        ("gzip", "gzip"),
        ("gzip, zstd", "zstd"),
        ("zstd;q=0.1, gzip ; q = 0.2 ", "gzip"),
        ("*", "zstd"),
        ("zstd;q=0, gzip;q=0", None),
        ("br", None),
        ("", None),
    ],
)
def test_answers_are_packed_as_the_client_prefers(accepted: str, encoding: str | None) -> None:
    assert reply(request(Accept_Encoding=accepted), TREE).headers.get("Content-Encoding") == encoding


def test_long_headers_take_no_time() -> None:
    begin = time.process_time()
    assert span_of(request(Range=f"bytes={LONG}x"), '"tag"', 100) is None
    assert span_of(request(Range=f"bytes=1{LONG}-{LONG}2{LONG}"), '"tag"', 100) == (1, 3)
    for accepted in (f"gzip{LONG}!", f"{LONG}gzip{LONG};{LONG}q{LONG}={LONG}1{LONG}!"):
        assert "Content-Encoding" not in reply(request(Accept_Encoding=accepted), TREE).headers
    assert time.process_time() - begin < 0.5
