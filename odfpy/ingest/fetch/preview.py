"""Previews for `odf pull --dry-run`: what a fetch would bring, without fetching it.

Folders are listed, and servers are queried as in a fetch, but only the head of the response is read. If only a fetch
can determine the new inputs, the preview says so. Nothing is written.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass
from functools import singledispatch
from pathlib import Path

from odfpy.chain.events import SourceState
from odfpy.chain.sources import FetchContainer, FetchEthereumLogs, FetchFilesGlob, FetchMqtt, FetchStep, FetchUrl
from odfpy.errors import InternalError
from odfpy.ingest.fetch.context import FetchContext, FetchedFile
from odfpy.ingest.fetch.files_glob import fetch_files_glob
from odfpy.ingest.fetch.url import fetch_url, open_source, split_url
from odfpy.ingest.fetch.version import SourceVersion
from odfpy.ingest.templates import expand, without_secrets


@dataclass(frozen=True, slots=True)
class UpcomingInput:
    """An input that would be committed by itself.

    Attributes:
        name: its name in messages, without secrets.
        size: its size in bytes, None if the source does not state it.
        state: the state of the source once it has been committed, None if the source has no state.
        kept: bytes of it that an earlier pull has fetched, and that need not be fetched again.
        path: its path, if it is read in place.
    """

    name: str
    size: int | None
    state: SourceState | None
    kept: int = 0
    path: Path | None = None


@dataclass(frozen=True, slots=True)
class Preview:
    """The expected result of a fetch.

    Attributes:
        inputs: the new inputs, in order; None if only fetching can tell.
        remark: a remark for the user.
    """

    inputs: tuple[UpcomingInput, ...] | None
    remark: str | None = None


def preview(step: FetchStep, context: FetchContext) -> Preview:
    """Return what a fetch would bring in the same circumstances; see `odfpy.ingest.fetch.fetch`.

    Raises:
        FetchError: the source cannot be reached or read; a fetch would fail in the same way.
        InvalidValue: an option of the step cannot be used.
    """
    context.options.bounds.require_variables(step)
    return _preview(step, context)


@singledispatch
def _preview(step: FetchStep, context: FetchContext) -> Preview:  # noqa: ARG001
    raise InternalError(f"No way to preview {type(step).__name__}")


@_preview.register
def _(step: FetchFilesGlob, context: FetchContext) -> Preview:
    return Preview(_on_disk(fetch_files_glob(step, context)))


@_preview.register
def _(step: FetchUrl, context: FetchContext) -> Preview:
    shown = without_secrets(step.url)
    text = expand(step.url, context.environment)
    url = split_url(text, shown)
    if url.scheme == "file":
        return Preview(_on_disk(fetch_url(step, context)))
    if step.cache is not None and context.known_state is not None:
        return Preview((), "fetched only once (cache: Forever)")
    if context.is_uncacheable:
        return Preview((), "the server reports no versions: fetched again only with --fetch-uncacheable")
    from odfpy.ingest.fetch.download import kept_for, request_file
    from odfpy.ingest.fetch.http import request_headers

    headers = request_headers(step, shown, context)
    kept = kept_for(repr((text, headers)), context)
    if not kept.is_current:
        with (
            closing(open_source(text, url, shown, headers, context)) as source,
            request_file(source, kept, SourceVersion.of_state(context.known_state)) as arriving,
        ):
            if arriving is not None:
                return Preview((UpcomingInput(shown, arriving.length, arriving.version.state, arriving.offset),))
    if not kept.is_complete:
        return Preview(())
    return Preview((UpcomingInput(shown, kept.received, kept.version.state, kept.received),))


@_preview.register(FetchContainer)
@_preview.register(FetchMqtt)
@_preview.register(FetchEthereumLogs)
def _(step: FetchContainer | FetchMqtt | FetchEthereumLogs, context: FetchContext) -> Preview:
    state = context.known_state
    since = f"what comes after {state.value}" if state is not None else "from the beginning"
    what = {
        FetchContainer.KIND: "the image would be run",
        FetchMqtt.KIND: "the broker would be asked for messages",
        FetchEthereumLogs.KIND: "the node would be asked for logs",
    }[step.KIND]
    return Preview(None, f"{what}, {since}; only a pull shows what is new")


def _on_disk(files: Iterable[FetchedFile]) -> tuple[UpcomingInput, ...]:
    return tuple(UpcomingInput(file.name, file.path.stat().st_size, file.state, path=file.path) for file in files)
