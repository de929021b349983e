"""Reports of verifications: immutable values, for programs and the command line."""

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
    """A finding of a verification.

    Attributes:
        check: the kind of check: `chain`, `block`, `clock`, `slice`, `checkpoint`, `replay`, `batch`, `signature`,
            `lineage`, `reference` for references other than the head, `file` for other files, `repair`.
        message: description of the problem.
        block: hash of the block concerned.
        sequence_number: sequence number of the block.
        file: path of the file concerned.
        hint: advice for the user.
        code: the error code of the cause; `odf help CODE` explains it.
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
    """A comparison of a derivative with the result of its query over the state of its inputs at its last run.

    Attributes:
        block: the block of the transform.
        sequence_number: sequence number of the block.
        answer: the result of the comparison.
        most: the maximum number of listed differences; all are counted.
    """

    block: Multihash
    sequence_number: int
    answer: BatchAnswer
    most: int


@dataclass(frozen=True, slots=True)
class LinkedFiles:
    """The files that rows of a dataset link to, each counted once.

    Attributes:
        here: the number of files that exist here and are intact.
        here_bytes: total size of these files in bytes.
        elsewhere: the number of files that this copy does not have, by its setting.
        removed: the number of files that were removed as recorded: no current row needs them.
    """

    here: int = 0
    here_bytes: int = 0
    elsewhere: int = 0
    removed: int = 0


@dataclass(frozen=True, slots=True)
class LostHistory:
    """A chain of blocks that once followed the head, before a reset or an old copy moved the head back.

    Attributes:
        head: hash of the last block.
        num_blocks: number of blocks after the current head.
        written: time at which the last block was written.
    """

    head: Multihash
    num_blocks: int
    written: Timestamp


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyReport:
    """The report on the verification of one dataset: its extent and its findings.

    Attributes:
        head: hash of the last verified block, None if the blocks cannot be read.
        signatures: the signers of the blocks.
        against_batch: comparisons with the results of the query over all input data, oldest first.
        unreferenced: number of objects that no reference reaches; they are harmless, and `odf gc` removes them.
        unreferenced_bytes: total size of these objects in bytes.
        following: unreachable histories that once followed the head, the most recently written first.
        repaired: paths of the files that were fetched again.
        linked: counts of linked files; None if rows cannot link to files.
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
        """True if there are no errors; warnings are ignored."""
        return all(finding.severity is not Severity.ERROR for finding in self.findings)
