"""The context of a fetch, and its result."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import field
from pathlib import Path

from odfpy.chain.events import SourceState
from odfpy.data.timestamp import Timestamp
from odfpy.dataset.identity import DatasetId
from odfpy.ingest.fetch.options import SourceOptions
from odfpy.values import dataclass

DEFAULT_MAX_BYTES = 64 << 30
DEFAULT_TIMEOUT = 30.0
DEFAULT_RETRIES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchContext:
    """The circumstances of a fetch.

    Attributes:
        now: time of the ingest; fetching itself never reads the clock.
        root: folder that relative paths of the source refer to.
        scratch: folder for downloads; the caller clears it.
        state: the state of the source after the last ingest.
        has_data: whether the dataset has data from this source.
        force: whether to fetch as if nothing had been fetched before.
        fetch_uncacheable: whether to fetch again what has no state, such as a URL without ETag and Last-Modified.
        kept: folder for files that have been fetched and not yet committed, which outlives the pull; `scratch` if there
            is none. The caller clears it when everything has been committed.
        environment: variables for templates.
        progress: called with the number of bytes fetched so far, and the announced number, if any.
        max_bytes: the maximum size of an input.
        timeout: seconds to wait for a server's next byte.
        retries: how often to retry after an interruption.
        pause: function that waits for a number of seconds between retries.
        dataset_id: id of the dataset; used as an identity towards servers that remember their readers.
        options: settings of particular kinds of sources.
        tell_clock: called with the time by the clock of a server, whenever it is known.
    """

    now: Timestamp
    root: Path
    scratch: Path
    state: SourceState | None = None
    has_data: bool = False
    force: bool = False
    fetch_uncacheable: bool = False
    kept: Path | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    progress: Callable[[int, int | None], None] | None = None
    max_bytes: int = DEFAULT_MAX_BYTES
    timeout: float = DEFAULT_TIMEOUT
    retries: int = DEFAULT_RETRIES
    pause: Callable[[float], None] = time.sleep
    dataset_id: DatasetId | None = None
    options: SourceOptions = field(default_factory=SourceOptions)
    tell_clock: Callable[[Timestamp], None] | None = None

    @property
    def known_state(self) -> SourceState | None:
        """The state to continue from: none if forced."""
        return None if self.force else self.state

    @property
    def is_uncacheable(self) -> bool:
        """True if the source has delivered data without a state: it is then only fetched again on request."""
        return self.known_state is None and self.has_data and not self.force and not self.fetch_uncacheable


@dataclass(frozen=True, slots=True)
class FetchedFile:
    """An input to be read and committed by itself.

    Attributes:
        path: path of its content.
        name: its name in messages, without secrets.
        state: the state of the source once the input has been committed, None if the source has no state.
        event_time: event time of rows that have none.
        is_temporary: whether the file was made for this ingest, in `scratch`, and may be deleted afterwards.
        is_empty: whether there is only a new state: the file is then neither prepared nor read.
        remark: a remark for the user.
    """

    path: Path
    name: str
    state: SourceState | None
    event_time: Timestamp
    is_temporary: bool = False
    is_empty: bool = False
    remark: str | None = None
