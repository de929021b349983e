"""Names for shell completion, read directly from the workspace's folder, since completion has to be fast.

Chains are neither loaded nor checked; what cannot be read is left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from odfpy.files import read_regular

# As `odfpy.coordinator.storage.storage` and `odfpy.repository.registry` lay them down.
_VERSION, _DATASETS, _REPOSITORIES = ".odf/version", ".odf/datasets", ".odf/repos"
_ID = "did:odf:"


def dataset_names(folder: Path) -> list[tuple[str, str]]:
    """Return name and id of each dataset of the workspace that a folder is in, sorted by name."""
    return sorted(_datasets(folder))


def repository_names(folder: Path) -> list[str]:
    """Return the names of the repositories of the workspace that a folder is in, sorted."""
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
