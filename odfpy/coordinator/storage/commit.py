"""Steps common to all commits."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from odfpy.chain.events import MetadataEvent
from odfpy.chain.state import ChainState, new_data_of
from odfpy.coordinator.storage.clock import warnings_of_last_block
from odfpy.coordinator.storage.results import PullOutcome, PullResult
from odfpy.coordinator.storage.storage import StoredDataset
from odfpy.data.multihash import Multihash
from odfpy.data.timestamp import Timestamp
from odfpy.errors import OdfError
from odfpy.stages import stage


def commit_time(state: ChainState) -> Timestamp:
    """Return the system time of a commit: the current time, but not before the last block's."""
    now = Timestamp.now()
    return now if state.system_time is None else max(now, state.system_time)


def with_time(name: str, work: Callable[[], PullResult]) -> PullResult:
    """Run work on a dataset, and return its result with the duration; if it fails, return a result with the error."""
    started = time.monotonic()
    with stage(name, is_subject=True) as profile:
        try:
            result = work()
        except OdfError as error:
            result = PullResult(name=name, outcome=PullOutcome.FAILED, error=error)
    return replace(result, seconds=time.monotonic() - started, profile=profile)


def up_to_date(dataset: StoredDataset) -> PullResult:
    """Return the result for a dataset without changes."""
    state = dataset.state
    return PullResult(
        name=str(dataset.handle),
        outcome=PullOutcome.UP_TO_DATE,
        old_head=state.head,
        new_head=state.head,
        watermark=state.watermark,
    )


def commit_events(
    dataset: StoredDataset,
    state: ChainState,
    events: Sequence[MetadataEvent],
    system_time: Timestamp,
    written: Mapping[Multihash, Path] | None = None,
    objects: Mapping[Multihash, Path] | None = None,
) -> PullResult:
    """Check the events, store the files, then move the head; requires the dataset's lock.

    Args:
        dataset: the dataset.
        state: state of the chain before the events.
        events: the events, oldest first; an event that changes nothing is skipped.
        system_time: system time of the blocks.
        written: paths of the slices in the events, by physical hash.
        objects: paths of new linked objects by hash; they are moved into the dataset, preferably from
            `Storage.scratch()`. Existing objects may be omitted.

    Raises:
        LinkRefused: a row links to an object that neither exists nor is among `objects`.
        OdfError: nothing was committed.
    """
    from odfpy.chain.links.checks import LinkCheck  # without new events, neither links nor rules are needed
    from odfpy.chain.new_blocks import NewBlocks
    from odfpy.chain.rules import NoOpEvent

    with stage("checks"):
        events = LinkCheck(dataset.layout.data, objects or {}).checked(state, events, written or {})
        new = NewBlocks(state)
        for event in events:
            with suppress(NoOpEvent):
                new.add(event, system_time)
    # Files are stored before the head moves: the head must never lead to a block without its slice, or to a row without
    # its linked object. A crash before that leaves unreachable files, which `odf gc` removes.
    with stage("files"):
        dataset.layout.data.insert_files(objects or {})
        for data in filter(None, map(new_data_of, events)):
            if written is not None:
                dataset.layout.data.insert_file(written[data.physical_hash], data.physical_hash)
    with stage("blocks"):
        after = dataset.chain.commit(new)
    return PullResult(
        name=str(dataset.handle),
        outcome=PullOutcome.UPDATED if new.encoded else PullOutcome.UP_TO_DATE,
        old_head=state.head,
        new_head=after.head,
        num_blocks=len(new.encoded),
        num_records=after.num_records - state.num_records,
        watermark=after.watermark,
        warnings=warnings_of_last_block(state.system_time) if new.encoded else (),
        notes=dataset.workspace_folder.signing.remarks() if new.encoded else (),
    )
