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
    """A dataset of the workspace: its id and its local name."""

    id: DatasetId
    alias: DatasetAlias

    def __str__(self) -> str:
        return str(self.alias)


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetSummary:
    """A line of `odf list`.

    Attributes:
        data_bytes: total size of all slices in bytes.
        linked_files: number of links of rows to files.
        linked_bytes: total size of these in bytes.
        inputs: ids of the datasets that it is directly derived from.
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
        name: its name, or its id if the name is lost.
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
    """A dataset that `add` made, changed, or left unchanged.

    Attributes:
        changes: for an existing dataset, the changed lines of its manifest, as `diff` writes them.
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

    If it failed midway, what was committed before the error.

    Attributes:
        name: alias or remote reference, as the user knows it.
        old_head: the last block before, None for a new dataset.
        new_head: the last block after, the same as `old_head` when nothing changed.
        num_blocks: number of new blocks.
        num_records: number of new rows.
        num_dropped_blocks: for a forced pull or push, the number of blocks that are no longer in the history, here or
            in the place that was pushed to; `old_head` was the last of them.
        num_dropped_records: number of their rows.
        counts: for an ingest, the number of rows `read` and their outcome: `appended`, `corrected`, `retracted`,
            `unchanged` (no effect), `superseded` (by a later row of the same input). A snapshot also retracts rows that
            are missing in it. Of the new and corrected rows, `late` were at or before the watermark. For a transform,
            the number of input rows that were `read`, how many of them were `late`, and the number of entries that the
            query `ignored` because of that.
        watermark: the watermark after.
        lane: for an ingest, the lane and the reason for choosing it.
        seconds: duration in seconds.
        input: the ingested file, where there are several.
        signatures: the signers of the blocks of a copy, None if no blocks came, or signatures were not checked.
        warnings: warnings about the data: many retractions, rows without an event time, skipped files and rows, wrong
            clocks.
        notes: remarks for the user.
        error: why it failed or was skipped.
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
    """A dataset with the datasets that it is derived from.

    Attributes:
        watermark: the current watermark of the dataset.
        taken_in: for an input, the watermark up to which its derivative has read it.
        holds_back: for an input, whether it keeps the watermark of its derivative from advancing.
        is_above: whether the dataset occurs above in a cycle of derivations: its inputs are then left out here.
    """

    handle: DatasetHandle
    kind: DatasetKind
    inputs: tuple[LineageNode, ...]
    watermark: Timestamp | None = None
    taken_in: Timestamp | None = None
    holds_back: bool = False
    is_above: bool = False

    def walk(self) -> Iterator[LineageNode]:
        """Yield every dataset below once, this one first; datasets of a cycle where their inputs are listed."""
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
        """Return the datasets that hold the watermark back, followed to their origin; none for a root dataset.

        The origin is a root dataset, a dataset whose query passes no watermark on, or one that is ahead already, so
        that a pull would help.
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
    """The progress of long-running work: who, what, how far; `total` is None while unknown."""

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
    """Return a listener for the engine that reports its progress to a sink, in words.

    Args:
        subject: what the engine works on.
        sink: the sink for the reports.
    """

    def tell(heard: JobProgress) -> None:
        sink(Progress(subject, ENGINE_ACTIONS[heard.stage.value], heard.tasks_done, heard.tasks or None, "tasks"))

    return tell


def silent(_: Progress) -> None:
    """Ignore progress."""
