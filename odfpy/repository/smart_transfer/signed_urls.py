"""URLs that let whoever has them get or put one object, for some time: an HMAC over what is allowed.

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
"""Seconds; within these a request has to begin, however long it takes then."""

FOLDERS = {ObjectKind.DATA_SLICE: "signed-data", ObjectKind.CHECKPOINT: "signed-checkpoints"}
KINDS = {folder: kind for kind, folder in FOLDERS.items()}


@dataclass(frozen=True, slots=True)
class Grant:
    """The permission that a URL carries.

    Attributes:
        method: what may be done.
        place: the workspace, where a server has several.
        dataset_id: the dataset.
        kind: what the object is.
        name: its hash.
        size: its size in bytes.
        expires: seconds since 1970.
    """

    method: Literal["GET", "PUT"]
    place: int
    dataset_id: DatasetId
    kind: ObjectKind
    name: Multihash
    size: int
    expires: int


class UrlSigner:
    """Signs grants, and knows its own signatures. Its key lives as long as it does: no URL outlives its server."""

    def __init__(self) -> None:
        self._key = secrets.token_bytes(32)

    def path(self, grant: Grant) -> str:
        """Path and query below the URL of the dataset."""
        query = {
            "place": grant.place,
            "dataset": grant.dataset_id,
            "size": grant.size,
            "expires": grant.expires,
            "signature": self._signature(grant),
        }
        return f"{FOLDERS[grant.kind]}/{grant.name}?{urlencode(query)}"

    def allows(self, grant: Grant, signature: str, now: int) -> bool:
        """Return whether a signature is ours, and not too old.

        Args:
            grant: the permission.
            signature: the signature in the URL.
            now: seconds since the epoch.
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
