"""Expansion of patterns over a repository, such as `mirror/com.%`, by the list of its datasets."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from odfpy.coordinator.storage.storage import Storage
from odfpy.dataset.names import DatasetPattern, is_pattern, is_url
from odfpy.errors import DatasetNotFound, InvalidValue, RepositoryNotFound
from odfpy.http.url import without_user
from odfpy.repository.locations.open import in_bucket, is_path
from odfpy.repository.registry import RepositoryRegistry

_NO_ESCAPE = re.compile("%(?![0-9A-Fa-f]{2})")
"""A `%` in a URL that is not part of an escape sequence."""


def expand(refs: Sequence[str], storage: Storage, registry: RepositoryRegistry) -> Iterator[str]:
    """Expand each pattern over a repository to references of the matching datasets.

    Args:
        refs: ids, names, patterns, remote references, paths and URLs.
        storage: the workspace; a pattern with an account that matches local datasets refers to the workspace.
        registry: the named repositories.

    Raises:
        DatasetNotFound: no dataset of the repository matches.
        NotListable: the repository cannot list its datasets.
        TransferError: the repository cannot be reached.
    """
    for ref in refs:
        if _is_remote_pattern(ref, storage):
            yield from _fitting(ref, registry)
        else:
            yield ref


def _is_remote_pattern(ref: str, storage: Storage) -> bool:
    place, _, name = ref.rpartition("/")
    if is_url(ref):
        return "%" in name if in_bucket(place) else _NO_ESCAPE.search(name) is not None
    if not place or not is_pattern(name):
        return False
    return is_path(ref) or not _fits_here(ref, storage)


def _fits_here(text: str, storage: Storage) -> bool:
    try:
        pattern = DatasetPattern(text)
    except InvalidValue:
        return False
    return any(pattern.matches(dataset.handle.alias) for dataset in storage.datasets())


def _fitting(ref: str, registry: RepositoryRegistry) -> Iterator[str]:
    from odfpy.repository.locations.listing import list_datasets

    if is_url(ref) or is_path(ref):
        place, _, text = ref.rpartition("/")
        url = place or "/"
    else:
        place, _, text = ref.partition("/")
        try:
            url = registry.get(place).url
        except RepositoryNotFound as error:
            raise RepositoryNotFound(
                f"No dataset matches the pattern {ref!r}, and {error.message[0].lower()}{error.message[1:]}",
                hint=error.hint,
            ) from error
    pattern = DatasetPattern(text)
    aliases = [item.alias for item in list_datasets(url) if pattern.matches(item.alias)]
    if not aliases:
        raise DatasetNotFound(
            f"No dataset of {without_user(place)} fits the pattern {text!r}",
            hint=f"`odf search --repo {without_user(place)}` lists what is there.",
        )
    yield from (f"{place}/{alias}" for alias in aliases)
