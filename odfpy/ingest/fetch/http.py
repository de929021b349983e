"""Downloading over HTTP, once for each version of a file (ODF specification, "FetchStep: Url").

No message holds a user, a password, a query or a header's value: the client is given a label for the URL.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import closing
from email.message import Message
from email.utils import format_datetime, parsedate_to_datetime
from http import HTTPStatus
from pathlib import Path
from urllib.parse import SplitResult, unquote

from odfpy.chain.events import SourceState
from odfpy.chain.sources import CacheForever, EventTimeFromMetadata, FetchUrl
from odfpy.data.timestamp import Timestamp
from odfpy.errors import FetchError
from odfpy.http.client import HttpClient, HttpResponse
from odfpy.ingest.event_time import event_time_of
from odfpy.ingest.fetch.context import FetchContext, FetchedFile
from odfpy.ingest.source_state import etag_state, known_etag, known_last_modified, last_modified_state
from odfpy.ingest.templates import expand

_BLOCK = 1 << 20
_HINTS = {
    401: "Give the credentials that the server asks for, for example in `headers` with ${{ env.NAME }}.",
    403: "Check the credentials, and whether this file may be read with them.",
    404: "Check the URL; perhaps the file has been moved.",
    410: "The file is gone for good; look for where it is published now.",
    429: "The server asks for fewer requests; try again later.",
}


def fetch_http(step: FetchUrl, url: SplitResult, shown: str, context: FetchContext) -> Iterator[FetchedFile]:
    """The file, if it is new.

    Args:
        step: what the manifest says.
        url: the URL with its templates expanded.
        shown: the URL for messages.
        context: circumstances.

    Raises:
        FetchError: the server cannot be reached, answers with an error, or not with all it announced.
    """
    if context.known_state is None and context.has_data and not context.force:
        return  # the server gave nothing to tell versions apart by
    with closing(HttpClient(FetchError, timeout=context.timeout)) as client:
        headers = _request_headers(step, shown, context)
        target = url._replace(fragment="").geturl()
        with client.get(target, headers, max_size=context.max_bytes, label=shown) as answer:
            if answer.status == HTTPStatus.NOT_MODIFIED or _is_known(answer.headers, context.known_state):
                return
            if answer.status != HTTPStatus.OK:
                raise _bad_status(shown, answer.status)
            path = _save(answer, shown, context)
            modified = _last_modified(answer.headers)
            state = _new_state(answer.headers.get("ETag"), modified, step, context)
    source = step.event_time or EventTimeFromMetadata()
    event_time = event_time_of(source, path=unquote(url.path), modified=modified, now=context.now)
    yield FetchedFile(path=path, name=shown, state=state, event_time=event_time, is_temporary=True)


# --- Versions --------------------------------------------------------------------------------------------------------


def _last_modified(headers: Message) -> Timestamp | None:
    try:
        return Timestamp.from_datetime(parsedate_to_datetime(headers["Last-Modified"]))
    except (TypeError, ValueError, OverflowError):  # none, or none that can be understood
        return None


def _is_known(headers: Message, state: SourceState | None) -> bool:
    """Whether the answer is the version we have, from a server that does not understand conditions."""
    etag, modified = headers.get("ETag"), _last_modified(headers)
    if etag:
        return bool(etag == known_etag(state))
    return modified is not None and modified == known_last_modified(state)


def _new_state(
    etag: str | None, modified: Timestamp | None, step: FetchUrl, context: FetchContext
) -> SourceState | None:
    if etag:
        return etag_state(etag)
    if modified is None and isinstance(step.cache, CacheForever):
        modified = context.now  # any state will do, to know that there is no need to fetch again
    return None if modified is None else last_modified_state(modified)


# --- Request and answer ----------------------------------------------------------------------------------------------


def _request_headers(step: FetchUrl, shown: str, context: FetchContext) -> dict[str, str]:
    headers = {header.name: expand(header.value, context.environment) for header in step.headers or ()}
    for name, value in headers.items():
        text = name + value
        if not (name and text.isascii() and text.isprintable() and ":" not in name and " " not in name):
            raise FetchError(
                f"Header {name!r} for {shown} has characters that HTTP does not allow",
                hint="Headers are printable ASCII; look for a line break at the end of a variable.",
            )
    etag, modified = known_etag(context.known_state), known_last_modified(context.known_state)
    if etag is not None:
        headers["If-None-Match"] = etag
    elif modified is not None:
        headers["If-Modified-Since"] = format_datetime(modified.to_datetime(), usegmt=True)
    return headers


def _save(answer: HttpResponse, shown: str, context: FetchContext) -> Path:
    """Write the body to a file of its own."""
    received = 0
    try:
        context.scratch.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=context.scratch, prefix="fetch-", delete=False) as file:
            while block := answer.read(_BLOCK):
                file.write(block)
                received += len(block)
                if context.progress is not None:
                    context.progress(received, answer.length)
    except OSError as error:
        raise FetchError(f"Cannot write what {shown} sends to {context.scratch}: {error.strerror}") from error
    return Path(file.name)


def _bad_status(shown: str, status: int) -> FetchError:
    try:
        reason = HTTPStatus(status).phrase
    except ValueError:
        reason = "for a reason that only it knows"
    otherwise = "The server has a problem; try again later." if status >= 500 else "Check the URL and the headers."
    return FetchError(f"{shown}: the server answers {status}, {reason}", hint=_HINTS.get(status, otherwise))
