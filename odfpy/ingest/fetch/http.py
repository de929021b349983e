"""Files on web servers (RFC 9110).

Messages never contain a user, a password, a query or the value of a header: the client is given a label for the URL.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from email.message import Message
from email.utils import format_datetime, parsedate_to_datetime
from http import HTTPStatus

from odfpy.chain.sources import FetchUrl
from odfpy.data.timestamp import NANOS_PER_SECOND, Timestamp
from odfpy.errors import FetchError, FetchInterrupted
from odfpy.http.client import HttpClient, HttpResponse
from odfpy.ingest.fetch.context import FetchContext
from odfpy.ingest.fetch.download import ResumePoint
from odfpy.ingest.fetch.retry import PASSING
from odfpy.ingest.fetch.version import SourceVersion, is_settled
from odfpy.ingest.templates import expand

_MAX_ETAG_LENGTH = 1024
_CONTENT_RANGE = re.compile(r"bytes ([0-9]{1,18})-([0-9]{1,18})/([0-9]{1,18}|\*)")
_GZIP = ("gzip", "x-gzip")
_HINTS = {
    401: "Pass the credentials that the server requires, for example in `headers` with ${{ env.NAME }}.",
    403: "Check the credentials and their permissions.",
    404: "Check the URL; the file may have moved.",
    410: "The file was permanently removed; find its new URL.",
    429: "The server limits requests; try again later.",
}


@dataclass(frozen=True, slots=True)
class HttpFile:
    """The response of a web server as a file that is being downloaded."""

    answer: HttpResponse
    version: SourceVersion
    offset: int
    length: int | None

    def read(self, size: int) -> bytes:
        """Return the next bytes."""
        return self.answer.read(size)

    def close(self) -> None:
        """Abandon the rest."""
        self.answer.close()


class HttpSource:
    """A file at an http or https URL.

    Attributes:
        shown: the URL for messages.
    """

    def __init__(
        self,
        url: str,
        shown: str,
        headers: Mapping[str, str],
        *,
        now: Timestamp,
        timeout: float,
        tell_clock: Callable[[Timestamp], None] | None = None,
        admit: Callable[[str], None] | None = None,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._tell_clock = tell_clock
        self._pause = pause
        self.shown = shown
        self._url = url
        self._headers = headers
        self._now = now
        self._client = HttpClient(FetchError, interrupted=FetchInterrupted, timeout=timeout, admit=admit)
        path = re.split(r"[?#]", url, maxsplit=1)[0]
        # Some servers declare compression as an encoding: such a file is fetched unchanged.
        self._encodings: Collection[str] = _GZIP if path.lower().endswith((".gz", ".tgz")) else ()

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def open(self, unless: SourceVersion, rest: ResumePoint | None) -> HttpFile | None:
        """Request the file; see `download.RemoteFile`."""
        conditions = {**_unless(unless), **({} if rest is None else _only(rest))}
        ours = {name.lower() for name in conditions}
        headers = {name: value for name, value in self._headers.items() if name.lower() not in ours} | conditions
        answer = self._get(headers)
        if answer.status == HTTPStatus.OK and _may_change_unseen(answer.headers):
            answer.close()
            self._pause(1.0)
            answer = self._get(headers)
        try:
            server_time = _time_told(answer.headers)
            if server_time is not None and self._tell_clock is not None:
                self._tell_clock(server_time)
            if answer.status == HTTPStatus.NOT_MODIFIED and unless.is_known:
                answer.close()
                return None
            version = _version(answer)
            if answer.status == HTTPStatus.OK:
                return HttpFile(answer, version, 0, answer.length)
            if rest is not None and answer.status == HTTPStatus.PARTIAL_CONTENT and version.place == rest.place:
                length = _length_if_proven(answer.headers, rest)
                if length is not None:
                    return HttpFile(answer, version, rest.offset, length)
        except BaseException:
            answer.close()
            raise
        answer.close()
        # The rest is unavailable, or not proven to match: then the whole file is requested.
        if rest is not None and answer.status in (
            HTTPStatus.PARTIAL_CONTENT,
            HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE,
        ):
            return self.open(unless, None)
        raise self._refused(answer)

    def _get(self, headers: Mapping[str, str]) -> HttpResponse:
        return self._client.get(self._url, headers, label=self.shown, encodings=self._encodings)

    def _refused(self, answer: HttpResponse) -> FetchError:
        try:
            phrase = HTTPStatus(answer.status).phrase
        except ValueError:
            phrase = "without a reason"
        message = f"{self.shown}: the server answers {answer.status}, {phrase}"
        otherwise = (
            "The server has a problem; try again later." if answer.status >= 500 else "Check the URL and the headers."
        )
        hint = _HINTS.get(answer.status, otherwise)
        if answer.status in PASSING:
            return FetchInterrupted(message, hint=hint, retry_after=self._retry_after(answer.headers))
        return FetchError(message, hint=hint)

    def _retry_after(self, headers: Message) -> float | None:
        """Return the number of seconds that the server asks to wait."""
        text = _text(headers, "Retry-After") or ""
        if re.fullmatch("[0-9]{1,9}", text):
            return float(text)
        until = _time(text)
        if until is None:
            return None
        now = _time(_text(headers, "Date")) or self._now
        return max(0.0, (until.nanos - now.nanos) / NANOS_PER_SECOND)


def request_headers(step: FetchUrl, shown: str, context: FetchContext) -> dict[str, str]:
    """Return the headers from the manifest, with their templates expanded.

    Args:
        step: the fetch step.
        shown: the URL as messages show it, without secrets.
        context: the context of the fetch.

    Raises:
        FetchError: a variable is not set, or has a value that HTTP does not permit.
    """
    headers = {header.name: expand(header.value, context.environment) for header in step.headers or ()}
    for name, value in headers.items():
        text = name + value
        if not (name and text.isascii() and text.isprintable() and ":" not in name and " " not in name):
            raise FetchError(
                f"Header {name!r} for {shown} has characters that HTTP does not allow",
                hint="Headers are printable ASCII; look for a line break at the end of a variable.",
            )
    return headers


def _version(answer: HttpResponse) -> SourceVersion:
    headers = answer.headers
    etag = _text(headers, "ETag")
    if etag is None or len(etag) > _MAX_ETAG_LENGTH:
        etag = None
    text = _text(headers, "Last-Modified")
    modified, sent = _time(text), _time(_text(headers, "Date"))
    proof = None
    if etag:
        # A weak ETag may stay the same while bytes change (RFC 9110, 8.8.1): it does not prove that two parts match.
        proof = None if etag.startswith("W/") else etag
    elif modified is not None and sent is not None and is_settled(modified, sent, by_its_own_clock=True):
        proof = text
    place = answer.url.partition("?")[0]  # the query is often a temporary signature
    return SourceVersion(etag, modified, proof, hashlib.sha256(place.encode()).hexdigest())


def _may_change_unseen(headers: Message) -> bool:
    """Return whether the file may change without a change of its version: it was modified in this very second.

    Times over HTTP are whole seconds. Once the second is over, a later change has a later time.
    """
    modified, sent = _time(_text(headers, "Last-Modified")), _time(_text(headers, "Date"))
    return not _text(headers, "ETag") and modified is not None and modified == sent


def _time_told(headers: Message) -> Timestamp | None:
    """Return the time by the server's clock: when it made its response, plus the age of that in a cache."""
    made = _time(_text(headers, "Date"))
    age = _text(headers, "Age") or "0"
    if made is None or not re.fullmatch("[0-9]{1,9}", age):
        return None
    return Timestamp(made.nanos + int(age) * NANOS_PER_SECOND)


