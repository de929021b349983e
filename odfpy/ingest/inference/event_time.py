"""The event time of a source: the column with the time of the event, chosen by type and name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from odfpy.data.schemas import schema as odf
from odfpy.data.vocabulary import DEFAULT_VOCABULARY
from odfpy.ingest.inference.columns import Column
from odfpy.ingest.inference.types import words_of

_BEST: Final = ("event_time", "eventtime", "event_at", "event_date", "occurred_at", "happened_at")
_PLAIN: Final = ("timestamp", "datetime", "date_time", "time", "date", "day", "ts", "when")
_TELLING: Final = frozenset(
    {"date", "datetime", "day", "time", "timestamp", "ts", "at", "on", "when", "created", "occurred", "published"}
)
_OF_CHANGES: Final = frozenset({"updated", "update", "modified", "changed", "edited", "refreshed", "seen", "last"})
_OF_OTHER_THINGS: Final = frozenset(
    {"birth", "birthday", "birthdate", "born", "dob", "death", "died", "due", "deadline", "end", "ends", "ended",
     "expires", "expired", "expiry", "expiration", "until", "valid", "scheduled", "planned", "closed"}
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class FoundEventTime:
    """The inferred event time of a source.

    Attributes:
        column: the chosen column; None if there is none.
        others: names of other columns of dates and timestamps, better candidates first.
        nulls: number of sampled rows where the chosen column is null.
    """

    column: Column | None = None
    others: tuple[str, ...] = ()
    nulls: int = 0


def find_event_time(columns: Sequence[Column], rows: pa.Table) -> FoundEventTime:
    """Choose the event time among the columns of dates and timestamps.

    Times of other things (birthdays, deadlines) and columns of mostly nulls are never chosen, only listed.

    Args:
        columns: columns of the source.
        rows: the sampled rows, in their types.
    """
    times = [column for column in columns if isinstance(column.plain, odf.Date | odf.Timestamp)]
    ranked = sorted(times, key=lambda column: (_rank(column.name), rows.column(column.name).null_count > 0))
    fit = [column for column in ranked if _may_be_chosen(column, rows.column(column.name))]
    names = [column.name for column in columns]
    reserved = DEFAULT_VOCABULARY.event_time_column
    if reserved in names and any(time.name == reserved for time in times):
        fit = [time for time in times if time.name == reserved]  # its name makes it the event time anyway
    if not fit:
        return FoundEventTime(None, tuple(column.name for column in ranked))
    best = fit[0]
    others = tuple(column.name for column in ranked if column is not best)
    return FoundEventTime(best, others, rows.column(best.name).null_count)


def is_of_changes(name: str) -> bool:
    """Return whether a name suggests the time of a row's last change, which differs between versions of the row."""
    return bool(set(words_of(name)) & _OF_CHANGES)


def _rank(name: str) -> int:
    plain = name.strip().lower().replace(" ", "_").replace("-", "_")
    words = set(words_of(name))
    if plain in _BEST:
        return _BEST.index(plain)
    if words & _OF_OTHER_THINGS:
        return 400
    if plain in _PLAIN:
        return 100 + _PLAIN.index(plain)
    if is_of_changes(name):
        return 300
    return 200 if words & _TELLING else 250


def _may_be_chosen(column: Column, values: pa.ChunkedArray) -> bool:
    return not set(words_of(column.name)) & _OF_OTHER_THINGS and 2 * values.null_count <= len(values)
