"""Fetching: from a source to the bytes of new inputs (ODF specification, "FetchStep").

An input is a file that is committed by itself. A source with nothing new yields no input.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from typing import Any

from odfpy.chain.sources import (
    FetchContainer,
    FetchEthereumLogs,
    FetchFilesGlob,
    FetchMqtt,
    FetchStep,
    FetchUrl,
)
from odfpy.errors import InternalError
from odfpy.ingest.fetch.context import FetchContext, FetchedFile
from odfpy.ingest.fetch.options import SourceOptions

__all__ = ["FetchContext", "FetchedFile", "SourceOptions", "fetch"]


def fetch(step: FetchStep, context: FetchContext) -> Generator[FetchedFile, None, None]:
    """Yield the new inputs of a source, each fetched on demand; none if it is up to date.

    Requesting the next input implies that the previous one has been committed. A caller who stops early closes the
    generator, so that nothing keeps running.

    Raises:
        FetchError: the source cannot be reached or read; the message names it, and never contains secrets.
        InvalidValue: an option of the step is invalid.
    """
    context.options.bounds.require_variables(step)
    yield from _way_of(step)(step, context)


def _way_of(step: FetchStep) -> Callable[[Any, FetchContext], Iterator[FetchedFile]]:
    """Return the function that fetches a kind of step, imported on demand: each kind has its own libraries."""
    match step:
        case FetchUrl():
            from odfpy.ingest.fetch.url import fetch_url

            return fetch_url
        case FetchFilesGlob():
            from odfpy.ingest.fetch.files_glob import fetch_files_glob

            return fetch_files_glob
        case FetchContainer():
            from odfpy.ingest.fetch.container.step import fetch_container

            return fetch_container
        case FetchMqtt():
            from odfpy.ingest.fetch.mqtt.step import fetch_mqtt

            return fetch_mqtt
        case FetchEthereumLogs():
            from odfpy.ingest.fetch.ethereum.step import fetch_ethereum_logs

            return fetch_ethereum_logs
    raise InternalError(f"No way to fetch {type(step).__name__}")
