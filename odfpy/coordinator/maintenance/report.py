"""Reports of verifications: frozen values, for programs and for the command line alike."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from odfpy.coordinator.storage.results import DatasetHandle
from odfpy.data.multihash import Multihash
from odfpy.data.timestamp import Timestamp
from odfpy.values import dataclass

if TYPE_CHECKING:
    from odfpy.chain.signatures import SignatureReport
    from odfpy.engine.spark.batch.request import BatchAnswer


class Severity(Enum):
    """The severity of a finding; only errors make a verification fail."""

    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something that a verification found.

    Attributes:
        check: what was checked: `chain`, `block`, `clock`, `slice`, `checkpoint`, `replay`, `batch`, `signature`,
            `lineage`, `reference` for others than the head, `file` for what lies beside, `repair`.
        message: what is wrong.
        block: the block that is concerned.
        sequence_number: its number.
        file: the file that is concerned.
        hint: what to do.
        code: of the cause, as errors have it; `odf help CODE` explains it.
    """

    severity: Severity
    check: str
    message: str
    block: Multihash | None = None
    sequence_number: int | None = None
    file: str | None = None
    hint: str | None = None
    code: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchComparison:
    """A derivative beside its query run once over what its inputs amounted to when it was last derived from them.

    Attributes:
        block: that of the transform.
        sequence_number: its number.
        answer: what came of it.
        most: so many differences are listed, all are counted.
    """

    block: Multihash
    sequence_number: int
    answer: BatchAnswer
    most: int


@dataclass(frozen=True, slots=True)
class LinkedFiles:
    """Files that rows of a dataset link to, each once.

    Attributes:
        here: those that are here, and as they should be.
        here_bytes: their size.
        elsewhere: those that this copy does not have, by its setting.
        removed: those that are not here as is recorded: no current row needs them.
    """

    here: int = 0
    here_bytes: int = 0
    elsewhere: int = 0
    removed: int = 0


@dataclass(frozen=True, slots=True)
class LostHistory:
    """A chain of blocks that followed the head once: it was taken back, by a reset or by an old copy.

    Attributes:
        head: its last block.
        num_blocks: blocks after the head.
        written: when the last one was written.
    """

    head: Multihash
    num_blocks: int
    written: Timestamp


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyReport:
    """The report on the verification of one dataset: what was checked, and what was found.

    Attributes:
        head: the last block that was checked, None where the blocks cannot be read.
        signatures: who has signed its blocks.
        against_batch: comparisons with the query run once, the oldest first.
        unreferenced: objects that no reference reaches; they do no harm, and `odf gc` removes them.
        unreferenced_bytes: their size.
        following: histories among them that once followed the head, the one that was written last first.
        repaired: files that were fetched again.
        linked: files that rows link to; None where no row can link to any.
    """

    handle: DatasetHandle
    blocks: int
    slices: int
    checkpoints: int
    transforms_replayed: int
    signatures: SignatureReport | None = None
    findings: tuple[Finding, ...]
    seconds: float
    unreferenced: int = 0
    unreferenced_bytes: int = 0
    following: tuple[LostHistory, ...] = ()
    repaired: tuple[str, ...] = ()
    against_batch: tuple[BatchComparison, ...] = ()
    head: Multihash | None = None
    linked: LinkedFiles | None = None

    @property
    def ok(self) -> bool:
        """True if there are no errors; warnings do not count."""
        return all(finding.severity is not Severity.ERROR for finding in self.findings)
