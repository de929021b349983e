"""Named references to blocks (ODF specification, "Block References"), which only move by compare-and-swap."""

from __future__ import annotations

import os
import re
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path

from odfpy.data.multihash import Multihash
from odfpy.errors import ConcurrentUpdate, IntegrityError, InvalidValue, OdfError
from odfpy.files import TEMPORARY, locked_folder, make_way_for, open_regular, replace_file, sync_folder

HEAD = "head"
# Names with `.sig` are reserved for the files beside references that have their signatures.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}(?<!\.sig)")
_MAX_SIZE = 200


class RefStore(ABC):
    """References of one dataset, by name.

    `odfpy.testing.ref_store` has the contract suite that every implementation passes.
    """

    @abstractmethod
    def get(self, name: str) -> Multihash | None:
        """Return the hash that the reference points to, or None if there is no such reference.

        Raises:
            IntegrityError: the reference is damaged.
        """

    @abstractmethod
    def compare_and_swap(self, name: str, expected: Multihash | None, new: Multihash) -> None:
        """Move a reference if it still has the expected value; None stands for a reference that does not exist yet.

        Args:
            name: name of the reference.
            expected: the block that it must still point to, None for no reference.
            new: the block that it is moved to.

        Raises:
            ConcurrentUpdate: the reference has another value.
        """

    @abstractmethod
    def delete(self, name: str, expected: Multihash) -> None:
        """Delete a reference if it still has the expected value. The blocks stay.

        Raises:
            ConcurrentUpdate: the reference has another value, or does not exist.
        """

    @abstractmethod
    def names(self) -> Iterator[str]:
        """Yield the names of all references, sorted, without other files beside them.

        Raises:
            OdfError: the store cannot list references.
        """

    def describe(self, name: str) -> str:
        """Return the location of an existing or future reference, for messages."""
        return f"the reference {name!r}"


def is_name(name: str) -> bool:
    """Return whether a text is a valid name of a reference."""
    return _NAME.fullmatch(name) is not None


def check_name(name: str) -> str:
    """Validate a name of a reference, which must be a valid file name everywhere, and return it unchanged."""
    if not is_name(name):
        raise InvalidValue(f"Not a name of a reference: {name!r}")
    return name


def parse_reference(data: bytes, where: str) -> Multihash:
    """Return the hash in a reference's file.

    Raises:
        IntegrityError: the file has other content.
    """
    try:
        return Multihash.parse(data[:_MAX_SIZE].decode("ascii").strip())
    except (InvalidValue, UnicodeDecodeError) as error:
        raise IntegrityError(
            f"Damaged reference: {where} does not hold the hash of a block",
            hint="In a workspace, `odf verify --repair` fetches it from a repository that has the dataset."
            " Or write the hash of its block into the file. A tag or branch can also be removed and created"
            " again.",
        ) from error


def lost_race(where: str, expected: Multihash | None, actual: Multihash | None) -> ConcurrentUpdate:
    """Return the error of a failed compare-and-swap.

    Args:
        where: the reference, as returned by `RefStore.describe`.
        expected: the block that it should have pointed to.
        actual: the block that it points to.
    """
    return ConcurrentUpdate(
        f"Another process has moved {where}: expected {expected}, found {actual}",
        hint="Nothing was committed; run the command again.",
    )


class LocalRefStore(RefStore):
    """References as files of one folder, which is locked while one is moved."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def get(self, name: str) -> Multihash | None:
        path = self.folder / check_name(name)
        try:
            with open_regular(path) as file:
                return parse_reference(file.read(_MAX_SIZE), str(path))
        except FileNotFoundError:
            return None
        except OSError as error:
            raise OdfError(f"Cannot read {path}: {error.strerror}") from error

    def compare_and_swap(self, name: str, expected: Multihash | None, new: Multihash) -> None:
        path = self.folder / check_name(name)
        try:
            with locked_folder(self.folder):
                # Read again under the lock: the caller may have read the reference minutes ago.
                actual = self.get(name)
                if actual != expected:
                    raise lost_race(self.describe(name), expected, actual)
                replace_file(path, str(new).encode("ascii"))
        except OSError as error:
            raise OdfError(f"Cannot write {path}: {error.strerror}") from error

    def delete(self, name: str, expected: Multihash) -> None:
        path = self.folder / check_name(name)
        try:
            if not self.folder.is_dir():
                raise lost_race(self.describe(name), expected, None)
            with locked_folder(self.folder):
                actual = self.get(name)
                if actual != expected:
                    raise lost_race(self.describe(name), expected, actual)
                path.unlink()
                sync_folder(self.folder)
        except OSError as error:
            raise OdfError(f"Cannot delete {path}: {error.strerror}") from error

    def names(self) -> Iterator[str]:
        try:
            with os.scandir(self.folder) as entries:
                entry_names = sorted(entry.name for entry in entries if is_name(entry.name) and _is_one(entry))
        except FileNotFoundError:
            return iter(())
        except OSError as error:
            raise OdfError(f"Cannot read {self.folder}: {error.strerror}") from error
        return iter(entry_names)

    def describe(self, name: str) -> str:
        return str(self.folder / check_name(name))

    def restore(self, name: str, block: Multihash) -> None:
        """Write a reference in place of a damaged or dangling one. The caller must hold the dataset's lock."""
        path = self.folder / check_name(name)
        try:
            with locked_folder(self.folder):
                # Nothing is compared: a damaged reference has no value. The dataset's lock excludes other writers.
                make_way_for(path)
                replace_file(path, str(block).encode("ascii"))
        except OSError as error:
            raise OdfError(f"Cannot write {path}: {error.strerror}") from error

    def clean(self) -> None:
        """Remove temporary files of interrupted writers. The caller must hold the dataset's lock."""
        for path in self.folder.glob(f"{TEMPORARY}*"):
            path.unlink(missing_ok=True)


def _is_one(entry: os.DirEntry[str]) -> bool:
    """Return whether an entry is a reference, or a folder in its place, which counts as a damaged reference."""
    return entry.is_file() or entry.name == HEAD or entry.name.startswith(("branch.", "tag."))


class MemoryRefStore(RefStore):
    """References in a dictionary; the model that other stores are tested against."""

    def __init__(self) -> None:
        self._references: dict[str, Multihash] = {}
        self._lock = threading.Lock()

    def get(self, name: str) -> Multihash | None:
        return self._references.get(check_name(name))

    def compare_and_swap(self, name: str, expected: Multihash | None, new: Multihash) -> None:
        with self._lock:
            actual = self.get(name)
            if actual != expected:
                raise lost_race(self.describe(name), expected, actual)
            self._references[name] = new

    def delete(self, name: str, expected: Multihash) -> None:
        with self._lock:
            actual = self.get(name)
            if actual != expected:
                raise lost_race(self.describe(name), expected, actual)
            del self._references[name]

    def names(self) -> Iterator[str]:
        return iter(sorted(self._references))
