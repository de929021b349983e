"""Errors of archives."""

from __future__ import annotations

from collections.abc import Sequence

from odfpy.errors import IntegrityError, NotFound, OdfError, UsageError


class RecordRefused(UsageError, code="E840"):
    """A record breaks rules of the archive.

    Attributes:
        reasons: a sentence for each broken rule.
    """

    reasons: tuple[str, ...]

    def __init__(self, name: str, reasons: Sequence[str], *, hint: str | None = None) -> None:
        """
        Args:
            name: the rejected file or record.
            reasons: a sentence for each broken rule, without a full stop.
            hint: what to try.
        """
        super().__init__(f"{name}: {'; '.join(reasons)}", hint=hint or "docs/archive.md lists the fields of a record.")
        self.reasons = tuple(reasons)


class NoSuchFile(NotFound, code="E841"):
    """The archive has no file with that id, or with that what and where."""


class FileRemoved(NoSuchFile, code="E842"):
    """The record exists, but its bytes were removed."""


class FileElsewhere(NoSuchFile, code="E843"):
    """The record exists, but this copy of the archive does not have its bytes."""


class FileChanged(OdfError, code="E844"):
    """A file changed while it was read; it was not archived."""


class WrongContent(IntegrityError, code="E845"):
    """The bytes have another hash or size than stated."""


class IdTaken(UsageError, code="E846"):
    """The id already belongs to another file."""


class NotAnArchive(UsageError, code="E847"):
    """The dataset is not an archive."""


class NotAFile(UsageError, code="E848"):
    """A path is not a file that can be archived: a folder, a pipe, a device, a broken link."""


class InvalidCursor(UsageError, code="E850"):
    """A cursor was not issued by this archive for this query."""


class CannotCopy(OdfError, code="E851"):
    """The copy of a file cannot be written: the disk is full or has errors."""
