"""Names for shell completion, read directly from the workspace's folder to be fast.

Chains are neither loaded nor checked; unreadable names are omitted.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from odfpy.files import read_regular

# The layout is defined in `odfpy.coordinator.storage.storage` and `odfpy.repository.registry`.
_VERSION, _DATASETS, _REPOSITORIES = ".odf/version", ".odf/datasets", ".odf/repos"
_ID = "did:odf:"


def dataset_names(folder: Path) -> list[tuple[str, str]]:
    """Return name and id of each dataset in the workspace of a folder, sorted by name."""
    return sorted(_datasets(folder))


def repository_names(folder: Path) -> list[str]:
    """Return the names of the repositories in the workspace of a folder, sorted."""
    root = _root(folder)
    return [] if root is None else sorted(path.stem for path in (root / _REPOSITORIES).glob("[!.]*.yaml"))


def _datasets(folder: Path) -> Iterator[tuple[str, str]]:
    root = _root(folder)
    for path in () if root is None else (root / _DATASETS).glob("[!.]*/info/alias"):
        try:
            yield read_regular(path).decode().strip(), f"{_ID}{path.parents[1].name}"
        except (OSError, UnicodeDecodeError):
            continue


def _root(folder: Path) -> Path | None:
    start = folder.absolute()
    return next((place for place in (start, *start.parents) if (place / _VERSION).is_file()), None)
