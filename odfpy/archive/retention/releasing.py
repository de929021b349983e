"""The bytes that `odf gc` may remove from an archive: they were released, and nothing requires them.

They are required by rules and holds on any version of any record that has ever referenced them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from odfpy.archive.retention.policy import policy_in
from odfpy.archive.rows import is_archive
from odfpy.coordinator.storage.storage import StoredDataset
from odfpy.data.multihash import Multihash
from odfpy.data.timestamp import Timestamp


def released_objects(dataset: StoredDataset, names: Sequence[Multihash]) -> Collection[Multihash]:
    """Return the objects that may be removed: all records that reference them are released, and nothing requires them.

    Args:
        dataset: any dataset; if it is not an archive, nothing may be removed.
        names: objects that no current row references; see `MayRemove`.

    Raises:
        OdfError: the policy is damaged, or the index cannot be built.
    """
    if not is_archive(dataset.state):
        return ()
    from odfpy.archive.index.search import SearchIndex

    policy, now = policy_in(dataset.state), Timestamp.now().millis
    index = SearchIndex.of(dataset)
    released = []
    for name in names:
        histories = index.histories_of_object(name).values()
        # Without a record, or with one retracted by another program, no one has released the bytes.
        if histories and all(policy.allows_removal(history, now) for history in histories):
            released.append(name)
    return released
