"""Search for datasets in repositories."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from odfpy.dataset.names import is_url
from odfpy.errors import OdfError, UsageError
from odfpy.http.url import without_user
from odfpy.repository.locations.listing import ListedDataset, list_datasets
from odfpy.repository.locations.open import is_path, normalize_url
from odfpy.repository.registry import RepositoryRegistry


@dataclass(frozen=True, slots=True)
class FoundDataset:
    """A dataset in a repository.

    Attributes:
        ref: reference for `odf pull`: `repository/name`, or the URL if the repository has no local name.
        dataset: the listed dataset.
    """

    ref: str
    dataset: ListedDataset

    @property
    def public_url(self) -> str:
        """Return the URL without credentials."""
        return without_user(self.dataset.url)


def search_repositories(
    registry: RepositoryRegistry, text: str, places: Sequence[str]
) -> tuple[list[FoundDataset], list[OdfError]]:
    """Find datasets whose names, descriptions or keywords contain all words of a text, sorted by repository and name.

    Args:
        registry: the named repositories.
        text: the words; case does not matter.
        places: names of repositories, paths and URLs; all named repositories if empty.

    Returns:
        The datasets, and the errors of repositories that cannot be searched.

    Raises:
        UsageError: there are no repositories to search.
        InvalidValue, RepositoryNotFound: one of `places` is invalid.
    """
    where = [prefix_and_url_of(registry, repository) for repository in places]
    if not where:
        where = [(f"{item.name}/", item.url) for item in registry.list()]
    if not where:
        raise UsageError(
            "There are no repositories to search",
            hint="Add one with `odf repo add NAME URL`, or name one: --repo URL",
        )
    datasets: list[FoundDataset] = []
    problems: list[OdfError] = []
    for beginning, url in where:
        try:
            listed = list_datasets(url, text)
        except OdfError as error:
            problems.append(error)
            continue
        datasets += [FoundDataset(f"{beginning}{item.alias}", item) for item in listed]
        problems += [item.problem for item in listed if item.problem is not None]
    return datasets, problems


def prefix_and_url_of(registry: RepositoryRegistry, place: str) -> tuple[str, str]:
    """Return URL and reference prefix of a repository, by its name, a path or a URL.

    Raises:
        InvalidValue, RepositoryNotFound: the place is invalid.
    """
    if is_url(place) or is_path(place):
        url = normalize_url(place)
        return f"{without_user(url)}/", url
    repository = registry.get(place)
    return f"{repository.name}/", repository.url
