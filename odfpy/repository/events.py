"""Subscribing to the heads of a dataset on a server (`<dataset>/events`, server-sent events)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from odfpy.errors import TransferError
from odfpy.http.client import HttpClient, HttpResponse
from odfpy.http.url import without_user
from odfpy.repository.credentials import authorization

_SMART = re.compile(r"(?i)odf\+(https?://)")
_WEB = re.compile(r"(?i)https?://")
_OK = 200
_STREAM = "text/event-stream"
_FIELDS = ("event", "id")
_MAX_LINE_LENGTH = 64 * 1024


class NoEvents(TransferError, code="E634"):
    """The server of a dataset does not send events: clients must poll."""


def heads_told(url: str) -> Iterator[str]:
    """Yield the heads that a server reports, as text, beginning with the current one, until the stream ends.

    Args:
        url: URL of the dataset.

    Raises:
        NoEvents: the server does not support events.
        TransferError: the server is unreachable, or times out.
    """
    base = _SMART.sub(r"\1", url).rstrip("/")
    if not _WEB.match(base):
        raise NoEvents(f"{without_user(base)} sends no events")
    client = HttpClient(TransferError, authorize=authorization)
    with client.get(f"{base}/events", {"Accept": _STREAM, "Cache-Control": "no-cache"}) as answer:
        kind = answer.headers.get("Content-Type", "").partition(";")[0].strip().lower()
        if answer.status != _OK or kind != _STREAM:
            raise NoEvents(f"{answer.shown} sends no events: status {answer.status}")
        fields: dict[str, str] = {}
        for line in _lines(answer):
            if line:
                name, _, value = line.partition(":")
                if name in _FIELDS:
                    fields[name] = value.removeprefix(" ")
                continue
            if fields.get("event") == "head" and "id" in fields:
                yield fields["id"]
            fields = {}


def _lines(answer: HttpResponse) -> Iterator[str]:
    """Yield lines without line terminators; skip comments."""
    rest = b""
    while data := answer.read(_MAX_LINE_LENGTH):
        *lines, rest = (rest + data).split(b"\n")
        if len(rest) > _MAX_LINE_LENGTH:
            raise TransferError(f"{answer.shown}: a line does not end")
        for line in lines:
            text = line.rstrip(b"\r").decode("utf-8", "replace")
            if not text.startswith(":"):
                yield text