def _unless(version: SourceVersion) -> dict[str, str]:
    """Return the headers for the condition that the file has another version."""
    if version.etag:
        return {"If-None-Match": version.etag} if _is_sendable(version.etag) else {}
    if version.modified is None:
        return {}
    return {"If-Modified-Since": format_datetime(version.modified.to_datetime(), usegmt=True)}


def _only(rest: ResumePoint) -> dict[str, str]:
    """Return the headers that request only the rest, if it belongs to the same version."""
    return {"Range": f"bytes={rest.offset}-", "If-Range": rest.proof}


def _length_if_proven(headers: Message, rest: ResumePoint) -> int | None:
    """Return the size of the whole file, if the response is the requested rest."""
    found = _CONTENT_RANGE.fullmatch(_text(headers, "Content-Range") or "")
    if found is None or int(found[1]) != rest.offset or found[3] == "*":
        return None
    return int(found[3]) if rest.proof in (_text(headers, "ETag"), _text(headers, "Last-Modified")) else None


def _text(headers: Message, name: str) -> str | None:
    """Return a header that can be stored and sent back."""
    value = headers.get(name)
    return value.strip() if isinstance(value, str) and _is_sendable(value.strip()) else None


def _is_sendable(text: str) -> bool:
    return bool(text) and text.isprintable() and all(ord(character) < 256 for character in text)


def _time(text: str | None) -> Timestamp | None:
    try:
        return Timestamp.from_datetime(parsedate_to_datetime(text or ""))
    except (TypeError, ValueError, OverflowError):  # none, or none that can be understood
        return None
