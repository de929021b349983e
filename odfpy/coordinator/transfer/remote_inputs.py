"""Search for missing inputs of a copy in the copy's repository, by name or else by id.

A query may use any names for its inputs; the chain does not contain the names of datasets at remotes.
"""

from __future__ import annotations

from contextlib import suppress

from odfpy.chain.events import Seed
from odfpy.chain.stores.ref_store import HEAD
from odfpy.dataset.identity import DatasetId
from odfpy.errors import DatasetNotFound, InvalidValue, OdfError
from odfpy.http.url import without_user
from odfpy.repository.locations.listing import ListedDataset, NotListable, list_datasets
from odfpy.repository.locations.open import open_dataset
from odfpy.repository.registry import RepositoryRegistry, resolve_remote
from odfpy.values import dataclass


@dataclass(frozen=True, slots=True)
class InputElsewhere:
    """An input of a copy that is missing in the workspace.

    Attributes:
        copy: source of the copy, as an argument of `odf pull`.
        name: name of the input in the query.
        dataset_id: id of the input.
    """

    copy: str
    name: str
    dataset_id: DatasetId

    def find(self, registry: RepositoryRegistry) -> str:
        """Return the location of the input, as an argument of `odf pull`; search by name, then by id.

        Raises:
            DatasetNotFound: the repository of the copy does not have it, or has no list of datasets.
            TransferError: the repository cannot be read.
        """
        beside = _folder_of(self.copy)
        with suppress(InvalidValue):  # its name in the query need not be valid for a dataset
            ref = f"{beside}/{self.name}"
            if open_dataset(resolve_remote(ref, registry)).refs.get(HEAD) is not None:
                return ref
        try:
            listed = list_datasets(_folder_of(resolve_remote(self.copy, registry)))
        except NotListable:
            listed = []
        for known in sorted(listed, key=self._is_unlike):
            if self._is(known):
                return f"{beside}/{known.alias}"
        raise DatasetNotFound(
            f"`{self.name}` ({self.dataset_id}), which {without_user(self.copy)} is derived from, is not to be found"
            " beside it",
            hint="If it has another name or repository, pull it from there: odf pull REPOSITORY/NAME",
        )

    def _is_unlike(self, known: ListedDataset) -> bool:
        """Return whether the name of a listed dataset is dissimilar; similar names are tried first."""
        return self.name.lower() not in str(known.alias).lower()

    def _is(self, known: ListedDataset) -> bool:
        if known.id is not None:
            return known.id == self.dataset_id  # the index may be wrong: the pull checks the id
        with suppress(OdfError):  # a damaged dataset is not a candidate
            for hashed in open_dataset(known.url).chain.iter_blocks():
                event = hashed.block.event
                if isinstance(event, Seed):
                    return event.dataset_id == self.dataset_id
        return False


def _folder_of(url: str) -> str:
    return url.rstrip("/").rpartition("/")[0]
