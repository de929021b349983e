"""Files and folders of a new workspace, copied from `workspace_template/`."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from odfpy.coordinator.storage.workspace_folder import ODF_FOLDER, version_missing
from odfpy.errors import AlreadyExists, NotFound, OdfError

if TYPE_CHECKING:
    from importlib.abc import Traversable

PRIVATE = 0o700
"""Mode of `.odf`: datasets may be private, and settings may contain tokens."""

FOLDERS = {"datasets": 0o755, "repos": 0o755, "cache": 0o755, "run": 0o700, "keys": 0o700, "approved": 0o700}


def write_template(folder: Path) -> None:
    """Create an empty workspace, `.odf/` with its files and folders, atomically.

    Args:
        folder: an existing folder; its other content is not changed.

    Raises:
        NotFound: the folder does not exist.
        AlreadyExists: the folder is already a workspace.
        IntegrityError: the folder has a damaged workspace.
        OdfError: the folder cannot be written to.
    """
    if not folder.is_dir():
        raise NotFound(f"There is no folder {folder}", hint="Create it first, or use another one.")
    target = folder / ODF_FOLDER
    already = AlreadyExists(f"{folder} is already a workspace", hint="Use it; `odf list` shows its datasets.")
    if target.exists() or target.is_symlink():
        raise already if target.joinpath("version").exists() else version_missing(folder)
    # Build under a temporary name and rename, so that no process ever sees an incomplete workspace.
    scratch = folder / f"{ODF_FOLDER}.{secrets.token_hex(8)}"
    try:
        try:
            _build(scratch)
            scratch.rename(target)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
    except OSError as error:
        if target.is_dir():
            raise already from error
        raise OdfError(
            f"Cannot create a workspace in {folder}: {error.strerror}",
            hint="Check permissions and free space of the folder.",
        ) from error


def _build(scratch: Path) -> None:
    scratch.mkdir(mode=PRIVATE)  # private, regardless of the modes of its content
    for path, file in _files(_template(), ()):
        copy = scratch.joinpath(*path)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(file.read_bytes())
    for name, mode in FOLDERS.items():
        (scratch / name).mkdir()
        (scratch / name).chmod(mode)  # the mode of mkdir is limited by the umask


def _template() -> Traversable:
    return resources.files("odfpy.coordinator") / "workspace_template" / ODF_FOLDER


def _files(folder: Traversable, above: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Traversable]]:
    """Yield every file below a folder of the package, with its path as a tuple of names."""
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        path = (*above, entry.name)
        if entry.is_dir():
            yield from _files(entry, path)
        else:
            yield path, entry
