"""Report on the sources of a dataset: their progress and their last commits."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice

from odfpy.chain.events import AddData, AddPushSource, SetPollingSource, SourceState
from odfpy.coordinator.ingest.watermarks import policy_of
from odfpy.coordinator.storage.results import DatasetHandle
from odfpy.coordinator.storage.storage import StoredDataset
from odfpy.data.multihash import Multihash
from odfpy.data.timestamp import Timestamp
from odfpy.data.watermark import WatermarkPolicy
from odfpy.dataset.kind import DatasetKind
from odfpy.errors import OdfError, UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceCommit:
    """One commit of data.

    Attributes:
        block: hash of the block.
        sequence_number: sequence number of the block.
        system_time: its system time.
        num_records: number of rows, 0 if only the state or the watermark moved.
        state: the source state after the commit, such as an ETag or the name of a file.
        watermark: the watermark after the commit.
    """

    block: Multihash
    sequence_number: int
    system_time: Timestamp
    num_records: int
    state: SourceState | None
    watermark: Timestamp | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceReport:
    """The sources of a root dataset.

    Attributes:
        handle: handle of the dataset.
        copied_from: the location that a copy is pulled from; its sources belong to the original, and are not used here.
        polling_source: the source that `odf pull` fetches from.
        push_sources: the sources that `odf ingest` writes to.
        states: the states of the sources.
        watermark_policy: how the watermark moves; None for a copy.
        commits: the last commits of data, newest first.
    """

    handle: DatasetHandle
    copied_from: str | None
    polling_source: SetPollingSource | None
    push_sources: tuple[AddPushSource, ...]
    states: tuple[SourceState, ...]
    watermark_policy: WatermarkPolicy | None
    commits: tuple[SourceCommit, ...]


def source_report(dataset: StoredDataset, num_commits: int, *, copied_from: str | None = None) -> SourceReport:
    """Return sources, states and the last commits of a root dataset.

    Args:
        dataset: the dataset.
        num_commits: the maximum number of commits to list, newest first.
        copied_from: the location that the dataset is pulled from; None if it is not a copy.

    Raises:
        UsageError: the dataset is derivative.
    """
    state = dataset.state
    if state.kind is DatasetKind.DERIVATIVE:
        raise UsageError(
            f"{dataset.handle} is derivative: it has inputs, not a source",
            hint=f"`odf inspect lineage {dataset.handle}` shows them.",
        )
    return SourceReport(
        handle=dataset.handle,
        copied_from=copied_from,
        polling_source=state.polling_source,
        push_sources=state.push_sources,
        states=state.source_states,
        watermark_policy=policy_of(dataset) if copied_from is None else None,
        commits=_commits(dataset, num_commits),
    )


def _commits(dataset: StoredDataset, count: int) -> tuple[SourceCommit, ...]:
    try:
        events = ((hashed, hashed.block.event) for hashed in dataset.chain.iter_blocks())
        commits = (
            SourceCommit(
                block=hashed.hash,
                sequence_number=hashed.block.sequence_number,
                system_time=hashed.block.system_time,
                num_records=_rows(event),
                state=event.new_source_state,
                watermark=event.new_watermark,
            )
            for hashed, event in events
            if isinstance(event, AddData)
        )
        return tuple(islice(commits, count))
    except OdfError as error:
        raise dataset.named(error) from error


def _rows(event: AddData) -> int:
    interval = event.new_data.offset_interval if event.new_data else None
    return 0 if interval is None else interval.num_rows
