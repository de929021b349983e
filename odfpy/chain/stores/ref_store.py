"""Named pointers into a chain (ODF specification, "Block References"). They move by compare-and-swap only."""

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
# Names in `.sig` are those of files that lie beside references and say who has moved them.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}(?<!\.sig)")
_MAX_SIZE = 200


class RefStore(ABC):
    """References of one dataset, by name.

    `odfpy.testing.ref_store` has the contract suite that every implementation passes.
    """

    @abstractmethod
    def get(self, name: str) -> Multihash | None:
        """Return the hash that the reference points to, or None when there is no such reference.

        Raises:
            IntegrityError: the reference is damaged.
        """

    @abstractmethod
    def compare_and_swap(self, name: str, expected: Multihash | None, new: Multihash) -> None:
        """Move a reference, if it still is where the caller saw it; None stands for a reference to be made.

        Args:
            name: name of the reference.
            expected: the block that it must still be at, None for no reference.
            new: the block that it moves to.

        Raises:
            ConcurrentUpdate: the reference has moved.
        """

    @abstractmethod
    def delete(self, name: str, expected: Multihash) -> None:
        """Remove a reference, if it still is where the caller saw it. The blocks it points to stay.

        Raises:
            ConcurrentUpdate: the reference has moved, or is gone.
        """

    @abstractmethod
    def names(self) -> Iterator[str]:
        """Return the names of all references, in order, without other files beside them.

        Raises:
            OdfError: this place cannot be listed.
        """

    def describe(self, name: str) -> str:
        """Return where the reference is or would be, for messages to people."""
        return f"the reference {name!r}"


def is_name(name: str) -> bool:
    """Return whether a reference can go by that name."""
    return _NAME.fullmatch(name) is not None


def check_name(name: str) -> str:
    """Return the name itself, if it is one that can be a file name everywhere."""
    if not is_name(name):
        raise InvalidValue(f"Not a name of a reference: {name!r}")
    return name


def parse_reference(data: bytes, where: str) -> Multihash:
    """Return the hash in a reference's file.

    Raises:
        IntegrityError: there is something else in it.
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
    """Return the error of a lost race; `where` is as `RefStore.describe` says.

    Args:
        where: the reference, as `RefStore.describe` says.
        expected: the block that it should have been at.
        actual: the block that it is at.
    """
    return ConcurrentUpdate(
        f"Another process has moved {where}: expected {expected}, found {actual}",
        hint="Nothing was committed; run the command again.",
    )


class LocalRefStore(RefStore):
    """References as files of one folder; whoever moves one holds a lock on the folder."""

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
                # Read again under the lock: the caller has seen the reference before it worked for minutes.
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
        """Write a reference in the place of what is damaged, or leads nowhere; only for the holder of the lock."""
        path = self.folder / check_name(name)
        try:
            with locked_folder(self.folder):
                # Nothing is compared: what is damaged has no value. The dataset's lock keeps other writers away.
                make_way_for(path)
                replace_file(path, str(block).encode("ascii"))
        except OSError as error:
            raise OdfError(f"Cannot write {path}: {error.strerror}") from error

    def clean(self) -> None:
        """Remove what interrupted writers left; only for the holder of the dataset's lock."""
        for path in self.folder.glob(f"{TEMPORARY}*"):
            path.unlink(missing_ok=True)


def _is_one(entry: os.DirEntry[str]) -> bool:
    """Return whether that is a reference, or a folder that has come into the place of one: a damaged one, then."""
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
