"""The last seen heads of remotes, to detect rollbacks.

info/remotes.yaml    in the dataset's folder: URLs of remotes, each with the last seen head
"""

from __future__ import annotations

from pathlib import Path

from odfpy.data.multihash import Multihash
from odfpy.errors import InvalidValue, MalformedManifest
from odfpy.files import locked_for_change
from odfpy.http.url import without_user
from odfpy.repository.documents import load_document, save_document
from odfpy.values import dataclass

_KIND = "DatasetRemotes"


@dataclass(frozen=True, slots=True)
class _Place:
    url: str
    head: str


@dataclass(frozen=True, slots=True)
class _PlacesDocument:
    places: tuple[_Place, ...] = ()


class SeenHeads:
    """The last seen remote heads of one dataset; they are local to the workspace."""

    def __init__(self, path: Path) -> None:
        """
        Args:
            path: path of the file; created when the first head is seen.
        """
        self._path = path

    def get(self, url: str) -> Multihash | None:
        """Return the last seen head of a remote, None if there is none.

        Raises:
            MalformedManifest: the file is damaged; the message names the file.
        """
        url = without_user(url)
        head = next((place.head for place in self._places() if place.url == url), None)
        try:
            return None if head is None else Multihash.parse(head)
        except InvalidValue as error:
            raise MalformedManifest(f"{self._path}: {error.message}", hint="Remove the file.") from error

    def remember(self, url: str, head: Multihash) -> None:
        """Store the head of a remote."""
        place = _Place(without_user(url), str(head))
        if place in self._places()[:1]:
            return
        if not self._path.parent.parent.is_dir():  # the dataset was deleted in the meantime
            return
        with locked_for_change(self._path):  # pushes to several remotes run concurrently
            others = (one for one in self._places() if one.url != place.url)
            save_document(self._path, _KIND, _PlacesDocument((place, *others)))

    def _places(self) -> tuple[_Place, ...]:
        document = load_document(self._path, _KIND, _PlacesDocument)
        return document.places if document else ()
