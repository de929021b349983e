"""Revocation and expiry of keys: statements for all owners of a dataset, and for the user.

    $XDG_CONFIG_HOME/odf/revoked-keys.yaml   statements that the user has made or received
    info/revocations/<key>                   statements about a key, beside the chain of each dataset signed with it

Other users only accept statements by the key itself and by a dataset's own key. A user's statement about the key of
another user is effective only for that user, except in datasets whose own key is in the workspace.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from odfpy.chain import revocations
from odfpy.chain.revocations import KeyRevocation, KnownRevocations, honoured_in
from odfpy.data.timestamp import Timestamp
from odfpy.dataset.identity import ActorId, DatasetId
from odfpy.errors import MalformedManifest
from odfpy.files import configuration_folder, locked_for_change
from odfpy.repository.documents import load_document, save_document
from odfpy.values import dataclass

if TYPE_CHECKING:
    from odfpy.chain.layout import DatasetLayout

_FILE: Final = "revoked-keys.yaml"
_KIND: Final = "RevokedKeys"
_MAX_LEARNT: Final = 1000


@dataclass(frozen=True, slots=True)
class _Document:
    made: tuple[KeyRevocation, ...] = ()
    learnt: tuple[KeyRevocation, ...] = ()


class RevokedKeysFile:
    """The user's file of revoked and expired keys."""

    def __init__(self, folder: Path | None = None) -> None:
        self._path = (folder or configuration_folder()) / _FILE

    def load(self) -> KnownRevocations:
        """Return the content of the file.

        Raises:
            MalformedManifest: the file is damaged; the message names the file.
        """
        try:
            status = self._path.stat()
        except OSError:  # it is missing or unreadable, which is then reported
            return _read(self._path)
        # Every commit needs the content; checking its signatures takes longer than checking if the file has changed.
        return _read_once(self._path, status.st_ino, status.st_mtime_ns, status.st_size)

    def add(
        self,
        *,
        made: Iterable[KeyRevocation] = (),
        learnt: Iterable[KeyRevocation] = (),
        named: Collection[ActorId] = (),
    ) -> None:
        """Add statements.

        Args:
            made: statements by the user.
            learnt: statements by others; their number is limited, so that invented keys cannot fill the file.
            named: keys known to the user, for which all statements are stored.
        """
        # Concurrent processes must not overwrite each other's additions.
        with locked_for_change(self._path):
            known = self.load()
            names = {str(key) for key in named}
            every = tuple(dict.fromkeys((*known.learnt, *learnt)))
            strangers = [revocation for revocation in every if revocation.key not in names]
            dropped = set(strangers[:-_MAX_LEARNT])
            new = replace(
                known,
                made=tuple(dict.fromkeys((*known.made, *made))),
                learnt=tuple(revocation for revocation in every if revocation not in dropped),
            )
            if new != known:
                save_document(self._path, _KIND, _Document(new.made, new.learnt))


@lru_cache(maxsize=4)
def _read_once(path: Path, *_stamp: int) -> KnownRevocations:
    return _read(path)


def _read(path: Path) -> KnownRevocations:
    document = load_document(path, _KIND, _Document)
    if document is None:
        return KnownRevocations()
    forged = next((revocation for revocation in (*document.made, *document.learnt) if not revocation.is_honest()), None)
    if forged is not None:
        raise MalformedManifest(f"{path}: a statement about {forged.key} is not signed by the key that it names")
    return KnownRevocations(document.made, document.learnt)


def end_of_key(
    key: ActorId, dataset_id: DatasetId, layout: DatasetLayout, known: KnownRevocations, now: Timestamp
) -> KeyRevocation | None:
    """Return the statement that forbids a key to sign in a dataset; None if there is none.

    Args:
        key: the key.
        dataset_id: id of the dataset.
        layout: the folder of the dataset.
        known: known statements about keys.
        now: the time of the signature.
    """
    statements = (*known.get(dataset_id), *honoured_in(layout.side, dataset_id, [key]))
    return next((statement for statement in statements if statement.key == str(key) and statement.has_come(now)), None)


def announce(key: ActorId, layout: DatasetLayout, dataset_id: DatasetId, known: KnownRevocations) -> None:
    """Write to a dataset when a key that signs in it will expire, so that other users are informed.

    Args:
        key: the key.
        layout: the folder of the dataset.
        dataset_id: id of the dataset.
        known: known statements about keys.
    """
    revoking = [
        revocation
        for revocation in known.get(dataset_id)
        if revocation.key == str(key) and revocation.is_honoured_in(dataset_id)
    ]
    if revoking and layout.side is not None:
        revocations.add(layout.side, revoking)
