"""Recipients and users outside of Delta Sharing: their read access over REST, Flight SQL and transfers.

They may read a dataset if grants of sharing show its complete changelog: every column of every row. Datasets that they
may only see in part are available to them as shared tables, and in no other way.
"""

from __future__ import annotations

from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Final

from odfpy.coordinator.storage.config import Config
from odfpy.coordinator.storage.storage import Storage
from odfpy.settings.sections import SharingSection

if TYPE_CHECKING:
    from odfpy.sharing.model import Principal
    from odfpy.sharing.sharing import Sharing

_OPENED: Final[dict[Path, Sharing]] = {}
_LOCK: Final = Lock()


def sharing_of(storage: Storage) -> Sharing | None:
    """Return the shares of a workspace; None if it never shared anything.

    Raises:
        SharingDatabaseError: their database cannot be used.
    """
    with _LOCK:
        sharing = _OPENED.get(storage.root)
    if sharing is None and _database(storage) is None and not (storage.odf / "sharing.db").exists():
        return None
    return sharing or opened_sharing(storage)


def opened_sharing(storage: Storage) -> Sharing:
    """Return the shares of a workspace, opened once for each process; None if it never shared anything.

    Raises:
        SharingDatabaseError: their database cannot be used.
    """
    with _LOCK:
        sharing = _OPENED.get(storage.root)
        if sharing is None:
            from odfpy.sharing.sharing import Sharing

            sharing = _OPENED[storage.root] = Sharing.of_workspace(storage.odf, _database(storage))
        return sharing


def find_principal(text: str, storage: Storage) -> tuple[Principal, frozenset[str]] | None:
    """Return the owner of a token, and the ids of the datasets that they may read completely; None for an unknown
    token.
    """
    sharing = sharing_of(storage)
    principal = None if sharing is None else sharing.principals.find(text)
    if sharing is None or principal is None:
        return None
    return principal, sharing.whole_datasets(principal)


def _database(storage: Storage) -> str | None:
    return Config.load(storage.root).section(SharingSection).database
