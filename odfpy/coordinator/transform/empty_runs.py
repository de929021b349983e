"""Records of empty runs. A run without rows, checkpoint and watermark commits nothing, or only the first schema.

A block that only advances the inputs is invalid. So the run is recorded outside of the chain. Then the dataset does not
seem to be out of date because of inputs that were read, or because of a changed query that was applied (the query of a
row-by-row transform only affects future rows). Without the record, the run is repeated once.

    empty-run    in the dataset's cache: the head after the run, and the last block read from each input
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from odfpy.chain.state import ChainState
from odfpy.coordinator.storage.stored_dataset import StoredDataset
from odfpy.coordinator.transform.intervals import InputInterval
from odfpy.data.multihash import Multihash


def unread_inputs(dataset: StoredDataset, state: ChainState, inputs: Sequence[InputInterval]) -> list[InputInterval]:
    """Return the inputs with blocks that no run has read.

    Args:
        dataset: the dataset.
        state: the state of its chain.
        inputs: the input intervals since the last run in the chain.
    """
    new = [item for item in inputs if item.interval.new_block_hash is not None]
    return [] if new and _noted(dataset) == _note(state.head, inputs) else new


def has_unapplied_query(dataset: StoredDataset, state: ChainState) -> bool:
    """Return whether the query of a dataset has changed, and no run has applied it.

    Args:
        dataset: the dataset.
        state: the state of its chain.
    """
    return state.query_changed and _noted(dataset)[:1] != [str(state.head)]


def note_empty_run(dataset: StoredDataset, head: Multihash | None, inputs: Sequence[InputInterval]) -> None:
    """Record an empty run.

    Args:
        dataset: the dataset.
        head: the head after the run.
        inputs: the input intervals that were read.
    """
    with suppress(OSError):
        dataset.cache.mkdir(parents=True, exist_ok=True)
        _path(dataset).write_text(" ".join(_note(head, inputs)))


def _note(head: Multihash | None, inputs: Sequence[InputInterval]) -> list[str]:
    return [str(head), *(str(item.interval.last_block_hash) for item in inputs)]


def _noted(dataset: StoredDataset) -> list[str]:
    with suppress(OSError, ValueError):
        return _path(dataset).read_text().split()
    return []


def _path(dataset: StoredDataset) -> Path:
    return dataset.cache / "empty-run"
