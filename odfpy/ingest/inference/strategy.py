"""The merge strategy for a source, with reasons and alternatives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from odfpy.chain.sources import (
    MergeAppend,
    MergeChangelogStream,
    MergeLedger,
    MergeSnapshot,
    MergeStrategy,
    MergeUpsertStream,
)
from odfpy.ingest.inference.columns import Column
from odfpy.ingest.inference.event_time import FoundEventTime, is_of_changes
from odfpy.ingest.inference.keys import Key, names_events

_MIN_ROWS: Final = 2
_MANY_ROWS: Final = 20


@dataclass(frozen=True, slots=True)
class Choice:
    """A merge strategy, and the reason for it or the case in which it is right."""

    strategy: MergeStrategy
    reason: str


def choose_strategy(
    keys: Sequence[Key], columns: Sequence[Column], rows: int, event_time: FoundEventTime
) -> tuple[Choice, tuple[Choice, ...]]:
    """Return the chosen strategy and the alternatives.

    A ledger if rows have a key and an event time, a snapshot if they have a key but no event time, and Append
    if nothing distinguishes rows.

    Args:
        keys: candidate keys, better ones first.
        columns: columns of the source.
        rows: number of sampled rows.
        event_time: the inferred event time.
    """
    key = _choose_key(keys, columns, rows, event_time)
    candidate = key or (keys[0].columns if keys else tuple(column.name for column in columns[:1]))
    if key is None:
        why = "nothing tells rows apart" if not keys else "no key is certain" if rows else "there are no rows"
        strategy: MergeStrategy = MergeAppend()
        reason = f"{why}, so every row is new; a file that comes again is in the dataset twice"
    elif event_time.column is not None:
        strategy = MergeLedger(key)
        reason = f"events, identified by {_and(key)}; rows with a new key are appended, known ones are dropped"
    else:
        strategy = MergeSnapshot(key)
        reason = f"no event time, but {_and(key)} names each row once; the file is the whole current state"
    return Choice(strategy, reason), tuple(_alternatives(strategy, candidate))


def _choose_key(
    keys: Sequence[Key], columns: Sequence[Column], rows: int, event_time: FoundEventTime
) -> tuple[str, ...] | None:
    """Return the first key with a suitable name. Otherwise time distinguishes events; a single row proves nothing."""
    named = next((key.columns for key in keys if key.is_named), None)
    if named is not None:
        return named if event_time.column is None or event_time.nulls else _of_events(named, event_time.column.name)
    if rows < _MIN_ROWS:
        return None
    if event_time.column is None:
        first = columns[0].name if columns else None
        return next((key.columns for key in keys if len(key.columns) > 1 or key.columns[0] == first), None)
    if event_time.nulls:
        return None  # a key must not be null
    return _choose_key_of_events(keys, rows, event_time.column.name)


def _choose_key_of_events(keys: Sequence[Key], rows: int, time: str) -> tuple[str, ...] | None:
    """Return the time alone, the time with a candidate key, or the time with another column."""
    with_time = [key.columns for key in keys if time in key.columns and len(key.columns) > 1]
    without_time = [key.columns[0] for key in keys if len(key.columns) == 1 and key.columns[0] != time]
    is_unique = any(key.columns == (time,) for key in keys)
    # Times of few rows are distinct by chance, and a ledger drops rows with known keys: rather use one column more.
    if is_unique and (rows >= _MANY_ROWS or not (without_time or with_time)):
        return (time,)
    return with_time[0] if with_time else (time, without_time[0]) if without_time else None


def _of_events(key: tuple[str, ...], time: str) -> tuple[str, ...]:
    """Return the key with the time, unless it identifies events: identifiers of things recur with each event."""
    if time in key or (all(map(names_events, key)) and not is_of_changes(time)):
        return key
    return (time, *key)


def _alternatives(chosen: MergeStrategy, key: tuple[str, ...]) -> Iterator[Choice]:
    for strategy, when in (
        (MergeAppend(), "only new events come, each once"),
        (MergeLedger(key), "events come again, and only rows with a new key count"),
        (MergeSnapshot(key), "each file is the whole current state, whose changes count"),
        (MergeUpsertStream(key), "each file has changes, and the last row of a key counts"),
        (MergeChangelogStream(key), "rows say themselves, in a column `op`, what is added, retracted and corrected"),
    ):
        if type(strategy) is not type(chosen):
            yield Choice(strategy, when)


def _and(names: Sequence[str]) -> str:
    return " and ".join(names)
