"""The merge strategy for a source, with the reason, and the others that could be meant."""

from __future__ import annotations

from collections.abc import Sequence
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
from odfpy.ingest.inference.keys import Key

_FEWEST_ROWS: Final = 2


@dataclass(frozen=True, slots=True)
class Choice:
    """A merge strategy and when it is the right one."""

    strategy: MergeStrategy
    reason: str


def choose_strategy(
    keys: Sequence[Key], columns: Sequence[Column], rows: int, event_time: str | None
) -> tuple[Choice, tuple[Choice, ...]]:
    """The strategy to take, and others.

    A ledger where rows have a key and an event time, a snapshot where they have a key and no event time, and Append
    where nothing tells rows apart.

    Args:
        keys: candidates, the better ones first.
        columns: of the source.
        rows: how many rows were seen.
        event_time: column of the event time, None if there is none.
    """
    key = _chosen(keys, columns, rows, event_time)
    if key is None:
        why = "no column tells rows apart" if rows else "there is no row that could tell what is a key"
        reason = f"{why}: every row is new, so a file that comes again is in the dataset twice"
        return Choice(MergeAppend(), reason), _others(MergeAppend(), keys[0].columns if keys else None)
    named = _and(key)
    if event_time is not None:
        strategy: MergeStrategy = MergeLedger(key)
        reason = f"events, told apart by {named}: rows with a new key are appended, known ones are dropped"
    else:
        strategy = MergeSnapshot(key)
        reason = f"no event time, but {named} names each row once: the file is the whole current state"
    return Choice(strategy, reason), _others(strategy, key)


def _chosen(
    keys: Sequence[Key], columns: Sequence[Column], rows: int, event_time: str | None
) -> tuple[str, ...] | None:
    """The first key by name. Otherwise rows of events are told apart by their time, and one row tells nothing."""
    named = next((key.columns for key in keys if key.is_named), None)
    if named is not None or rows < _FEWEST_ROWS:
        return named
    if event_time is not None:
        return next(
            (key.columns for key in sorted(keys, key=lambda key: len(key.columns)) if event_time in key.columns), None
        )
    first = columns[0].name if columns else None
    return next((key.columns for key in keys if len(key.columns) > 1 or key.columns[0] == first), None)


def _others(chosen: MergeStrategy, key: tuple[str, ...] | None) -> tuple[Choice, ...]:
    key = key or ("id",)
    found = [
        Choice(MergeAppend(), "only new events come, each once"),
        Choice(MergeLedger(key), "events come again and again; rows with a new key are appended"),
        Choice(MergeSnapshot(key), "each file is the whole current state: differences are added, corrected, retracted"),
        Choice(MergeUpsertStream(key), "each file has changes; the last row of a key counts"),
        Choice(MergeChangelogStream(key), "rows bring a column `op` that says what is added, retracted, corrected"),
    ]
    return tuple(choice for choice in found if type(choice.strategy) is not type(chosen))


def _and(names: Sequence[str]) -> str:
    return " and ".join(names)
