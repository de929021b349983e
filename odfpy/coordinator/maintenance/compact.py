"""`odf compact`: rewrite many small slices as fewer, larger ones, together with the history.

    1. group neighboring AddData blocks of a root dataset; each group becomes one slice. Other blocks, including those
       that change the schema, separate groups
    2. check the slices of a group against their hashes, so that damaged data is not stored under a new hash
    3. write the rows unchanged, with their offsets, operations and times, into one slice in a scratch folder
    4. add the slices and the new blocks to the dataset
    5. move the head

Rows, their links, offsets, the last watermark and the source states are retained; intermediate watermarks take effect
at the end of their group. Blocks are not merged if the result would be a block without changes. Groups are filled from
the first block on, and blocks keep their times. So full groups are unchanged by a further compaction, and compacting
the same history always has the same result.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING

from odfpy.chain.block import HashedBlock
from odfpy.chain.events import AddData, DataSlice, SourceState
from odfpy.chain.link_summary import SUMMARY, LinkedObjects
from odfpy.chain.slices import slice_paths, slices_of
from odfpy.chain.state import ChainState
from odfpy.coordinator.ingest.ingested_files import keeping_names
from odfpy.coordinator.ingest.watched_folder import STATE_KIND
from odfpy.coordinator.storage.results import DatasetHandle, Progress, ProgressSink
from odfpy.coordinator.storage.rewriting import (
    Downstream,
    Rewriting,
    downstream_of,
    rewriting,
    who_keeps_old_history,
    without_data,
)
from odfpy.coordinator.storage.storage import Storage, StoredDataset
from odfpy.data.multihash import Multihash
from odfpy.data.offset_interval import OffsetInterval
from odfpy.data.slices.cut import SLICE_ROWS
from odfpy.dataset.kind import DatasetKind
from odfpy.errors import HashMismatch, InternalError, UsageError

if TYPE_CHECKING:
    import pyarrow as pa

    from odfpy.data.schemas.schema import DataSchema
    from odfpy.data.slices.writer import SliceInfo


@dataclass(frozen=True, slots=True)
class CompactOptions:
    """Options of a compaction.

    Attributes:
        max_records: the maximum number of rows of a slice.
        max_bytes: the maximum total size, in bytes, of the slices that are merged into one.
        keep_metadata_only: whether to drop all rows.
    """

    max_records: int = SLICE_ROWS
    max_bytes: int = 300_000_000
    keep_metadata_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactResult:
    """The result of a compaction, or of its dry run.

    Attributes:
        old_head: hash of the head before the compaction.
        new_head: hash of the head after the compaction; None for a plan, the old head if there is nothing to do.
        blocks: number of blocks before and after.
        slices: number of slices before and after.
        downstream: the derivatives that must be rebuilt.
        notes: remarks for the user.
        seconds: duration in seconds.
    """

    handle: DatasetHandle
    old_head: Multihash
    new_head: Multihash | None
    blocks: tuple[int, int]
    slices: tuple[int, int]
    downstream: Downstream = field(default_factory=Downstream)
    notes: tuple[str, ...] = ()
    seconds: float = 0.0

    @property
    def changes(self) -> bool:
        """True if there is anything to do."""
        return self.new_head != self.old_head


# --- 1. Groups -------------------------------------------------------------------------------------------------------


@dataclass
class BlockGroup:
    """Adjacent blocks that are processed together: AddData blocks, or a single block of another kind."""

    blocks: list[HashedBlock]
    records: int = 0
    size: int = 0
    source: str | None = None

    @property
    def events(self) -> list[AddData]:
        """Return the AddData events of the blocks."""
        return [hashed.block.event for hashed in self.blocks if isinstance(hashed.block.event, AddData)]

    @property
    def slices(self) -> list[DataSlice]:
        """Return the slices to be merged into one."""
        return [event.new_data for event in self.events if event.new_data is not None]

    @property
    def states(self) -> list[SourceState]:
        """Return the source states to retain: the last one, and all that name an ingested file of a watched folder."""
        recorded = [event.new_source_state for event in self.events if event.new_source_state is not None]
        each = [state for state in recorded[:-1] if state.kind == STATE_KIND and state != recorded[-1]]
        return list(dict.fromkeys([*each, *recorded[-1:]]))

    @property
    def num_after(self) -> int:
        """Return the number of blocks after the compaction."""
        return max(1, len(self.states)) if self.events else 1

    @property
    def changes(self) -> bool:
        """Return whether the compaction changes the group."""
        return self.num_after < len(self.blocks) or len(self.slices) > 1

    @property
    def num_stateless(self) -> int:
        """Return the number of blocks at the end of the group without a source state."""
        stateless = takewhile(lambda event: event.new_source_state is None, reversed(self.events))
        return sum(1 for _ in stateless)

    def repeats(self, before: BlockGroup) -> bool:
        """Return whether the first block of the group would contain no change, which chain rules forbid.

        Args:
            before: the previous group of data.
        """
        first, last = self.events[0], before.events[-1]
        has_rows, state = first.new_data is not None, first.new_source_state
        if self.changes:
            first, has_rows = self.events[-1], bool(self.slices)
            state = self.states[0] if self.states else None
        if has_rows or (first.new_watermark, first.new_checkpoint) != (last.new_watermark, last.new_checkpoint):
            return False
        return state == (before.states[-1] if before.states else None)

    def split(self, place: int) -> list[BlockGroup]:
        """Split the group before a position."""
        parts = [BlockGroup([]), BlockGroup([])]
        for number, hashed in enumerate(self.blocks):
            parts[number >= place].add(hashed)
        return parts

    def takes(self, event: AddData, options: CompactOptions) -> bool:
        """Return whether an event fits into the group; events with unknown attributes stay separate."""
        last = self.blocks[-1].block.event
        if not isinstance(last, AddData) or not (_is_known(last) and _is_known(event)):
            return False
        # An event holds the state of one source only; without its state, another source would ingest its data again.
        if event.new_source_state is not None and self.source not in (None, event.new_source_state.source_name):
            return False
        records, size = _measures(event)
        return self.records + records <= options.max_records and self.size + size <= options.max_bytes

    def add(self, hashed: HashedBlock) -> None:
        """Add a block."""
        self.blocks.append(hashed)
        event = hashed.block.event
        if isinstance(event, AddData):
            records, size = _measures(event)
            self.records, self.size = self.records + records, self.size + size
            if event.new_source_state is not None:
                self.source = event.new_source_state.source_name


def groups_of(blocks: Iterable[HashedBlock], options: CompactOptions) -> list[BlockGroup]:
    """Group the blocks of a chain, oldest first."""
    groups: list[BlockGroup] = []
    for hashed in blocks:
        event = hashed.block.event
        if not (groups and isinstance(event, AddData) and groups[-1].takes(event, options)):
            groups.append(BlockGroup([]))
        groups[-1].add(hashed)
    return _split_repeating_groups(groups)


def _split_repeating_groups(groups: list[BlockGroup]) -> list[BlockGroup]:
    """Split groups if a group would repeat the last values of the merged blocks before it.

    That happens if the preceding group ends with blocks without a source state, so that an earlier state moves to its
    end; or if the group first changes a value, and then changes it back.
    """
    done: list[BlockGroup] = []
    waiting = list(groups)
    while waiting:
        group = waiting.pop()
        place = next((at for at in reversed(range(len(waiting))) if waiting[at].events), None) if group.events else None
        if place is not None and group.repeats(waiting[place]):
            before = waiting[place]
            if 0 < before.num_stateless < len(before.blocks):
                waiting[place : place + 1] = before.split(len(before.blocks) - before.num_stateless)
            elif len(group.blocks) > 1:
                first, group = group.split(1)
                waiting.append(first)
        done.append(group)
    return done[::-1]


def _is_known(event: AddData) -> bool:
    """Return whether an event's only extra attribute is the summary of linked objects, which can be added up."""
    if event.extra is None:
        return True
    return event.extra.to_dict().keys() == {SUMMARY} and LinkedObjects.of(event) != LinkedObjects()


