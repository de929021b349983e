"""`odf clone`: create a workspace with a copy of a dataset, as `git clone` creates a folder with a repository."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

from odfpy.coordinator.requests import PullRequest
from odfpy.coordinator.storage.results import ProgressSink, PullResult
from odfpy.coordinator.workspace import Workspace
from odfpy.dataset.names import is_url
from odfpy.errors import AlreadyExists, InvalidValue, WorkspaceNotFound
from odfpy.http.url import without_user
from odfpy.repository.locations.open import is_path, normalize_url
from odfpy.repository.registry import resolve_remote


def dataset_url(text: str, folder: Path) -> str:
    """Return the URL of a dataset in another location.

    Args:
        text: a URL or path; or `repository/name`, in the workspace of the folder.
        folder: the current folder.

    Raises:
        InvalidValue: the text is none of these.
        RepositoryNotFound: the repository is not defined; the message has a suggestion.
    """
    if is_url(text) or is_path(text):
        return normalize_url(text)
    try:
        return resolve_remote(text, Workspace.open(folder).remotes.repositories)
    except WorkspaceNotFound:
        raise InvalidValue(
            f"Not a URL or path: {text!r}",
            hint="A path begins with /, ./ or ../; named repositories exist only in a workspace.",
        ) from None


def clone(request: PullRequest, folder: Path, *, progress: ProgressSink) -> Iterator[PullResult]:
    """Create a workspace and copy a dataset into it. A workspace without a dataset is removed again.

    Args:
        request: a pull of one URL.
        folder: the folder of the new workspace, which must be missing or empty.
        progress: called with the progress.

    Raises:
        AlreadyExists: the folder is not empty.
    """
    was_there = folder.exists()
    if was_there and (not folder.is_dir() or any(folder.iterdir())):
        raise AlreadyExists(
            f"{folder} already exists, and is not an empty folder",
            hint=f"Use another folder; or, in a workspace, run `odf pull {request.refs[0]}`.",
        )
    workspace = Workspace.init(folder)
    try:
        yield from workspace.updates.pull(request, progress)
    finally:
        if not workspace.datasets.all() and not _has_files(workspace.storage.cache / "incoming"):
            shutil.rmtree(folder / ".odf" if was_there else folder, ignore_errors=True)


def resume_command(url: str, folder: Path) -> str:
    """Return the command that continues an interrupted copy."""
    return f"odf -w {folder} pull {without_user(url)}"


def _has_files(folder: Path) -> bool:
    return any(path.is_file() for path in folder.rglob("*"))
