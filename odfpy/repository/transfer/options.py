"""Options of a transfer."""

from __future__ import annotations

from typing import Final

from odfpy.chain.required_signers import RequiredSigners
from odfpy.data.multihash import Multihash
from odfpy.data.timestamp import Timestamp
from odfpy.dataset.identity import DatasetId
from odfpy.repository.transfer.linked import ALL_FILES, WantedFiles
from odfpy.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferOptions:
    """Requirements of a transfer on its source, and the choice of what it copies.

    Attributes:
        force: whether to replace the target's chain by the source's, even if that drops blocks of the target.
        expected_id: required id of the dataset; a target that is not empty implies it anyway. None for any.
        seen: the source's head when last seen, None if never; without `force`, the source must not be behind it.
        required: signers required for the source's head; records which keys are revoked or expired. None for none.
        clock: current time; blocks must not be far ahead of it. None for no check.
        files: which linked objects to transfer.
    """

    force: bool = False
    expected_id: DatasetId | None = None
    seen: Multihash | None = None
    required: RequiredSigners | None = None
    clock: Timestamp | None = None
    files: WantedFiles = ALL_FILES


DEFAULTS: Final = TransferOptions()
"""Fast-forwards only; all linked objects."""
