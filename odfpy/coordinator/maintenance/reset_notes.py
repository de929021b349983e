"""Notes about a reset: records in later blocks that the reset undoes.

Rows record the removal of linked files: after a reset to an earlier block, the file counts as existing again, but its
content is not restored. Attachments, such as retention rules and legal holds of an archive, are reset, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from odfpy.chain.block import HashedBlock
from odfpy.chain.links.linked_objects import linked_slices, times_kept
from odfpy.chain.state import ChainState
from odfpy.coordinator.storage.stored_dataset import StoredDataset
from odfpy.data.amounts import count_of
from odfpy.data.hash_set import HashSet, as_names, name_of
from odfpy.data.multihash import Multihash
from odfpy.errors import OdfError


def reset_notes(
    dataset: StoredDataset, dropped: set[Multihash], kept: Sequence[HashedBlock], after: ChainState
) -> Iterator[str]:
    """Yield warnings for the user about a reset.

    Args:
        dataset: the dataset before the reset.
        dropped: the blocks removed from its history.
        kept: the blocks of its new history, oldest first.
        after: the chain state at the end of the new history.
    """
    try:
        yield from _kept_again(dataset, dropped, kept)
    except OdfError as error:  # a reset may be the remedy for a damaged slice
        yield f"cannot determine which linked files would be kept again: {error.message}"
    names = sorted({path for path, _ in _attachments(dataset.state) ^ _attachments(after)})
    if names:
        yield f"attachments are reset, including retention rules and holds: {', '.join(names)}"


def _kept_again(dataset: StoredDataset, dropped: set[Multihash], kept: Sequence[HashedBlock]) -> Iterator[str]:
    import numpy as np

    layout = dataset.layout
    removed = HashSet()
    for item in linked_slices(dataset.chain.in_order(dataset.state.head)):
        if item.slice.block.hash in dropped:
            for rows in item.rows(layout):
                removed.add(rows.names[rows.is_link & rows.removed])
    names = np.sort(as_names(removed))
    if not len(names):
        return
    again = [name_of(name) for name in names[times_kept(names, linked_slices(kept), layout) > 0]]
    missing = sum(name not in layout.data for name in again)
    if again:
        verb = "counts" if len(again) == 1 else "count"
        yield f"{count_of(len(again), 'linked file')} withdrawn or expired since then {verb} as kept again"
    if missing:
        files = count_of(missing, "linked file")
        yield f"the bytes of {files} of these were removed and are not restored: `odf verify` reports them"


def _attachments(state: ChainState) -> set[tuple[str, str]]:
    if state.attachments is None:
        return set()
    return {(item.path, item.content) for item in state.attachments.attachments.items}