def _measures(event: AddData) -> tuple[int, int]:
    data = event.new_data
    return (0, 0) if data is None else (data.offset_interval.num_rows, data.size)


# --- The compaction --------------------------------------------------------------------------------------------------


def plan_compaction(storage: Storage, dataset: StoredDataset, options: CompactOptions) -> CompactResult:
    """Return what a compaction would do, without changes or locks.

    Args:
        storage: the workspace, to find derivatives.
        dataset: the dataset.
        options: the target sizes.

    Raises:
        UsageError: the dataset is a derivative, whose slices are results of runs.
    """
    if dataset.state.kind is DatasetKind.DERIVATIVE and not options.keep_metadata_only:
        raise UsageError(
            f"{dataset.handle} is a derivative: each of its slices is the result of a run of its query",
            hint="With --keep-metadata-only, its rows are dropped, and the next pull recomputes them in one run.",
        )
    blocks = dataset.chain.in_order()
    slices = len(slices_of(blocks))
    if options.keep_metadata_only:
        rewritten = without_data(dataset)
        after, num_kept = (rewritten.state.sequence_number + 1, 0), rewritten.new.base.sequence_number + 1
    else:
        groups = groups_of(blocks, options)
        after = (sum(group.num_after for group in groups), sum(bool(group.slices) for group in groups))
        num_kept = _num_kept(groups)
    dropped = {block.hash for block in blocks[num_kept:]}
    return CompactResult(
        handle=dataset.handle,
        old_head=blocks[-1].hash,
        new_head=None if dropped else blocks[-1].hash,
        blocks=(len(blocks), after[0]),
        slices=(slices, after[1]),
        downstream=downstream_of(storage, dataset, dropped),
        notes=who_keeps_old_history(dataset, dropped),
    )


def _num_kept(groups: list[BlockGroup]) -> int:
    """Return the number of blocks at the start of the chain that do not change."""
    count = 0
    for group in groups:
        if group.changes:
            break
        count += len(group.blocks)
    return count


