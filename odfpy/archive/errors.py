"""Errors of archives."""

from __future__ import annotations

from collections.abc import Sequence

from odfpy.errors import IntegrityError, NotFound, OdfError, UsageError


class RecordRefused(UsageError, code="E840"):
    """A record breaks rules of the archive.

    Attributes:
        reasons: a sentence for each rule that it breaks.
    """

    reasons: tuple[str, ...]

    def __init__(self, name: str, reasons: Sequence[str], *, hint: str | None = None) -> None:
        """
        Args:
            name: the file or record that is refused.
            reasons: a sentence for each broken rule, without a full stop.
            hint: what to try.
        """
        super().__init__(f"{name}: {'; '.join(reasons)}", hint=hint or "docs/archive.md lists the fields of a record.")
        self.reasons = tuple(reasons)


class NoSuchFile(NotFound, code="E841"):
    """The archive has no file of that id, or none of that what and where."""


class FileRemoved(NoSuchFile, code="E842"):
    """The record is there, but its bytes were removed, as the archive records."""


class FileElsewhere(NoSuchFile, code="E843"):
    """The record is there, but this copy of the archive does not have its bytes."""


class FileChanged(OdfError, code="E844"):
    """A file has changed while it was read; nothing of it was archived."""


class WrongContent(IntegrityError, code="E845"):
    """Bytes have another hash or size than what was said of them."""


class IdTaken(UsageError, code="E846"):
    """Another file has that id already."""


class NotAnArchive(UsageError, code="E847"):
    """The dataset is not an archive."""


class NotAFile(UsageError, code="E848"):
    """A path leads to something that an archive does not take: a folder, a pipe, a device, a link to nowhere."""


class InvalidCursor(UsageError, code="E850"):
    """A cursor is not one that this archive has given for this question."""


class CannotCopy(OdfError, code="E851"):
    """The copy of a file cannot be written: no space is left, or the disk has errors."""
