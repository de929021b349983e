"""Fetching one file at a URL (ODF specification, "FetchStep: Url").

`file:` reads a file where it is; `http:` and `https:` download it. Whether it is new, the source state says: the ETag
that the server gave, else the time of the last modification.
"""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import SplitResult, unquote, urlsplit

from odfpy.chain.sources import EventTimeFromMetadata, FetchUrl
from odfpy.data.timestamp import NANOS_PER_MILLI, Timestamp
from odfpy.errors import FetchError
from odfpy.ingest.event_time import event_time_of
from odfpy.ingest.fetch.context import FetchContext, FetchedFile
from odfpy.ingest.source_state import known_last_modified, last_modified_state
from odfpy.ingest.templates import expand, without_secrets
from odfpy.ingest.unsupported import unsupported


def fetch_url(step: FetchUrl, context: FetchContext) -> Iterator[FetchedFile]:
    """The file, if it is new.

    Raises:
        FetchError: the URL cannot be reached or read.
        UnsupportedStep: the scheme is one of a later release.
    """
    shown = without_secrets(step.url)
    url = _split(expand(step.url, context.environment), shown)
    if step.cache is not None and context.known_state is not None:
        return  # cache: Forever
    if url.scheme == "file":
        yield from _fetch_file(step, url, shown, context)
    elif url.scheme in ("http", "https"):
        from odfpy.ingest.fetch.http import fetch_http

        yield from fetch_http(step, url, shown, context)
    else:
        raise unsupported(step, f"the scheme {url.scheme}:")


def _split(url: str, shown: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018  (checks it)
    except ValueError:
        raise FetchError(f"{shown} is no URL") from None
    if not parts.scheme:
        raise FetchError(f"{shown} is no URL", hint="Write a file as file:folder/name.csv or file:///folder/name.csv.")
    return parts


def _fetch_file(step: FetchUrl, url: SplitResult, shown: str, context: FetchContext) -> Iterator[FetchedFile]:
    if url.netloc not in ("", "localhost"):
        raise FetchError(
            f"{shown} names a file on another machine",
            hint="Write file:folder/name.csv for a file below the workspace, file:///folder/name.csv for any other.",
        )
    path = context.root / unquote(url.path)
    try:
        nanos = path.stat().st_mtime_ns
    except OSError as error:
        raise FetchError(f"Cannot read {shown}: {error.strerror}", hint=f"It stands for {path}.") from error
    if not path.is_file():
        raise FetchError(f"{shown} is no file", hint="Use FilesGlob to take in the files of a folder.")
    # Rounded as the reference does: states that it wrote must be recognized.
    modified = Timestamp.from_millis((nanos + NANOS_PER_MILLI // 2) // NANOS_PER_MILLI)
    if known_last_modified(context.known_state) == modified:
        return
    source = step.event_time or EventTimeFromMetadata()
    yield FetchedFile(
        path=path,
        name=shown,
        state=last_modified_state(modified),
        event_time=event_time_of(source, path=unquote(url.path), modified=modified, now=context.now),
    )
