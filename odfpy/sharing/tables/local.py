"""Local folders of tables: no file outside of them is read, whatever a table or a link refers to."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from odfpy.sharing.errors import CannotShare


@dataclass(frozen=True, slots=True)
class LocalFile:
    """A regular file inside a folder.

    Attributes:
        location: path with symbolic links resolved, as text: a folder may have many files, and each `Path` takes long.
        size: size in bytes.
        mtime_ns: modification time.
    """

    location: str
    size: int
    mtime_ns: int

    @property
    def path(self) -> Path:
        """Path of the file."""
        return Path(self.location)

    @property
    def identity(self) -> str:
        """Text that changes when the file is rewritten."""
        return f"{self.location}:{self.size}:{self.mtime_ns}"


class LocalFolder:
    """The folder of a table.

    Attributes:
        path: path with symbolic links resolved.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """
        Args:
            path: path of the folder; it may be a symbolic link itself.

        Raises:
            CannotShare: the folder does not exist, or cannot be read.
        """
        try:
            self.path = Path(path).resolve(strict=True)
            is_folder = self.path.is_dir()
        except (OSError, RuntimeError, ValueError) as error:
            raise CannotShare(
                f"Cannot open the folder {os.fspath(path)}: {reason(error)}",
                hint="`odf share show` tells which folders are shared.",
            ) from error
        if not is_folder:
            raise CannotShare(f"{self.path} is not a folder", hint="Name the folder that the table is in.")

    def __str__(self) -> str:
        return str(self.path)

    def file(self, name: str | os.PathLike[str]) -> LocalFile:
        """Return a file of the folder.

        Args:
            name: relative path, or an absolute path inside the folder.

        Raises:
            CannotShare: the file is outside, missing, or not a regular file.
        """
        try:
            path = (self.path / name).resolve(strict=True)
            inside = path.is_relative_to(self.path)
            stamp = path.stat() if inside else None
        except (OSError, RuntimeError, ValueError) as error:  # cycles of links, names with NUL
            raise CannotShare(
                f"The table in {self.path} has a file {os.fspath(name)!r} that cannot be read: {reason(error)}",
                hint="Repair the table at its origin.",
            ) from error
        if stamp is None:
            raise CannotShare(
                f"The table in {self.path} has a file outside of its folder: {os.fspath(name)!r}",
                hint="Only files inside of the folder are shared; copy the table with all its files.",
            )
        if not stat.S_ISREG(stamp.st_mode):
            raise CannotShare(
                f"The table in {self.path} may only contain files: {os.fspath(name)!r} is a folder, pipe or device",
                hint="Remove it from the folder.",
            )
        return LocalFile(str(path), stamp.st_size, stamp.st_mtime_ns)

    def walk(self, wanted: Callable[[str], bool], hidden: tuple[str, ...]) -> tuple[list[tuple[str, LocalFile]], int]:
        """Return the files below the folder, each with its path, which may be a link.

        Args:
            wanted: returns whether to include a file, by its name.
            hidden: prefixes of names of files and folders that are skipped.

        Returns:
            The files, and the latest modification time of any of them or their folders, in nanoseconds.

        Raises:
            CannotShare: a file or folder cannot be read, or a folder is a link.
        """
        found: list[tuple[str, LocalFile]] = []
        newest, folders = 0, [str(self.path)]
        try:
            while folders:
                at = folders.pop()
                newest = max(newest, Path(at).stat().st_mtime_ns)
                with os.scandir(at) as entries:
                    for entry in entries:
                        if entry.name.startswith(hidden):
                            continue
                        if entry.is_dir():
                            self._check_folder(entry)
                            folders.append(entry.path)
                        elif wanted(entry.name):
                            found.append((entry.path, self._listed(entry)))
        except OSError as error:
            raise CannotShare(
                f"The folder {self.path} cannot be read: {reason(error)}",
                hint="Let the user of the server read all of it, and try again.",
            ) from error
        return found, newest

    def _listed(self, entry: os.DirEntry[str]) -> LocalFile:
        """Return a file in a folder that is not a link; resolving each path would take longer than everything else."""
        stamp = entry.stat(follow_symlinks=False)
        if stat.S_ISREG(stamp.st_mode):
            return LocalFile(entry.path, stamp.st_size, stamp.st_mtime_ns)
        return self.file(entry.path)

    def _check_folder(self, entry: os.DirEntry[str]) -> None:
        if entry.is_symlink():
            raise CannotShare(
                f"The folder {self.path} has a link to a folder: {entry.path}",
                hint="Replace it by the folder itself.",
            )


def reason(error: BaseException) -> str:
    """Return the message of an error, on one short line."""
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return " ".join(str(text).split())[:300]


def raised(error: OSError) -> None:
    """Raise an error that `os.walk` would ignore."""
    raise error
