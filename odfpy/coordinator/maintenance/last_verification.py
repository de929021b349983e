"""The last verification of a dataset, for pages and lists, which look later.

info/verification.yaml    in the dataset's folder
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from odfpy.coordinator.storage.results import Severity, VerifyReport
from odfpy.coordinator.storage.stored_dataset import StoredDataset
from odfpy.data.multihash import Multihash
from odfpy.data.scalars import I64
from odfpy.data.timestamp import Timestamp
from odfpy.errors import OdfError
from odfpy.repository.documents import load_document, save_document

_KIND = "DatasetVerification"


@dataclass(frozen=True, slots=True)
class LastVerification:
    """A verification, and what it was about.

    Attributes:
        time: when it ended.
        head: the last block that it looked at; what came later is not verified.
        errors: number of findings that make it fail.
        warnings: number of other findings.
        transforms_replayed: number of transforms that were computed again.
        integrity_only: whether transforms were left out.
    """

    time: Timestamp
    head: Multihash
    errors: I64
    warnings: I64
    transforms_replayed: I64
    integrity_only: bool

    @property
    def ok(self) -> bool:
        """True if nothing was wrong."""
        return not self.errors


def remember_verification(dataset: StoredDataset, report: VerifyReport, *, integrity_only: bool) -> None:
    """Keep what a verification of a whole dataset came to; one that cannot be kept is not worth an error.

    Args:
        dataset: the dataset, as it was verified.
        report: the report.
        integrity_only: whether transforms were left out.
    """
    errors = sum(finding.severity is Severity.ERROR for finding in report.findings)
    with suppress(OdfError, OSError):
        if report.head is None or dataset.block is not None or dataset.branch is not None:
            return
        found = LastVerification(
            time=Timestamp.now(),
            head=report.head,
            errors=errors,
            warnings=len(report.findings) - errors,
            transforms_replayed=report.transforms_replayed,
            integrity_only=integrity_only,
        )
        save_document(_path(dataset), _KIND, found)


def last_verification(dataset: StoredDataset) -> LastVerification | None:
    """Return the last verification of a dataset, None if nobody has verified it here.

    Raises:
        MalformedManifest: the record is damaged; the message names its file.
    """
    return load_document(_path(dataset), _KIND, LastVerification)


def _path(dataset: StoredDataset) -> Path:
    return dataset.folder / "info" / "verification.yaml"
