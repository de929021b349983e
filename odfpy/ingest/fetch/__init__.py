"""Fetching: from a source to the bytes of new inputs (ODF specification, "FetchStep").

An input is whatever is committed by itself. Nothing new is no input at all.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from functools import singledispatch

from odfpy.chain.sources import (
    FetchContainer,
    FetchEthereumLogs,
    FetchFilesGlob,
    FetchMqtt,
    FetchStep,
    FetchUrl,
)
from odfpy.errors import InternalError
from odfpy.ingest.fetch.container.step import fetch_container
from odfpy.ingest.fetch.context import FetchContext, FetchedFile
from odfpy.ingest.fetch.ethereum.step import fetch_ethereum_logs
from odfpy.ingest.fetch.files_glob import fetch_files_glob
from odfpy.ingest.fetch.mqtt.step import fetch_mqtt
from odfpy.ingest.fetch.options import SourceOptions
from odfpy.ingest.fetch.url import fetch_url

__all__ = ["FetchContext", "FetchedFile", "SourceOptions", "fetch"]


def fetch(step: FetchStep, context: FetchContext) -> Generator[FetchedFile, None, None]:
    """New inputs of a source, each fetched when it is asked for; none if it is up to date.

    Asking for the next input says that the one before it has been committed. A caller who stops before the end closes
    the generator, so that nothing keeps running.

    Raises:
        FetchError: the source cannot be reached or read; the message says which, and never holds secrets.
        InvalidValue: an option of the step cannot be used.
    """
    context.options.bounds.require_variables(step)
    yield from _fetch(step, context)


@singledispatch
def _fetch(step: FetchStep, context: FetchContext) -> Iterator[FetchedFile]:  # noqa: ARG001
    raise InternalError(f"No way to fetch {type(step).__name__}")


_fetch.register(FetchUrl, fetch_url)
_fetch.register(FetchFilesGlob, fetch_files_glob)
_fetch.register(FetchContainer, fetch_container)
_fetch.register(FetchMqtt, fetch_mqtt)
_fetch.register(FetchEthereumLogs, fetch_ethereum_logs)
