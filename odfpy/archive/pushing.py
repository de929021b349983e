"""Files to archive, and the outcomes of their push."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

from odfpy.archive.errors import IdTaken, RecordRefused
from odfpy.archive.record import FileRecord, Status

if TYPE_CHECKING:
    from odfpy.data.multihash import Multihash
    from odfpy.errors import OdfError


@dataclass(frozen=True, slots=True, kw_only=True)
class NewFile:
    """A file to archive, with its metadata.

    Attributes:
        file: current path of its bytes.
        what: see `FileRecord`; also a translator pattern (`EXTRACT~FORMAT`), which is applied to `path`.
        where: see `FileRecord`; also a translator pattern.
        work_id: see `FileRecord`; also a translator pattern; or None.
        start: in milliseconds; None for the modification time of the file.
        end: in milliseconds, or None.
        path: path to record; the absolute path of `file` if None.
        id: its id, if it already has one.
        hash: its BLAKE2b, if known; it is verified.
        object: its name in the store, if known; it is verified.
        create_time: when another archive stored it, if it comes from one.
    """

    file: Path
    what: str
    where: str
    work_id: str | None = None
    start: int | None = None
    end: int | None = None
    path: str | None = None
    id: str | None = None
    hash: str | None = None
    object: Multihash | None = None
    create_time: int | None = None


class PushOutcome(Enum):
    """The outcome of a push of one file."""

    PUSHED = "pushed"
    KNOWN = "known"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pushed:
    """The result of a push of one file.

    Attributes:
        file: the file.
        outcome: pushed; known: it already existed; refused: `error` says why.
        record: record of the file in the archive, None if it was refused.
        url: address for `fetch`.
    """

    file: Path
    outcome: PushOutcome
    record: FileRecord | None = None
    url: str | None = None
    error: OdfError | None = None


def require_same(
    record: FileRecord, existing: FileRecord, name: str, release: Callable[[FileRecord], FileRecord]
) -> None:
    """Check that an existing record belongs to the same file.

    Args:
        record: record of the pushed file.
        existing: existing record with its id.
        name: name of the file.
        release: returns the version of a record that withdrew or expired the file.

    Raises:
        IdTaken: the existing record belongs to another file.
        RecordRefused: the file was withdrawn or has expired.
    """
    if existing.status is not Status.KEPT:
        released = release(existing)
        raise RecordRefused(
            name,
            [f"the archive has it as {existing.id}, {existing.status.value} by {released.who}: {released.why}"],
            hint="To archive it again, push it with another work id or path.",
        )
    if existing.hash != record.hash:
        raise IdTaken(
            f"{name}: the id {record.id} is that of {existing.path}, which has other bytes",
            hint="Omit the id: then it is derived from the file.",
        )