def compact(storage: Storage, dataset: StoredDataset, options: CompactOptions, progress: ProgressSink) -> CompactResult:
    """Compact a dataset; requires its lock.

    Args:
        storage: the workspace, to find derivatives.
        dataset: the dataset.
        options: the target sizes.
        progress: called with the progress.

    Raises:
        UsageError: as for `plan_compaction`.
        HashMismatch, ObjectNotFound: a slice is damaged or missing; nothing has changed.
    """
    started = time.monotonic()
    plan = plan_compaction(storage, dataset, options)
    if not plan.changes:
        return replace(plan, seconds=time.monotonic() - started)
    if options.keep_metadata_only:
        after = without_data(dataset).commit()
    else:
        with keeping_names(dataset):
            after = _compact(dataset, options, progress)
    blocks = (plan.blocks[0], after.sequence_number + 1)
    return replace(plan, new_head=after.head, blocks=blocks, seconds=time.monotonic() - started)


def _compact(dataset: StoredDataset, options: CompactOptions, progress: ProgressSink) -> ChainState:
    blocks = dataset.chain.in_order()
    groups = groups_of(blocks, options)
    rewritten = rewriting(dataset, blocks, _num_kept(groups))
    total, done = sum(len(group.slices) for group in groups), 0
    files: list[tuple[Path, Multihash]] = []
    with dataset.workspace_folder.scratch() as scratch:
        position = 0
        for group in groups:
            position += len(group.blocks)
            if position <= rewritten.new.base.sequence_number + 1:
                continue
            if not group.changes:
                for hashed in group.blocks:
                    rewritten.keep(hashed)
                continue
            progress(Progress(str(dataset.handle), "compacting", done, total, "slices"))
            data = group.slices[0] if len(group.slices) == 1 else None
            if len(group.slices) > 1:
                path = scratch / f"slice-{len(files)}"
                data = _described(_merged_slice(dataset, rewritten.state, group, path))
                files.append((path, data.physical_hash))
            _add_group(rewritten, group, data)
            done += len(group.slices)
        # Only after all groups are written: until here, an error leaves no new objects in the dataset.
        for path, name in files:
            dataset.layout.data.insert_file(path, name)
        return rewritten.commit()


def _add_group(rewritten: Rewriting, group: BlockGroup, data: DataSlice | None) -> None:
    """Add the blocks of a group: its rows with its first source state, then the remaining states."""
    last, states = group.events[-1], group.states
    links = sum(map(LinkedObjects.of, group.events), LinkedObjects())
    for number in range(group.num_after):
        state = rewritten.state
        event = AddData(
            prev_checkpoint=state.checkpoint.physical_hash if state.checkpoint else None,
            prev_offset=state.last_offset,
            new_data=data if number == 0 else None,
            new_checkpoint=last.new_checkpoint,
            new_watermark=last.new_watermark,
            new_source_state=states[number] if states else None,
            extra=links.beside(None) if number == 0 else None,
        )
        rewritten.new.add(event, group.blocks[-1].block.system_time)


def _merged_slice(dataset: StoredDataset, state: ChainState, group: BlockGroup, path: Path) -> SliceInfo:
    """Run steps 2 and 3: check the slices of a group, and write their rows into one slice."""
    from odfpy.data.memory import bulk_memory
    from odfpy.data.schemas.system_columns import system_columns_first
    from odfpy.data.slices.writer import SliceWriter

    if state.schema is None:
        raise InternalError(f"{dataset.handle} has rows before it has a schema")
    schema = system_columns_first(state.schema, state.vocab)
    files = slice_paths(dataset.layout.data, slices_of(group.blocks))
    for file, data in zip(files, group.slices, strict=True):
        _check(file, data.physical_hash)
    with bulk_memory(), SliceWriter(path, schema, state.vocab) as writer:
        for batch in _rows(files, schema, state):
            writer.write(batch)
        return writer.finish()


def _rows(files: list[Path], schema: DataSchema, state: ChainState) -> Iterator[pa.Table]:
    import pyarrow as pa

    from odfpy.data.schemas.arrow import to_arrow
    from odfpy.data.schemas.fit import fit_table
    from odfpy.data.slices.slice import iter_slice

    wanted = to_arrow(schema)
    for file in files:
        for batch in iter_slice(file, vocab=state.vocab):
            yield fit_table(pa.Table.from_batches([batch]), wanted)


def _check(file: Path, name: Multihash) -> None:
    with file.open("rb") as stream:
        actual = Multihash.of_stream(stream, name.algorithm)
    if actual != name:
        raise HashMismatch(
            f"Damaged slice: {file} has the hash {actual}; nothing was compacted",
            hint="`odf verify --repair` fetches it again from a repository that has the dataset.",
        )


def _described(info: SliceInfo) -> DataSlice:
    interval = OffsetInterval(info.offset_start, info.offset_end)
    return DataSlice(info.logical_hash, info.physical_hash, interval, info.size)
