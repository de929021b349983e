"""Queries of an archive, and pages of results."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from odfpy.archive.record import FileRecord
from odfpy.archive.times import Time, parse_time
from odfpy.errors import UsageError

PAGE: Final = 100
"""Maximum records per page over HTTP."""

LOOKBACK_DAYS: Final = 14
"""Default number of days before today in which the latest file is searched."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A query for files: either those of a time range, or those of a job.

    Attributes:
        what: kinds of files; a file matches if it is one of them.
        where: origins of files; empty for any.
        start: start of the range, inclusive; milliseconds since the epoch.
        end: end of the range, inclusive: a file matches if it has started by then, and its end (its start, if it has no
            end) is not before `start`.
        work_id: id of the job.
    """

    what: tuple[str, ...]
    where: tuple[str, ...] = ()
    start: int | None = None
    end: int | None = None
    work_id: str | None = None

    def __post_init__(self) -> None:
        if not self.what:
            raise UsageError("Missing: the type of files (what)", hint="Name what, such as `syslog`.")
        ranged = self.start is not None or self.end is not None
        if self.work_id is not None and ranged:
            raise UsageError("A job and a time range cannot be combined", hint="Give either work_id, or start and end.")
        if self.work_id is None and not ranged:
            raise UsageError("Neither a job nor a time range is given", hint="Give work_id, or start and end.")
        if self.start is not None and self.end is not None and self.end < self.start:
            raise UsageError("The range ends before it starts", hint="Swap start and end.")

    @classmethod
    def of(
        cls,
        what: str | Iterable[str],
        *,
        where: str | Iterable[str] = (),
        start: Time | None = None,
        end: Time | None = None,
        work_id: str | None = None,
    ) -> Question:
        """Build a query from user input.

        Args:
            what: names, also comma-separated.
            where: names, also comma-separated.
            start: see `parse_time`.
            end: see `parse_time`.
            work_id: id of the job.

        Raises:
            UsageError: the query is invalid.
        """
        return cls(
            what=words(what),
            where=words(where),
            start=None if start is None else parse_time(start),
            end=None if end is None else parse_time(end),
            work_id=work_id,
        )


def words(texts: str | Iterable[str]) -> tuple[str, ...]:
    """Return the distinct names in one or several comma-separated texts, in order."""
    several = [texts] if isinstance(texts, str) else list(texts)
    return tuple(dict.fromkeys(word.strip() for text in several for word in text.split(",") if word.strip()))


@dataclass(frozen=True, slots=True)
class Page:
    """Some of the matching files, in a fixed order.

    Attributes:
        records: records of the files.
        next: cursor of the next page, None if this is the last; opaque, and valid while others push.
    """

    records: tuple[FileRecord, ...]
    next: str | None = None
