"""Record of a dataset's last verification, for web pages and lists.

info/verification.yaml    in the dataset's folder
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from odfpy.chain.signatures import SignatureReport
from odfpy.chain.stores.ref_store import HEAD
from odfpy.coordinator.maintenance.report import Finding, LinkedFiles, Severity, VerifyReport
from odfpy.coordinator.storage.stored_dataset import StoredDataset
from odfpy.data.multihash import Multihash
from odfpy.data.scalars import I64
from odfpy.data.timestamp import Timestamp
from odfpy.errors import OdfError
from odfpy.repository.documents import load_document, save_document
from odfpy.values import dataclass

_KIND: Final = "DatasetVerification"

MAX_FINDINGS: Final = 100
"""Maximum number of recorded findings; all findings are counted."""

_MAX_LENGTH: Final = 1000


@dataclass(frozen=True, slots=True)
class RecordedFinding:
    """A finding of a verification, with the fields of `Finding`; long texts are truncated."""

    severity: Severity
    check: str
    message: str
    block: Multihash | None = None
    sequence_number: I64 | None = None
    file: str | None = None
    hint: str | None = None
    code: str | None = None


@dataclass(frozen=True, slots=True)
class RecordedCounts:
    """The extent of a verification.

    Attributes:
        milliseconds: duration in milliseconds.
        signed: number of signed blocks.
        unsigned: number of unsigned blocks.
        signers: ids of the signers, newest block first.
    """

    blocks: I64
    slices: I64
    checkpoints: I64
    milliseconds: I64
    signed: I64
    unsigned: I64
    signers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RecordedLinks:
    """Counts of linked files, with the fields of `LinkedFiles`."""

    here: I64
    here_bytes: I64
    elsewhere: I64
    removed: I64


@dataclass(frozen=True, slots=True)
class LastVerification:
    """A verification and its result.

    Attributes:
        time: time of its end.
        head: hash of the last block that was or should have been verified; later blocks are not verified.
        errors: number of errors.
        warnings: number of warnings.
        transforms_replayed: number of transforms that were replayed.
        integrity_only: whether transforms were not replayed.
        counts: the extent of the verification; None in older records.
        findings: the first findings, errors before warnings.
        linked: counts of linked files; None if rows cannot link to files.
    """

    time: Timestamp
    head: Multihash
    errors: I64
    warnings: I64
    transforms_replayed: I64
    integrity_only: bool
    counts: RecordedCounts | None = None
    findings: tuple[RecordedFinding, ...] | None = None
    linked: RecordedLinks | None = None

    @property
    def ok(self) -> bool:
        """True if there were no errors."""
        return not self.errors


def record_verification(dataset: StoredDataset, report: VerifyReport, *, integrity_only: bool) -> None:
    """Record the result of a verification of a whole dataset; a failure to write the record is ignored.

    Args:
        dataset: the dataset as verified.
        report: the report.
        integrity_only: whether transforms were not replayed.
    """
    errors = sum(finding.severity is Severity.ERROR for finding in report.findings)
    with suppress(OdfError, OSError):
        if dataset.block is not None or dataset.branch is not None:
            return
        if not os.access(_path(dataset).parent, os.W_OK | os.X_OK):  # a read-only folder of another user
            return
        head = report.head or dataset.layout.refs.get(HEAD)  # the block may be unreadable
        if head is None:
            return
        outcome = LastVerification(
            time=Timestamp.now(),
            head=head,
            errors=errors,
            warnings=len(report.findings) - errors,
            transforms_replayed=report.transforms_replayed,
            integrity_only=integrity_only,
            counts=_counts(report),
            findings=_kept(report.findings),
            linked=_links(report.linked),
        )
        save_document(_path(dataset), _KIND, outcome)


def _counts(report: VerifyReport) -> RecordedCounts:
    signatures = report.signatures or SignatureReport()
    return RecordedCounts(
        blocks=report.blocks,
        slices=report.slices,
        checkpoints=report.checkpoints,
        milliseconds=round(report.seconds * 1000),
        signed=signatures.signed,
        unsigned=signatures.unsigned,
        signers=tuple(map(str, signatures.signers)),
    )


def _links(linked: LinkedFiles | None) -> RecordedLinks | None:
    return None if linked is None else RecordedLinks(linked.here, linked.here_bytes, linked.elsewhere, linked.removed)


def _kept(findings: Sequence[Finding]) -> tuple[RecordedFinding, ...]:
    ordered = sorted(findings, key=lambda finding: finding.severity is not Severity.ERROR)
    return tuple(
        RecordedFinding(
            severity=finding.severity,
            check=finding.check,
            message=_cut(finding.message),
            block=finding.block,
            sequence_number=finding.sequence_number,
            file=finding.file and _cut(finding.file),
            hint=finding.hint and _cut(finding.hint),
            code=finding.code,
        )
        for finding in ordered[:MAX_FINDINGS]
    )


def _cut(text: str) -> str:
    return text if len(text) <= _MAX_LENGTH else f"{text[: _MAX_LENGTH - 1]}…"


def last_verification(dataset: StoredDataset) -> LastVerification | None:
    """Return the last verification of a dataset, None if it has not been verified here.

    Raises:
        MalformedManifest: the record is damaged; the message names the file.
    """
    return load_document(_path(dataset), _KIND, LastVerification)


def _path(dataset: StoredDataset) -> Path:
    return dataset.folder / "info" / "verification.yaml"
