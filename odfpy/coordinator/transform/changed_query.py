"""Changed queries: whether a query has changed since the last run, and a pull has something to do because of it.

For row-by-row transforms, a changed query applies to future rows only, and a pull without new rows commits nothing.
That the query was run is then noted beside the chain, so that the dataset does not seem to be out of date.

    query-taken-up    in the dataset's cache: the head at which a pull had nothing to do for another query
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from odfpy.chain.state import ChainState
from odfpy.coordinator.storage.stored_dataset import StoredDataset


def has_unapplied_query(dataset: StoredDataset, state: ChainState) -> bool:
    """Return whether the query of a dataset has changed, and no pull has run it at that block.

    Args:
        dataset: the dataset.
        state: the state of its chain.
    """
    if not state.query_changed:
        return False
    with suppress(OSError, ValueError):
        return _note(dataset).read_text() != str(state.head)
    return True


def mark_query_applied(dataset: StoredDataset, state: ChainState) -> None:
    """Record that a pull ran the query at a block with nothing to do; without the record, it is run once more."""
    if state.query_changed:
        with suppress(OSError):
            dataset.cache.mkdir(parents=True, exist_ok=True)
            _note(dataset).write_text(str(state.head))


def _note(dataset: StoredDataset) -> Path:
    return dataset.cache / "query-taken-up"
