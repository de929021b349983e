"""Files to be archived, and the outcomes of their push."""

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
    """A file that is to be archived, and what is said of it.

    Attributes:
        file: where its bytes are now.
        what: see `FileRecord`; also a translator pattern (`EXTRACT~FORMAT`), which is applied to `path`.
        where: the same.
        work_id: the same, or None.
        start: in milliseconds; None for the file's time of modification.
        end: in milliseconds, or None.
        path: what is recorded as its path; the absolute path of `file` if None.
        id: its id, if it has one already.
        hash: its BLAKE2b, if it is known: it is checked.
        object: its name in the store, if it is known: it is checked.
        create_time: when another archive took it in, if it comes from one.
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
        outcome: pushed; known: it already existed; refused: `error` has the reason.
        record: of the file in the archive, None if it was refused.
        url: what `fetch` takes.
    """

    file: Path
    outcome: PushOutcome
    record: FileRecord | None = None
    url: str | None = None
    error: OdfError | None = None


def require_same(record: FileRecord, there: FileRecord, name: str, release: Callable[[FileRecord], FileRecord]) -> None:
    """Check that a record that already exists is that of the same file.

    Args:
        record: of the file that is pushed.
        there: the record of its id.
        name: name of the file.
        release: gives the version of a record that says who has taken the file back.

    Raises:
        IdTaken: it is that of another one.
        RecordRefused: it was taken back, or has expired.
    """
    if there.status is not Status.KEPT:
        released = release(there)
        raise RecordRefused(
            name,
            [f"the archive has it as {there.id}, {there.status.value} by {released.who}: {released.why}"],
            hint="To archive it again, push it with another work id or path.",
        )
    if there.hash != record.hash:
        raise IdTaken(
            f"{name}: the id {record.id} is that of {there.path}, which has other bytes",
            hint="Omit the id: then it is derived from the file.",
        )
