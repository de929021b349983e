"""URLs that let their holder download or upload one object for a limited time, signed by an HMAC over the permission.

<dataset>/signed-data/<hash>?dataset=did:odf:...&size=...&expires=...&signature=...
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlencode

from odfpy.data.multihash import Multihash
from odfpy.dataset.identity import DatasetId
from odfpy.repository.objects import ObjectKind

LIFETIME = 3600
"""Seconds within which a request must begin; the transfer may take longer."""

FOLDERS = {ObjectKind.DATA_SLICE: "signed-data", ObjectKind.CHECKPOINT: "signed-checkpoints"}
KINDS = {folder: kind for kind, folder in FOLDERS.items()}


@dataclass(frozen=True, slots=True)
class Grant:
    """The permission in a signed URL.

    Attributes:
        method: permitted HTTP method.
        place: index of the workspace, if a server has several.
        dataset_id: id of the dataset.
        kind: kind of the object.
        name: hash of the object.
        size: size of the object in bytes.
        expires: time of expiry, in seconds since the epoch.
    """

    method: Literal["GET", "PUT"]
    place: int
    dataset_id: DatasetId
    kind: ObjectKind
    name: Multihash
    size: int
    expires: int


class UrlSigner:
    """Signs grants and verifies them. The key is never stored: URLs become invalid when their server ends."""

    def __init__(self) -> None:
        self._key = secrets.token_bytes(32)

    def path(self, grant: Grant) -> str:
        """Return path and query of the signed URL, relative to the URL of the dataset."""
        query = {
            "place": grant.place,
            "dataset": grant.dataset_id,
            "size": grant.size,
            "expires": grant.expires,
            "signature": self._signature(grant),
        }
        return f"{FOLDERS[grant.kind]}/{grant.name}?{urlencode(query)}"

    def allows(self, grant: Grant, signature: str, now: int) -> bool:
        """Return whether a signature is valid and has not expired.

        Args:
            grant: the permission.
            signature: the signature in the URL.
            now: current time, in seconds since the epoch.
        """
        is_ours = hmac.compare_digest(self._signature(grant).encode(), signature.encode("utf-8", "replace"))
        return is_ours and now < grant.expires

    def _signature(self, grant: Grant) -> str:
        parts = (
            grant.method,
            str(grant.place),
            str(grant.dataset_id),
            grant.kind.value,
            str(grant.name),
            str(grant.size),
            str(grant.expires),
        )
        return hmac.new(self._key, "\n".join(parts).encode(), hashlib.sha256).hexdigest()
