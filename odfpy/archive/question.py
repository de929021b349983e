"""Queries of an archive, and pages of results."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from odfpy.archive.record import FileRecord
from odfpy.archive.times import Time, parse_time
from odfpy.errors import UsageError

PAGE: Final = 100
"""Records of a page at most, over HTTP."""

LOOKBACK_DAYS: Final = 14
"""Days before today in which the latest file is looked for, if nobody says otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """The files that are meant: either those of a time range, or those of a job.

    Attributes:
        what: names of what they are; a file fits if it is one of them.
        where: names of where they come from; empty for anywhere.
        start: of the range, inclusive; milliseconds since the epoch.
        end: of the range, inclusive: a file fits if it has begun by then, and its end (its start, if it has none) is
            not before `start`.
        work_id: the job.
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
        """Make a question of what people write.

        Args:
            what: names, also several with commas between.
            where: the same.
            start: see `parse_time`.
            end: see `parse_time`.
            work_id: the job.

        Raises:
            UsageError: it makes no sense.
        """
        return cls(
            what=words(what),
            where=words(where),
            start=None if start is None else parse_time(start),
            end=None if end is None else parse_time(end),
            work_id=work_id,
        )


def words(texts: str | Iterable[str]) -> tuple[str, ...]:
    """Names in their order, each once, from one text or several; each may have several with commas between."""
    several = [texts] if isinstance(texts, str) else list(texts)
    return tuple(dict.fromkeys(word.strip() for text in several for word in text.split(",") if word.strip()))


@dataclass(frozen=True, slots=True)
class Page:
    """Some of the files that fit, in a fixed order.

    Attributes:
        records: of the files.
        next: says where the next page begins, None if this is the last; opaque, and good while others push.
    """

    records: tuple[FileRecord, ...]
    next: str | None = None
