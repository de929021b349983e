"""Rebase of a branch onto a head that has moved: apply its events again, if they do not conflict.

Conflicts are changes of both sides, since the common block, to the same key, the same source state or the same kind of
metadata. Rows get new offsets and the system time of the new commit, so their slices are rewritten.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from odfpy.chain.block import HashedBlock
from odfpy.chain.events import (
    AddData,
    AddPushSource,
    DataSlice,
    DisablePollingSource,
    DisablePushSource,
    ExecuteTransform,
    MetadataEvent,
    SetPollingSource,
)
from odfpy.chain.new_blocks import NewBlocks
from odfpy.chain.rules import NoOpEvent, SourceUnknown
from odfpy.chain.slices import slices_of
from odfpy.chain.state import ChainState
from odfpy.coordinator.branches.diff import BranchDiff, rows_of, touched_keys
from odfpy.coordinator.storage.commit import commit_time
from odfpy.coordinator.storage.stored_dataset import StoredDataset
from odfpy.data.multihash import Multihash
from odfpy.data.offset_interval import OffsetInterval
from odfpy.data.timestamp import Timestamp
from odfpy.errors import InternalError, UsageError

if TYPE_CHECKING:
    import pyarrow as pa

    from odfpy.data.schemas.schema import DataSchema


class MergeConflict(UsageError, code="E656"):
    """The changes of branch and head conflict, so that the branch cannot be rebased."""

    exit_code = 1


def rebase(dataset: StoredDataset, branch_diff: BranchDiff) -> None:
    """Move a branch onto the head; the caller holds the dataset's lock.

    Args:
        dataset: the dataset, seen from its head.
        branch_diff: the changes of branch and head since their common block.

    Raises:
        MergeConflict: both sides have changed the same item; nothing has changed.
    """
    _check(dataset, branch_diff)
    state = dataset.chain.state(branch_diff.head)
    time = commit_time(state)
    new = NewBlocks(state)
    with dataset.workspace_folder.scratch() as scratch:
        files: list[tuple[Path, Multihash]] = []
        for hashed in branch_diff.blocks:
            event = hashed.block.event
            if isinstance(event, AddData):
                path = scratch / f"slice-{len(files)}"
                event = _rebased(dataset, new.state, hashed, event, path, time)
                if event.new_data is not None:
                    files.append((path, event.new_data.physical_hash))
            with suppress(NoOpEvent, SourceUnknown):  # the head has the same metadata, or has also disabled the source
                new.add(event, time)
        for path, name in files:
            dataset.layout.data.insert_file(path, name)
        dataset.on(branch_diff.branch).chain.commit(new, replacing=branch_diff.tip)


def _check(dataset: StoredDataset, branch_diff: BranchDiff) -> None:
    own_blocks, head_blocks = branch_diff.blocks, branch_diff.head_blocks
    if any(isinstance(hashed.block.event, ExecuteTransform) for hashed in own_blocks):
        raise _conflict(
            branch_diff,
            "its rows are the result of a query over earlier inputs",
            f"{_dropping(branch_diff)}, and pull again: the query gives the same rows on top of the head.",
        )
    own_changes, changes_of_head, earlier_changes = map(_last_words, (own_blocks, head_blocks, branch_diff.rewritten))
    for thing, event in own_changes.items():
        if changes_of_head.get(thing, event) not in (event, earlier_changes.get(thing)):
            is_event = not isinstance(event, str)
            how = "make its changes again." if is_event else "pull again: the head continues from its own state."
            raise _conflict(branch_diff, f"both sides have changed {thing}", f"{_dropping(branch_diff)}, and {how}")
    parted = max((item.data.offset_interval.end + 1 for item in slices_of(branch_diff.rewritten)), default=0)
    for keys in _keys_of_sources(dataset, branch_diff):
        common = sorted(
            touched_keys(dataset, own_blocks, keys).keys() & touched_keys(dataset, head_blocks, keys, parted).keys()
        )
        if common:
            examples = "; ".join(map(", ".join, common[:5])) + ("; ..." if len(common) > 5 else "")
            raise _conflict(
                branch_diff,
                f"both sides have rows with the same keys ({', '.join(keys)}): {examples}",
                f"{_dropping(branch_diff)}, and ingest its files again: they are then merged with the head.",
            )


def _dropping(branch_diff: BranchDiff) -> str:
    return f"Drop the branch with `odf merge {branch_diff.handle} {branch_diff.branch} --drop`"


def _keys_of_sources(dataset: StoredDataset, branch_diff: BranchDiff) -> list[tuple[str, ...]]:
    """Return the primary keys of all merge strategies on either side, including those of disabled sources.

    The dataset may have no primary key although its sources do: with a ChangelogStream, or with several strategies.
    """
    from odfpy.ingest.normalize import primary_key

    states = (dataset.chain.state(branch_diff.base), dataset.state, dataset.on(branch_diff.branch).state)
    sources = [source for state in states for source in state.sources]
    return list(dict.fromkeys(keys for source in sources if (keys := primary_key(source.merge))))


def _last_words(blocks: Sequence[HashedBlock]) -> dict[str, MetadataEvent | str]:
    """Return the last event for each kind of metadata, and the last state of each source."""
    last_events: dict[str, MetadataEvent | str] = {}
    for hashed in blocks:
        event = hashed.block.event
        if isinstance(event, AddData):
            if event.new_source_state is not None:
                name = event.new_source_state.source_name
                last_events[f"the state of the source {name}"] = str(event.new_source_state)
        elif isinstance(event, (AddPushSource, DisablePushSource)):
            last_events[f"the source {event.source_name}"] = event
        elif isinstance(event, (SetPollingSource, DisablePollingSource)):
            last_events["the polling source"] = event
        else:
            last_events[type(event).__name__] = event
    return last_events


def _conflict(branch_diff: BranchDiff, why: str, hint: str) -> MergeConflict:
    return MergeConflict(
        f"{branch_diff.handle}: {branch_diff.branch} cannot be rebased on the head: {why}",
        hint=hint,
    )


def _rebased(
    dataset: StoredDataset, state: ChainState, hashed: HashedBlock, event: AddData, path: Path, time: Timestamp
) -> AddData:
    """Return an event whose rows follow those of a state."""
    marks = [mark for mark in (state.watermark, event.new_watermark) if mark is not None]
    return replace(
        event,
        prev_checkpoint=state.checkpoint.physical_hash if state.checkpoint else None,
        prev_offset=state.last_offset,
        new_data=None if event.new_data is None else _moved_slice(dataset, state, hashed, path, time),
        new_watermark=max(marks, default=None),
    )


def _moved_slice(
    dataset: StoredDataset, state: ChainState, hashed: HashedBlock, path: Path, time: Timestamp
) -> DataSlice:
    """Write the rows of a block to a new slice, with offsets that follow a state."""
    from odfpy.data.schemas.arrow import to_arrow
    from odfpy.data.schemas.fit import fit_table
    from odfpy.data.schemas.system_columns import system_columns_first
    from odfpy.data.slices.writer import SliceWriter

    if state.schema is None:
        raise InternalError(f"{dataset.handle} has rows before it has a schema")
    schema: DataSchema = system_columns_first(state.schema, state.vocab)
    (rows,) = rows_of(dataset, [hashed])
    with SliceWriter(path, schema, state.vocab) as writer:
        writer.write(_renumbered(fit_table(rows, to_arrow(schema)), state, time))
        info = writer.finish()
    interval = OffsetInterval(info.offset_start, info.offset_end)
    return DataSlice(info.logical_hash, info.physical_hash, interval, info.size)


def _renumbered(rows: pa.Table, state: ChainState, time: Timestamp) -> pa.Table:
    import pyarrow as pa

    vocab = state.vocab
    for name, values in (
        (vocab.offset_column, pa.array(range(state.next_offset, state.next_offset + rows.num_rows), pa.int64())),
        (vocab.system_time_column, pa.array([time.floor_millis().millis] * rows.num_rows, pa.timestamp("ms", "UTC"))),
    ):
        at = rows.schema.get_field_index(name)
        rows = rows.set_column(at, rows.schema.field(at), values.cast(rows.schema.field(at).type))
    return rows
