"""Inputs that a dataset has not read, apart from those that it has read in vain.

A block that only advances the inputs is not valid, so a run without rows, checkpoint and watermark commits nothing.
That it has read its inputs is then noted beside the chain, so that the dataset does not seem to be out of date.

    read-in-vain    in the dataset's cache: the head at such a run, and the last block that it has read of each input
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from odfpy.chain.state import ChainState
from odfpy.coordinator.storage.stored_dataset import StoredDataset
from odfpy.coordinator.transform.intervals import InputInterval
from odfpy.data.multihash import Multihash


def unread(dataset: StoredDataset, state: ChainState, inputs: Sequence[InputInterval]) -> list[InputInterval]:
    """Return the inputs with blocks that the next run would be the first to read.

    Args:
        dataset: the dataset.
        state: the state of its chain.
        inputs: the parts of its inputs since the last run in the chain.
    """
    with suppress(OSError, ValueError):
        if _note(dataset).read_text() == _reading(state.head, inputs):
            return []
    return [item for item in inputs if item.interval.new_block_hash is not None]


def mark_read(dataset: StoredDataset, head: Multihash | None, inputs: Sequence[InputInterval]) -> None:
    """Record that a run has read inputs in vain; without the record, they are read once more.

    Args:
        dataset: the dataset.
        head: its head after the run.
        inputs: the parts of its inputs that were read.
    """
    with suppress(OSError):
        dataset.cache.mkdir(parents=True, exist_ok=True)
        _note(dataset).write_text(_reading(head, inputs))


def _note(dataset: StoredDataset) -> Path:
    return dataset.cache / "read-in-vain"


def _reading(head: Multihash | None, inputs: Sequence[InputInterval]) -> str:
    return " ".join(map(str, (head, *(item.interval.last_block_hash for item in inputs))))
