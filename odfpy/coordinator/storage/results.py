"""Results of the coordinator's verbs: frozen values, for programs and for the command line alike."""

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
    """A dataset of the workspace: its id and the name it goes by here."""

    id: DatasetId
    alias: DatasetAlias

    def __str__(self) -> str:
        return str(self.alias)


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetSummary:
    """A line of `odf list`.

    Attributes:
        data_bytes: bytes of all slices.
        linked_files: files that rows link to, counted as often as rows do.
        linked_bytes: bytes of these.
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
        name: the name it goes by, or its id where the name is lost.
        error: what is wrong with it.
    """

    name: str
    error: OdfError


class AddOutcome(Enum):
    """The outcome of a manifest."""

    CREATED = "created"
    UPDATED = "updated"
    UNCHANGED = "unchanged"
    KEPT = "kept as it is"


@dataclass(frozen=True, slots=True, kw_only=True)
class AddResult:
    """A dataset that `add` made, changed, or left alone.

    Attributes:
        changes: of a dataset that exists, the lines of its manifest that differ, as `diff` writes them.
        notes: remarks for the person.
    """

    handle: DatasetHandle
    kind: DatasetKind
    outcome: AddOutcome
    changes: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


class PullOutcome(Enum):
    """The outcome of a pull for one dataset."""

    UPDATED = "updated"
    UP_TO_DATE = "up to date"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True, kw_only=True)
class PullResult:
    """One dataset of a pull, an ingest or a push. Of one that failed on the way, what was committed before the error.

    Attributes:
        name: alias or remote reference, as the person knows it.
        old_head: last block before, None for a new dataset.
        new_head: last block after, the same as `old_head` when nothing changed.
        num_blocks: new blocks.
        num_records: new rows.
        num_dropped_blocks: of a forced pull or push, blocks that are not in the history any more, here or in the place
            that was pushed to; `old_head` was the last of them.
        num_dropped_records: rows in them.
        counts: of an ingest, rows `read` and what became of them: `appended`, `corrected`, `retracted`, `unchanged`
            (they made no difference), `superseded` (overtaken by a later row of the same input). A snapshot also
            retracts rows that did not come. Of the new and corrected ones, `late` came at or before the watermark. Of a
            transform, rows of the inputs that were `read`, how many of them were `late`, and entries that the query
            `ignored` because of that.
        watermark: watermark after.
        lane: of an ingest, where it ran and why.
        seconds: time it took.
        input: the file that was taken in, where there are several.
        signatures: who has signed the blocks of a copy that came, None where none came or nobody looked.
        warnings: what the person should know of the data: many retractions, rows without an event time, files and rows
            that were passed over, clocks that are wrong.
        notes: remarks for the person.
        error: why it failed or was skipped.
        profile: where the time went, None unless there is a profile (`odfpy.stages.profiling`).
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
    """A dataset and what it is derived from.

    Attributes:
        watermark: of the dataset now.
        taken_in: as an input, the watermark up to which the dataset above has taken it in.
        holds_back: as an input, whether the watermark of the dataset above stays where it is because of this one.
        is_above: whether datasets are derived from each other in a circle, of which this one has been shown: then its
            inputs are left out here.
    """

    handle: DatasetHandle
    kind: DatasetKind
    inputs: tuple[LineageNode, ...]
    watermark: Timestamp | None = None
    taken_in: Timestamp | None = None
    holds_back: bool = False
    is_above: bool = False

    def walk(self) -> Iterator[LineageNode]:
        """Every dataset below once, with this one first; those of a circle where they have inputs."""
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
        """The datasets that hold the watermark back, as far down as it goes; none of a root dataset.

        That is where it ends: at a root dataset, at one whose query passes no watermark on, or at one that is further
        already, so that a pull would do.
        """
        found: dict[DatasetHandle, None] = {}
        through = {self.handle}  # each dataset once, however many ways lead to it
        waiting = [self]
        while waiting:
            for item in waiting.pop(0).inputs:
                if not item.holds_back:
                    continue
                if item.taken_in != item.watermark or not any(deeper.holds_back for deeper in item.inputs):
                    found[item.handle] = None
                elif item.handle not in through:
                    through.add(item.handle)
                    waiting.append(item)
        return tuple(found)


@dataclass(frozen=True, slots=True)
class Progress:
    """A sign of life of long work: who, what, how far; `total` is None while unknown."""

    subject: str
    action: str
    done: int = 0
    total: int | None = None
    unit: str = ""


ENGINE_ACTIONS: Final = {
    "starting": "starting Spark",
    "queued": "waiting for Spark, which has other work",
    "running": "Spark works",
}
"""What the engine does in each stage of a job, in words."""

ProgressSink = Callable[[Progress], None]
"""Who is told how far the work is."""


def engine_listener(subject: str, sink: ProgressSink) -> Callable[[JobProgress], None]:
    """A listener of the engine, who tells a sink in words how far it is.

    Args:
        subject: what the engine works for.
        sink: who is told.
    """

    def tell(heard: JobProgress) -> None:
        sink(Progress(subject, ENGINE_ACTIONS[heard.stage.value], heard.tasks_done, heard.tasks or None, "tasks"))

    return tell


def silent(_: Progress) -> None:
    """Tell nobody how far the work is."""
