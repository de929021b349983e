"""Looking for datasets in repositories."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from odfpy.dataset.names import is_url
from odfpy.errors import OdfError, UsageError
from odfpy.http.url import without_user
from odfpy.repository.places.listing import ListedDataset, list_datasets
from odfpy.repository.places.open import is_path, normalize_url
from odfpy.repository.registry import RepositoryRegistry


@dataclass(frozen=True, slots=True)
class FoundDataset:
    """A dataset in a repository.

    Attributes:
        ref: what `odf pull` takes: `repository/name`, or the URL if the repository has no name here.
        dataset: what is known of it.
    """

    ref: str
    dataset: ListedDataset

    @property
    def public_url(self) -> str:
        """Return where it is, fit to be shown."""
        return without_user(self.dataset.url)


def search_repositories(
    registry: RepositoryRegistry, text: str, places: Sequence[str]
) -> tuple[list[FoundDataset], list[OdfError]]:
    """Datasets whose names, descriptions or keywords have all words of a text, by repository and name.

    Args:
        registry: the named repositories.
        text: the words, whatever the case.
        places: names of repositories, paths and URLs; all named repositories if there are none.

    Returns:
        what was found, and what went wrong: one place that does not answer keeps nobody from the others.

    Raises:
        UsageError: there is nowhere to look.
        InvalidValue, RepositoryNotFound: a place that cannot be.
    """
    where = [place_of(registry, place) for place in places]
    if not where:
        where = [(f"{item.name}/", item.url) for item in registry.list()]
    if not where:
        raise UsageError(
            "There are no repositories to look into",
            hint="Add one with `odf repo add NAME URL`, or name one: --repo URL",
        )
    found: list[FoundDataset] = []
    problems: list[OdfError] = []
    for beginning, url in where:
        try:
            listed = list_datasets(url, text)
        except OdfError as error:
            problems.append(error)
            continue
        found += [FoundDataset(f"{beginning}{item.alias}", item) for item in listed]
        problems += [item.problem for item in listed if item.problem is not None]
    return found, problems


def place_of(registry: RepositoryRegistry, place: str) -> tuple[str, str]:
    """Return what references there begin with, and the URL; of the name of a repository, a path or a URL.

    Raises:
        InvalidValue, RepositoryNotFound: it cannot be.
    """
    if is_url(place) or is_path(place):
        url = normalize_url(place)
        return f"{without_user(url)}/", url
    repository = registry.get(place)
    return f"{repository.name}/", repository.url
