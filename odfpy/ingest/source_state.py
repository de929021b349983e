"""Source states: the progress of a source's ingestion, as recorded in the chain (ODF specification, "SourceState")."""

from __future__ import annotations

from odfpy.chain.events import SourceState
from odfpy.data.timestamp import Timestamp
from odfpy.errors import InvalidValue

POLLING_SOURCE = "default"
"""Name of the polling source; a dataset has at most one."""

ETAG = "odf/etag"
"""Kind of state: the ETag of a URL, or the name of the last file of a glob."""

LAST_MODIFIED = "odf/last-modified"
"""Kind of state: a modification time."""


def etag_state(value: str) -> SourceState:
    """Return the state after an input with an ETag or name."""
    return SourceState(POLLING_SOURCE, ETAG, value)


def last_modified_state(time: Timestamp) -> SourceState:
    """Return the state after an input with a modification time."""
    return SourceState(POLLING_SOURCE, LAST_MODIFIED, str(time))


def known_etag(state: SourceState | None) -> str | None:
    """Return the ETag or name in a state, None if it is of another kind."""
    return state.value if state is not None and state.kind == ETAG else None


def known_last_modified(state: SourceState | None) -> Timestamp | None:
    """Return the time in a state, None if it is of another kind or not a valid time."""
    if state is None or state.kind != LAST_MODIFIED:
        return None
    try:
        return Timestamp.parse(state.value)
    except InvalidValue:  # written by another program: ignored
        return None
