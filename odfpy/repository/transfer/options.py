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
    """Requirements on the source of a transfer, and content to copy.

    Attributes:
        force: whether to replace the target's chain by the source's, even if that drops blocks of the target.
        expected_id: required id of the dataset, None for any; it must also be the id of an existing target.
        seen: the last seen head of the source, None if never seen; without `force`, the source must not be behind it.
        required: required signers of the source's head, None for none; records revoked and expired keys.
        clock: current time; blocks must not be far ahead of it. None for no check.
        files: linked objects to transfer.
    """

    force: bool = False
    expected_id: DatasetId | None = None
    seen: Multihash | None = None
    required: RequiredSigners | None = None
    clock: Timestamp | None = None
    files: WantedFiles = ALL_FILES


DEFAULTS: Final = TransferOptions()
"""Fast-forwards only, with all linked objects."""
