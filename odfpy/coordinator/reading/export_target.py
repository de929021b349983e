"""Target of an export: checks what may be replaced, and replaces it atomically.

The export is written to a *workshop*, a folder beside the target that is locked while in use. An unlocked workshop was
left by a killed export, and is removed when the next export beside it begins.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from odfpy.coordinator.reading.export_sidecar import IN_FOLDER, read_sidecar, sidecar_of, unlisted_files
from odfpy.errors import AlreadyExists, MalformedData, NotFound, OdfError, UsageError
from odfpy.files import MANY, sync_file_system, sync_folder, try_lock

WORKSHOP: Final = ".odf-export-"
"""Prefix of the names of workshops."""

_NEW: Final = "new"
_FORMER: Final = "former"


@dataclass(frozen=True, slots=True)
class ExportTarget:
    """The file or folder of an export.

    Attributes:
        to: path of the file or folder.
        is_folder: whether the target is a folder.
    """

    to: Path
    is_folder: bool

    @classmethod
    def of(cls, to: str | Path, *, is_folder: bool) -> ExportTarget:
        """Parse a target.

        Raises:
            UsageError: the path is invalid.
        """
        text = str(to)
        if text in ("", "-"):
            raise UsageError("Missing option --to", hint="Name a file; `odf sql -c ... -o csv` prints rows instead.")
        if "://" in text:
            raise UsageError(f"{text} is not a path on this machine", hint="Export to a file, and copy it there.")
        if text.endswith("/") and not is_folder:
            raise UsageError(
                f"{text} would be a folder", hint="Folders are written with --partition-by or --rows-per-file."
            )
        return cls(Path(text), is_folder)

    @property
    def sidecar(self) -> Path:
        """Return the path of the sidecar."""
        return sidecar_of(self.to, is_folder=self.is_folder)

    def check(self, *, overwrite: bool) -> None:
        """Check that the target is free, or contains only an export that may be replaced.

        Raises:
            AlreadyExists: the target exists, and may not be replaced.
            OdfError: the target cannot be written.
        """
        to, folder = self.to, self.to.parent
        if not folder.is_dir():
            raise OdfError(f"Cannot write {to}: No such file or directory", hint=f"Make the folder {folder} first.")
        if not os.access(folder, os.W_OK | os.X_OK):
            raise OdfError(f"Cannot write {to}: no permission to write to {folder}", hint="Choose another folder.")
        if not to.exists() and not to.is_symlink():
            return
        if to.is_dir() != self.is_folder:
            what = "a folder" if to.is_dir() else "a file"
            hint = "Choose another name. Folders are written with --partition-by or --rows-per-file."
            raise AlreadyExists(f"{to} is {what}", hint=hint)
        if self.is_folder and not any(to.iterdir()):
            return
        if to.exists() and not to.is_dir() and not to.is_file():
            raise AlreadyExists(f"{to} is a device, not a file", hint="Choose another name.")
        if not overwrite:
            raise AlreadyExists(f"{to} already exists", hint="Choose another name, or --overwrite it.")
        if self.is_folder:
            _require_exported(to)

    @contextmanager
    def write_to_temporary(self) -> Iterator[Path]:
        """Yield an empty folder for the files and the sidecar; on success, flush them and move them to the target.

        Raises:
            OSError: a file cannot be written or moved.
            AlreadyExists: another file has appeared at the target.
        """
        with _workshop(self.to.parent) as workshop:
            new = workshop / _NEW
            new.mkdir()
            yield new
            _flush(new)
            if self.is_folder:
                self._replace_folder(new, workshop / _FORMER)
            else:
                self.sidecar.unlink(missing_ok=True)  # the old sidecar would describe the new file
                (new / self.to.name).replace(self.to)
                sync_folder(self.to.parent)
                (new / self.sidecar.name).replace(self.sidecar)
            sync_folder(self.to.parent)

    def _replace_folder(self, new: Path, former: Path) -> None:
        if self.to.exists():
            _require_exported(self.to)  # a file may have appeared while rows were written
            former.mkdir()
            self.to.rename(former / self.to.name)
        new.rename(self.to)


def _require_exported(folder: Path) -> None:
    """Check that a folder contains nothing but an export.

    Raises:
        AlreadyExists: the folder has other content.
    """
    hint = "It was not changed: choose another name, or remove it yourself."
    if not any(folder.iterdir()):
        return
    try:
        manifest = read_sidecar(folder / IN_FOLDER)
    except (NotFound, MalformedData) as error:
        raise AlreadyExists(f"{folder} is not a folder that was exported: {error.message}", hint=hint) from error
    if unlisted := unlisted_files(folder, manifest):
        more = f", and {len(unlisted) - 3} more" if len(unlisted) > 3 else ""
        raise AlreadyExists(
            f"{folder} has files that are not part of an export: {', '.join(unlisted[:3])}{more}", hint=hint
        )


def _flush(folder: Path) -> None:
    """Flush a folder with all its content to disk."""
    paths = [folder, *folder.rglob("*")]
    if len(paths) > MANY:
        sync_file_system(folder)
    else:
        for path in paths:
            sync_folder(path)  # works for files, too


@contextmanager
def _workshop(folder: Path) -> Iterator[Path]:
    for left in folder.glob(f"{WORKSHOP}*"):
        _clear_if_left(left)
    workshop, lock = _new_workshop(folder)
    try:
        yield workshop
    finally:
        _clear(workshop)
        os.close(lock)


def _new_workshop(folder: Path) -> tuple[Path, int]:
    """Return a new workshop, and the descriptor of its lock."""
    while True:
        workshop = folder / f"{WORKSHOP}{secrets.token_hex(8)}"
        workshop.mkdir()
        with suppress(FileNotFoundError):  # another export took it for a leftover before it was locked
            lock = os.open(workshop, os.O_RDONLY)
            with suppress(OSError):  # on file systems without locks, no workshop is taken for a leftover
                fcntl.flock(lock, fcntl.LOCK_EX)
            if workshop.exists():
                return workshop, lock
            os.close(lock)


def _clear_if_left(workshop: Path) -> None:
    """Remove a workshop, unless it is in use, or the file system does not support locks."""
    with suppress(OSError):
        lock = os.open(workshop, os.O_RDONLY | os.O_DIRECTORY)
        try:
            if try_lock(lock):
                _clear(workshop)
        finally:
            os.close(lock)


def _clear(workshop: Path) -> None:
    """Remove a workshop; restore a folder whose replacement was not completed."""
    for former in (workshop / _FORMER).glob("*"):
        place = workshop.parent / former.name
        if not place.exists():
            former.rename(place)
    shutil.rmtree(workshop, ignore_errors=True)
