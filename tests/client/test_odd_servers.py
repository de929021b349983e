"""Servers that answer what was not agreed upon are told as such, whatever they say, and waited for no longer."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import Any, cast

import pytest

from odfpy.client.rest import NotAnAnswer, RestBackend
from odfpy.http.client import HttpClient

FACTS: dict[str, Any] = {"name": "a", "id": "x", "kind": "Root", "head": "f", "numRecords": 1, "watermark": None}


class Answer(io.BytesIO):
    status = 200
    shown = "http://host"

    def readall(self) -> bytes:
        return self.read()


class Server:
    """Gives the same body to every question, at most ten times."""

    def __init__(self, body: bytes) -> None:
        self.body = body
        self.left = 10

    def get(self, url: str, **_: object) -> Answer:
        del url
        self.left -= 1
        assert self.left >= 0, "it is asked without end"
        return Answer(self.body)

    post = get


def backend(body: object) -> RestBackend:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return RestBackend("http://host", cast("HttpClient", Server(data)), {})


def test_a_page_that_comes_again_and_again_is_no_answer() -> None:
    page = [{**FACTS, "name": f"d{number}"} for number in range(1000)]
    with pytest.raises(NotAnAnswer, match="repeatedly"):
        backend(page).datasets()


def test_a_list_that_never_ends_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("odfpy.http.paging.MAX_DATASETS", 2500)
    asked = backend([])
    server = cast("Server", asked.client)
    pages = (
        json.dumps([{**FACTS, "name": f"d{at + number}"} for number in range(1000)]) for at in range(0, 9000, 1000)
    )
    monkeypatch.setattr(server, "get", lambda *_, **__: Answer(next(pages).encode()))
    with pytest.raises(NotAnAnswer, match="more than 2500"):
        asked.datasets()


@pytest.mark.parametrize("ask", [RestBackend.datasets, lambda asked: asked.dataset("a")])
@pytest.mark.parametrize("body", [b"[" * 100_000, b"<html>", ["x"], "x", 5, None, {"output": 1}])
def test_what_was_not_agreed_upon_is_no_answer(ask: Callable[[RestBackend], object], body: object) -> None:
    with pytest.raises(NotAnAnswer, match="cannot be understood"):
        ask(backend(body))


@pytest.mark.parametrize("output", ["x", [], 5])
def test_metadata_that_are_none_are_no_answer(output: object) -> None:
    with pytest.raises(NotAnAnswer, match="cannot be understood"):
        backend({**FACTS, "output": output}).dataset("a")
