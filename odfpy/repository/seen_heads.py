"""Heads of other places when they were last seen, so that one that goes back is noticed.

info/remotes.yaml    in the dataset's folder: places by URL, each with the last block that it was seen to have
"""

from __future__ import annotations

from pathlib import Path

from odfpy.data.multihash import Multihash
from odfpy.errors import InvalidValue, MalformedManifest
from odfpy.files import changing
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
    """The heads of one dataset in other places. They are local: they do not travel with it."""

    def __init__(self, path: Path) -> None:
        """
        Args:
            path: the file; it comes to be when a first place has been looked at.
        """
        self._path = path

    def get(self, url: str) -> Multihash | None:
        """The head that a place had, None when it has not been looked at.

        Raises:
            MalformedManifest: the file is damaged; the message names it.
        """
        url = without_user(url)
        head = next((place.head for place in self._places() if place.url == url), None)
        try:
            return None if head is None else Multihash.parse(head)
        except InvalidValue as error:
            raise MalformedManifest(f"{self._path}: {error.message}", hint="Remove the file.") from error

    def remember(self, url: str, head: Multihash) -> None:
        """A place has been seen to have a head."""
        place = _Place(without_user(url), str(head))
        if place in self._places()[:1]:
            return
        if not self._path.parent.parent.is_dir():  # the dataset was deleted meanwhile
            return
        with changing(self._path):  # pushes to several places go on at once
            others = (one for one in self._places() if one.url != place.url)
            save_document(self._path, _KIND, _PlacesDocument((place, *others)))

    def _places(self) -> tuple[_Place, ...]:
        document = load_document(self._path, _KIND, _PlacesDocument)
        return document.places if document else ()
