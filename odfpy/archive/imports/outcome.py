"""The outcome of an import per file, and pushes in batches."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from itertools import repeat

from odfpy.archive.archive import Archive
from odfpy.archive.pushing import NewFile, Pushed, PushOutcome
from odfpy.data.timestamp import Timestamp
from odfpy.errors import InternalError, OdfError


class ImportOutcome(Enum):
    """The outcome of an import for a file.

    Attributes:
        IMPORTED: the file is now in the archive, or would be.
        KNOWN: it already existed.
        SKIPPED: the import does not apply to it.
        REFUSED: it is invalid.
    """

    IMPORTED = "imported"
    KNOWN = "known"
    SKIPPED = "skipped"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Imported:
    """A file of an import.

    Attributes:
        name: key, URL or path of the file.
        outcome: outcome of the file.
        size: size in bytes, if known.
        url: URL in the archive, None if it is not there.
        error: why it was skipped or refused.
    """

    name: str
    outcome: ImportOutcome
    size: int | None = None
    url: str | None = None
    error: OdfError | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportLimits:
    """The settings of an import.

    Attributes:
        files: maximum number of files in a commit.
        size: size in bytes above which a commit accepts no further files.
        parallel: number of objects fetched concurrently.
        dry_run: whether to only validate, without fetching and pushing.
    """

    files: int = 10_000
    size: int = 1 << 30
    parallel: int = 16
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class PushedBatch:
    """A commit of an import.

    Attributes:
        start: when its push began, in milliseconds since the epoch.
        duration: duration in seconds.
        results: results per file.
    """

    start: int
    duration: float
    results: Sequence[Pushed]


class Batches:
    """A batch of files that are pushed in one commit."""

    def __init__(
        self,
        archive: Archive,
        limits: ImportLimits,
        on_push: Callable[[PushedBatch], None],
        *,
        remove: bool,
    ) -> None:
        """
        Args:
            archive: the target archive.
            limits: limits of a commit.
            on_push: called with each commit.
            remove: whether to remove files after the push, because they are copies.
        """
        self._archive = archive
        self._limits = limits
        self._on_push = on_push
        self._remove = remove
        self._names: list[str] = []
        self._files: list[NewFile] = []
        self._sizes: list[int] = []
        self._size = 0

    def add(self, name: str, new: NewFile, size: int) -> Iterator[Imported]:
        """Add a file. If the batch becomes full, push it and yield its files.

        Args:
            name: name of the file, for people.
            new: the file.
            size: size of the file in bytes.

        Raises:
            OdfError: the archive cannot be written.
        """
        self._names.append(name)
        self._files.append(new)
        self._sizes.append(size)
        self._size += size
        if len(self._files) >= self._limits.files or self._size >= self._limits.size:
            yield from self.push()

    def push(self) -> Iterator[Imported]:
        """Push the batch and yield its files."""
        names, files, sizes = self._names, self._files, self._sizes
        self._names, self._files, self._sizes, self._size = [], [], [], 0
        if not files:
            return
        if self._limits.dry_run:
            yield from (Imported(*imported) for imported in zip(names, repeat(ImportOutcome.IMPORTED), sizes))
            return
        start, begun = Timestamp.now().millis, time.monotonic()
        try:
            results = self._archive.push_all(files)
        finally:
            if self._remove:
                for new in files:
                    with suppress(OSError):
                        new.file.unlink()
        self._on_push(PushedBatch(start, time.monotonic() - begun, results))
        for name, result in zip(names, results, strict=True):
            yield _imported(name, result)


def _imported(name: str, result: Pushed) -> Imported:
    if result.record is None:
        error = result.error or InternalError("refused without a reason")
        return Imported(name, ImportOutcome.REFUSED, error=error)
    is_new = result.outcome is PushOutcome.PUSHED
    outcome = ImportOutcome.IMPORTED if is_new else ImportOutcome.KNOWN
    return Imported(name, outcome, result.record.size, result.url)
