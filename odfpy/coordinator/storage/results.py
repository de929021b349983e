"""Results of the coordinator's operations: immutable values, for programs and the command line."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field
from enum import Enum
from typing import TYPE_CHECKING, Final

from odfpy.data.multihash import Multihash
from odfpy.data.timestamp import Timestamp
from odfpy.dataset.identity import DatasetId
from odfpy.dataset.kind import DatasetKind
from odfpy.dataset.names import DatasetAlias
from odfpy.values import dataclass

if TYPE_CHECKING:
    from odfpy.chain.signatures import SignatureReport
    from odfpy.data.data_warning import DataWarning
    from odfpy.engine.cancellation import JobProgress
    from odfpy.errors import OdfError
    from odfpy.stages import StageTime


@dataclass(frozen=True, slots=True)
class DatasetHandle:
    """A dataset of the workspace, by its id and local name."""

    id: DatasetId
    alias: DatasetAlias

    def __str__(self) -> str:
        return str(self.alias)


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetSummary:
    """Summary of a dataset, a line of `odf list`.

    Attributes:
        data_bytes: total size of all slices in bytes.
        linked_files: number of links of rows to files.
        linked_bytes: total size of these files in bytes.
        inputs: ids of the direct inputs.
    """

    handle: DatasetHandle
    kind: DatasetKind
    head: Multihash
    num_blocks: int
    num_records: int
    data_bytes: int
    watermark: Timestamp | None
    last_data_time: Timestamp | None
    inputs: tuple[DatasetId, ...] = ()
    linked_files: int = 0
    linked_bytes: int = 0


@dataclass(frozen=True, slots=True)
class DamagedDataset:
    """A dataset that cannot be read.

    Attributes:
        name: name of the dataset, or its id if the name is lost.
        error: the error.
    """

    name: str
    error: OdfError


class AddOutcome(Enum):
    """The outcomes of adding a manifest."""

    CREATED = "created"
    UPDATED = "updated"
    UNCHANGED = "unchanged"
    KEPT = "kept as it is"


@dataclass(frozen=True, slots=True, kw_only=True)
class AddResult:
    """A dataset that `add` has created, changed, or left unchanged.

    Attributes:
        changes: for an existing dataset, the changed lines of its manifest, in the format of `diff`.
        notes: remarks for the user.
    """

    handle: DatasetHandle
    kind: DatasetKind
    outcome: AddOutcome
    changes: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


class PullOutcome(Enum):
    """The outcomes of a pull for one dataset."""

    UPDATED = "updated"
    UP_TO_DATE = "up to date"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True, kw_only=True)
class PullResult:
    """The result of a pull, an ingest or a push for one dataset.

    After an error, the counts cover the commits before the error.

    Attributes:
        name: alias or remote reference, as the user knows it.
        old_head: hash of the head before, None for a new dataset.
        new_head: hash of the head after; equal to `old_head` if nothing changed.
        num_blocks: number of new blocks.
        num_records: number of new rows.
        num_dropped_blocks: for a forced pull or push, the number of blocks removed from the history, here or at the
            remote; `old_head` was the last of them.
        num_dropped_records: number of rows in these blocks.
        counts: for an ingest, the number of rows `read` and their outcome: `appended`, `corrected`, `retracted`,
            `unchanged` (no effect), `superseded` (by a later row of the same input). A snapshot also retracts rows that
            are missing in it. Of the new and corrected rows, `late` were at or before the watermark. For a transform,
            the number of input rows that were `read`, how many of them were `late`, and the number of entries that the
            query `ignored` because of that.
        watermark: the watermark after the operation.
        lane: for an ingest, the lane and the reason for its choice.
        seconds: duration in seconds.
        input: the ingested file, if there are several.
        signatures: the signers of the blocks of a copy, None if there were no new blocks, or signatures were not
            checked.
        warnings: warnings about the data: many retractions, rows without an event time, skipped files and rows, wrong
            clocks.
        notes: remarks for the user.
        error: the reason for failing or skipping.
        profile: the profile, None unless profiling is on (`odfpy.stages.profiling`).
    """

    name: str
    outcome: PullOutcome
    old_head: Multihash | None = None
    new_head: Multihash | None = None
    num_blocks: int = 0
    num_records: int = 0
    num_dropped_blocks: int = 0
    num_dropped_records: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    watermark: Timestamp | None = None
    lane: str | None = None
    seconds: float = 0.0
    input: str | None = None
    signatures: SignatureReport | None = None
    warnings: tuple[DataWarning, ...] = ()
    notes: tuple[str, ...] = ()
    error: OdfError | None = None
    profile: StageTime | None = None


@dataclass(frozen=True, slots=True)
class LineageNode:
    """A dataset in a lineage tree, with its inputs.

    Attributes:
        watermark: the current watermark of the dataset.
        taken_in: for an input, the watermark up to which its derivative has read it.
        holds_back: for an input, whether it holds back the watermark of its derivative.
        is_above: whether the dataset is repeated in a cycle: its inputs are then omitted here.
    """

    handle: DatasetHandle
    kind: DatasetKind
    inputs: tuple[LineageNode, ...]
    watermark: Timestamp | None = None
    taken_in: Timestamp | None = None
    holds_back: bool = False
    is_above: bool = False

    def walk(self) -> Iterator[LineageNode]:
        """Yield each dataset of the tree once, this one first; those of a cycle where their inputs are listed."""
        seen = {self.handle.id}
        waiting = [self]
        while waiting:
            node = waiting.pop()
            yield node
            for item in reversed(node.inputs):
                if item.handle.id not in seen and not item.is_above:
                    seen.add(item.handle.id)
                    waiting.append(item)

    @property
    def held_back_by(self) -> tuple[DatasetHandle, ...]:
        """Return the datasets that are the origin of holding the watermark back; none for a root dataset.

        An origin is a root dataset, a dataset whose query propagates no watermark, or one whose own watermark is ahead
        of what was read, so that a pull would help.
        """
        holders: dict[DatasetHandle, None] = {}
        through = {self.handle}  # each dataset once, however many paths lead to it
        waiting = [self]
        while waiting:
            for item in waiting.pop(0).inputs:
                if not item.holds_back:
                    continue
                if item.taken_in != item.watermark or not any(deeper.holds_back for deeper in item.inputs):
                    holders[item.handle] = None
                elif item.handle not in through:
                    through.add(item.handle)
                    waiting.append(item)
        return tuple(holders)


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress of long-running work: its subject, action and extent; `total` is None if unknown."""

    subject: str
    action: str
    done: int = 0
    total: int | None = None
    unit: str = ""


ENGINE_ACTIONS: Final = {
    "starting": "starting Spark",
    "queued": "waiting for Spark, which is busy",
    "running": "Spark works",
}
"""Descriptions of the engine's stages."""

ProgressSink = Callable[[Progress], None]
"""Callback for the progress of work."""


def engine_listener(subject: str, sink: ProgressSink) -> Callable[[JobProgress], None]:
    """Return a listener that reports the engine's progress to a sink.

    Args:
        subject: name of the dataset or query.
        sink: the sink for the reports.
    """

    def tell(heard: JobProgress) -> None:
        sink(Progress(subject, ENGINE_ACTIONS[heard.stage.value], heard.tasks_done, heard.tasks or None, "tasks"))

    return tell


def silent(_: Progress) -> None:
    """Ignore progress."""
