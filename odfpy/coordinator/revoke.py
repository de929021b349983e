"""Revocation of a key, recorded beside the datasets signed with it.

Other users only accept statements by the key itself and by a dataset's own key. A user's statement about the key of
another user is effective only for that user, except in datasets whose own key is in the workspace.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

from odfpy.chain import revocations
from odfpy.chain.revocations import KeyRevocation, LastBlock, Reason
from odfpy.chain.signatures import FOLDER as SIGNATURES
from odfpy.coordinator.storage.revoked_keys import RevokedKeysFile
from odfpy.coordinator.storage.storage import Storage, StoredDataset
from odfpy.data.timestamp import Timestamp
from odfpy.dataset.identity import ActorId, KeyPair
from odfpy.errors import OdfError


@dataclass(frozen=True, slots=True)
class Revoked:
    """The outcome of a revocation.

    Attributes:
        key: the key.
        by_itself: whether the statement is by the key itself, so that everybody accepts it.
        datasets: the datasets that now record it; owners of copies receive it with the next push and pull.
    """

    key: ActorId
    by_itself: bool
    datasets: tuple[StoredDataset, ...]


def revoke_key(
    storage: Storage | None,
    key: ActorId,
    reason: Reason,
    *,
    holder: KeyPair | None,
    me: KeyPair,
    expires: Timestamp | None = None,
    only: Iterable[StoredDataset] | None = None,
) -> Revoked:
    """State that a key is revoked, or when it will expire.

    Args:
        storage: the workspace with the datasets; None outside of one.
        key: the key.
        reason: the reason.
        holder: the key pair of the revoked key, if available.
        me: the key of the user, which signs the statement if `holder` is not available.
        expires: time of expiry; now if None.
        only: the datasets to record it in; None for all that the key has signed.

    Raises:
        OdfError: the statement cannot be written, or a dataset has no room for another one.
    """
    now = Timestamp.now()
    general = KeyRevocation.made_by(holder or me, key, reason, now, expires=expires)
    if only is None:
        RevokedKeysFile().add(made=[general])
    datasets = only if only is not None else storage.datasets() if storage is not None else ()
    written: list[StoredDataset] = []
    full: list[StoredDataset] = []
    for dataset in datasets:
        if only is None and not _has_signed(dataset, key):
            continue
        signer = holder or _owner(dataset)
        with dataset.writing() as locked:
            statements = _about(locked, signer or me, key, reason, now, expires)
            if signer is None:
                RevokedKeysFile().add(made=statements)
            elif locked.layout.side is not None:
                revocations.add(locked.layout.side, statements)
                existing = revocations.honoured_in(locked.layout.side, dataset.handle.id, [key])
                (written if existing and set(statements) <= set(existing) else full).append(dataset)
    if full:
        names = ", ".join(str(dataset.handle.alias) for dataset in full)
        raise OdfError(
            f"The list of revocations for {key} in {names} is full",
            hint="`--reason compromised` replaces weaker statements.",
        )
    return Revoked(key, holder is not None, tuple(written))


def _owner(dataset: StoredDataset) -> KeyPair | None:
    with suppress(OdfError):
        return dataset.workspace_folder.keys.get(dataset.handle.id)
    return None


def _has_signed(dataset: StoredDataset, key: ActorId) -> bool:
    text = str(key).encode()
    folder = dataset.folder / SIGNATURES
    return folder.is_dir() and any(text in path.read_bytes() for path in folder.iterdir() if path.is_file())


def _about(
    dataset: StoredDataset, signer: KeyPair, key: ActorId, reason: Reason, now: Timestamp, expires: Timestamp | None
) -> list[KeyRevocation]:
    """Return the statements about a key in a dataset: by time and, unless it expires later, by block."""
    layout, dataset_id = dataset.layout, dataset.handle.id
    statements = [KeyRevocation.made_by(signer, key, reason, now, expires=expires)]
    if expires is None:
        head = layout.chain.block(layout.chain.head())
        last = LastBlock(dataset_id, head.hash, head.block.sequence_number)
        statements.append(KeyRevocation.made_by(signer, key, reason, now, since=last))
    return statements
