"""Fetching one file at a URL (ODF specification, "FetchStep: Url").

`file:` reads a local file directly; everything else is downloaded, each scheme by its own module. The source state
determines whether the file is new: the ETag of the server, else the modification time.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING, Protocol
from urllib.parse import SplitResult, unquote, urlsplit

from odfpy.chain.events import SourceState
from odfpy.chain.sources import CacheForever, EventTimeFromMetadata, FetchUrl
from odfpy.data.timestamp import NANOS_PER_MILLI
from odfpy.errors import FetchError
from odfpy.ingest.event_time import event_time_of, modified_at
from odfpy.ingest.fetch.context import FetchContext, FetchedFile
from odfpy.ingest.source_state import known_last_modified, last_modified_state
from odfpy.ingest.templates import expand, without_secrets

if TYPE_CHECKING:
    from odfpy.ingest.fetch.download import RemoteFile
    from odfpy.ingest.fetch.pending import PendingFile

    class _Closing(RemoteFile, Protocol):
        def close(self) -> None: ...


_OF_THE_WEB = ("http", "https")
_DOWNLOADED = (*_OF_THE_WEB, "ftp", "ftps")


def fetch_url(step: FetchUrl, context: FetchContext) -> Iterator[FetchedFile]:
    """Yield the file, if it is new.

    Raises:
        FetchError: the URL cannot be reached or read, or its scheme is unknown.
    """
    shown = without_secrets(step.url)
    text = expand(step.url, context.environment)
    url = split_url(text, shown)
    if step.cache is not None and context.known_state is not None:
        return  # cache: Forever
    if url.scheme == "file":
        yield from _fetch_file(step, url, shown, context)
        return
    if context.is_uncacheable:
        return
    from odfpy.ingest.fetch.download import download
    from odfpy.ingest.fetch.http import request_headers

    headers = request_headers(step, shown, context)
    with closing(open_source(text, url, shown, headers, context)) as source:
        kept = download(source, repr((text, headers)), context)
    if kept is not None:
        yield _fetched(step, url, shown, kept, context)


def open_source(text: str, url: SplitResult, shown: str, headers: dict[str, str], context: FetchContext) -> _Closing:
    """Return the downloadable file for the scheme of a URL. The caller closes it. Nothing is requested yet.

    Args:
        text: the URL.
        url: the parsed URL.
        shown: the URL as messages show it, without secrets.
        headers: headers of the request.
        context: the context of the fetch.

    Raises:
        SourceOutOfBounds: access to the server is not permitted.
        FetchError: the scheme is unknown.
    """
    context.options.bounds.require_host(text)
    if url.scheme in _OF_THE_WEB:
        from odfpy.ingest.fetch.http import HttpSource

        target = url._replace(fragment="").geturl()
        tell_clock = context.tell_clock
        admit = context.options.bounds.require_host
        return HttpSource(
            target,
            shown,
            headers,
            now=context.now,
            timeout=context.timeout,
            tell_clock=tell_clock,
            admit=admit,
            pause=context.pause,
        )
    if url.scheme in ("ftp", "ftps"):
        from odfpy.ingest.fetch.ftp import FtpSource

        return FtpSource(url, shown, now=context.now, timeout=context.timeout)
    from odfpy.ingest.fetch.object_store import STORES, object_source

    if url.scheme in STORES:
        return object_source(text, url.scheme, shown, now=context.now, timeout=context.timeout)
    raise _unknown_scheme(url.scheme, shown)


def check_url(text: str, shown: str) -> None:
    """Validate a URL before anything is requested.

    Args:
        text: the URL, with placeholders for its templates.
        shown: name of the URL in messages.

    Raises:
        FetchError: the URL is invalid, has an unknown scheme, or is a file of another machine.
    """
    from odfpy.ingest.fetch.object_store import STORES

    shown = without_secrets(shown)
    url = split_url(text, shown)
    if url.scheme == "file":
        _check_is_here(url, shown)
    elif url.scheme not in (*_DOWNLOADED, *STORES):
        raise _unknown_scheme(url.scheme, shown)
    elif url.scheme in _OF_THE_WEB:
        from odfpy.http.url import parse_url

        parse_url(text, FetchError, shown)


def _unknown_scheme(scheme: str, shown: str) -> FetchError:
    from odfpy.ingest.fetch.object_store import STORES

    known = ("file", *_DOWNLOADED, *STORES)
    otherwise = f"These can be fetched: {', '.join(known)}."
    return FetchError(f"{shown}: unknown scheme {scheme}", hint=otherwise)


def _fetched(step: FetchUrl, url: SplitResult, shown: str, kept: PendingFile, context: FetchContext) -> FetchedFile:
    version, now = kept.version, kept.fetched_at
    source = step.event_time or EventTimeFromMetadata()
    event_time = event_time_of(source, path=unquote(url.path), modified=version.modified, now=now)
    state: SourceState | None = version.state
    if state is None and isinstance(step.cache, CacheForever):
        state = last_modified_state(now)  # any state will do: it marks the file as ingested
    remark = None
    if kept.fetched_at != context.now and not version.is_known:
        remark = f"read the uncommitted download of {now}; --fetch-uncacheable fetches it again"
    return FetchedFile(path=kept.path, name=shown, state=state, event_time=event_time, is_temporary=True, remark=remark)


def split_url(url: str, shown: str) -> SplitResult:
    """Parse a URL whose templates are expanded.

    Raises:
        FetchError: the URL is invalid.
    """
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018  (checks it)
    except ValueError:
        raise FetchError(f"{shown} is not a URL") from None
    if not parts.scheme:
        raise FetchError(f"{shown} is not a URL", hint="Write a file as file:folder/a.csv or file:///folder/a.csv.")
    return parts


def _check_is_here(url: SplitResult, shown: str) -> None:
    if url.netloc not in ("", "localhost"):
        raise FetchError(
            f"{shown} names a file on another machine",
            hint="Write file:folder/name.csv for a file below the workspace, file:///folder/name.csv for any other.",
        )
    if "%00" in url.path or "\0" in url.path:
        raise FetchError(f"{shown} is not a name of a file", hint="%00 cannot be part of one.")


def _fetch_file(step: FetchUrl, url: SplitResult, shown: str, context: FetchContext) -> Iterator[FetchedFile]:
    _check_is_here(url, shown)
    path = context.root / unquote(url.path)
    context.options.bounds.require_file(path, context.root)
    try:
        nanos = path.stat().st_mtime_ns
    except OSError as error:
        raise FetchError(f"Cannot read {shown}: {error.strerror}", hint=f"It stands for {path}.") from error
    if not path.is_file():
        raise FetchError(f"{shown} is not a file", hint="Use FilesGlob to ingest the files of a folder.")
    # Rounded as the reference does: states that it wrote must be recognized.
    modified = modified_at((nanos + NANOS_PER_MILLI // 2) // NANOS_PER_MILLI * NANOS_PER_MILLI, shown)
    if known_last_modified(context.known_state) == modified:
        return
    source = step.event_time or EventTimeFromMetadata()
    yield FetchedFile(
        path=path,
        name=shown,
        state=last_modified_state(modified),
        event_time=event_time_of(source, path=unquote(url.path), modified=modified, now=context.now),
    )
