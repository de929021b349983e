"""Intermediate state of a verification."""

from __future__ import annotations

from dataclasses import field
from typing import Final

from odfpy.chain.block import HashedBlock
from odfpy.chain.state import ChainState
from odfpy.coordinator.maintenance.report import BatchComparison, Finding, Severity
from odfpy.coordinator.storage.results import Progress, ProgressSink
from odfpy.coordinator.storage.storage import StoredDataset
from odfpy.data.multihash import Multihash
from odfpy.errors import IntegrityError, OdfError
from odfpy.values import dataclass

CHECKPOINT: Final = "checkpoint"
SIGNATURE: Final = "signature"


@dataclass
class Verification:
    """A verification in progress.

    Attributes:
        blocks: the readable blocks, oldest first.
        states: the chain states after each of them.
        missing_checkpoints: missing checkpoints, with their blocks.
        unusable_checkpoints: checkpoints that are missing or damaged.
    """

    dataset: StoredDataset
    progress: ProgressSink
    blocks: list[HashedBlock] = field(default_factory=list)
    states: list[ChainState] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    missing_checkpoints: list[tuple[HashedBlock, Multihash]] = field(default_factory=list)
    unusable_checkpoints: set[Multihash] = field(default_factory=set)
    comparisons: list[BatchComparison] = field(default_factory=list)
    slices: int = 0
    checkpoints: int = 0
    replayed: int = 0

    def add_finding(
        self,
        check: str,
        message: str,
        block: HashedBlock | None = None,
        *,
        file: str | None = None,
        hint: str | None = None,
        severity: Severity = Severity.ERROR,
        cause: type[OdfError] = IntegrityError,
    ) -> None:
        """Add a finding: an error, or with another severity a warning.

        Args:
            check: name of the check.
            message: description of the problem and its location.
            block: the block concerned, None if the finding is about no block.
            file: the file concerned, None if the finding is about no file.
            hint: advice for the user, None for no advice.
            severity: severity of the finding.
            cause: the error class whose code the finding gets.
        """
        finding = Finding(
            severity=severity,
            check=check,
            message=message,
            block=block.hash if block else None,
            sequence_number=block.block.sequence_number if block else None,
            file=file,
            hint=hint,
            code=cause.code,
        )
        self.findings.append(finding)

    @property
    def can_be_replayed(self) -> bool:
        """True if blocks and slices are intact; checkpoints can be recomputed."""
        errors = (finding for finding in self.findings if finding.severity is Severity.ERROR)
        return bool(self.states) and all(finding.check in (CHECKPOINT, SIGNATURE) for finding in errors)

    def report_progress(self, action: str, number: int) -> None:
        """Report the progress."""
        self.progress(Progress(str(self.dataset.handle), action, number, len(self.blocks), "blocks"))
