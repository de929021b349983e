"""Small files beside the chain of a dataset, which other implementations ignore.

    refs/head.sig             signatures of the head
    info/signatures/<block>   signatures of a block
    info/revocations/<key>    statements by which signatures of a key become invalid
    info/refs                 list of references, for servers that cannot list folders

The chain does not refer to them, so they are not trusted: they may be absent, stale, damaged or forged.
"""

from __future__ import annotations

import os
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from odfpy.errors import InvalidValue, OdfError
from odfpy.files import MANY, TEMPORARY, make_folder, open_regular, replace_files, replaced_atomically

_PATH = re.compile(r"(refs|info)(/[A-Za-z0-9][A-Za-z0-9._-]{0,149}){1,2}")


class SideFiles(ABC):
    """Small files of one dataset, by their paths in its folder.

    `odfpy.testing.side_files` has the contract suite that every implementation passes.
    """

    writable: bool = True

    @abstractmethod
    def read(self, path: str, limit: int) -> bytes | None:
        """Return the first `limit` bytes of a file, plus one if it is longer; None if there is no file.

        Raises:
            OdfError: the file cannot be read.
        """

    @abstractmethod
    def write(self, path: str, data: bytes) -> None:
        """Create or replace a file atomically.

        Raises:
            OdfError: the file cannot be written; nothing has changed.
        """

    @abstractmethod
    def delete(self, path: str) -> None:
        """Delete a file if it exists."""

    @abstractmethod
    def names(self, folder: str) -> Iterator[str]:
        """Yield the names of the files in a folder, sorted; none if there is no such folder.

        Raises:
            OdfError: the store cannot list files.
        """

    def read_all(self, paths: Sequence[str], limit: int) -> dict[str, bytes]:
        """Return the contents of those files that exist, by path, each as by `read`.

        Raises:
            OdfError: a file cannot be read.
        """
        contents = ((path, self.read(path, limit)) for path in paths)
        return {path: data for path, data in contents if data is not None}

    def write_all(self, files: Mapping[str, bytes]) -> None:
        """Write files, each as by `write`; many are faster together.

        Raises:
            OdfError: a file cannot be written; the others may or may not have been written.
        """
        for path, data in files.items():
            self.write(path, data)

    def describe(self, path: str) -> str:
        """Return the location of an existing or future file, for messages."""
        return path


def check_path(path: str) -> str:
    """Validate a path of a side file, and return it unchanged."""
    if not _PATH.fullmatch(path):
        raise InvalidValue(f"Not a path beside a chain: {path!r}")
    return path


class LocalSideFiles(SideFiles):
    """Files in the folder of a dataset."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def read(self, path: str, limit: int) -> bytes | None:
        file = self.folder / check_path(path)
        try:
            with open_regular(file) as stream:
                return stream.read(limit + 1)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise OdfError(f"Cannot read {file}: {error.strerror}") from error

    def write(self, path: str, data: bytes) -> None:
        file = self.folder / check_path(path)
        try:
            make_folder(file.parent)
            # A power loss may remove the file, since the folder is not flushed, but its content is complete if it
            # exists.
            with replaced_atomically(file) as temporary, temporary.open("xb") as stream:
                stream.write(data)
                stream.flush()
                os.fsync(stream.fileno())
        except OSError as error:
            raise OdfError(f"Cannot write {file}: {error.strerror}") from error

    def write_all(self, files: Mapping[str, bytes]) -> None:
        if len(files) < MANY:
            super().write_all(files)
            return
        try:
            replace_files((self.folder / check_path(path), data) for path, data in files.items())
        except OSError as error:
            raise OdfError(f"Cannot write to {self.folder}: {error.strerror}") from error

    def delete(self, path: str) -> None:
        file = self.folder / check_path(path)
        try:
            file.unlink(missing_ok=True)
        except OSError as error:
            raise OdfError(f"Cannot delete {file}: {error.strerror}") from error

    def names(self, folder: str) -> Iterator[str]:
        place = self.folder / check_path(folder)
        try:
            with os.scandir(place) as entries:
                entry_names = sorted(
                    entry.name for entry in entries if not entry.name.startswith(".") and entry.is_file()
                )
        except FileNotFoundError:
            return iter(())
        except OSError as error:
            raise OdfError(f"Cannot read {place}: {error.strerror}") from error
        return iter(entry_names)

    def describe(self, path: str) -> str:
        return str(self.folder / check_path(path))

    def clean(self) -> None:
        """Remove temporary files of interrupted writers. The caller must hold the dataset's lock."""
        for part in ("signatures", "revocations"):
            for file in self.folder.glob(f"info/{part}/{TEMPORARY}*"):
                file.unlink(missing_ok=True)


class MemorySideFiles(SideFiles):
    """Files in a dictionary; the model that others are tested against."""

    def __init__(self) -> None:
        self._files: dict[str, bytes] = {}

    def read(self, path: str, limit: int) -> bytes | None:
        data = self._files.get(check_path(path))
        return None if data is None else data[: limit + 1]

    def write(self, path: str, data: bytes) -> None:
        self._files[check_path(path)] = data

    def delete(self, path: str) -> None:
        self._files.pop(check_path(path), None)

    def names(self, folder: str) -> Iterator[str]:
        start = f"{check_path(folder)}/"
        return iter(sorted(path.removeprefix(start) for path in self._files if path.startswith(start)))
