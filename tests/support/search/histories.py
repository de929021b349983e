"""Random histories of the inputs, from a seed: rows, corrections, retractions and watermarks, pull by pull.

The same seed gives the same history. It ends with pulls behind final watermarks: then everything is closed, and plain
Spark can compute the net output of any query. Rows in these pulls are late.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa
from support.queries.cases import Pull, Row

END = "2100-01-01T00:00"
"""A watermark after which nothing arrives."""

_STARTS = (
    datetime(2024, 1, 29, 12, tzinfo=timezone.utc),
    datetime(2024, 2, 28, 18, tzinfo=timezone.utc),
    datetime(2023, 12, 31, 20, tzinfo=timezone.utc),
)
_KINDS_OF_ROWS = ("append",) * 13 + ("retract",) * 3 + ("correct",) * 4 + ("early",)
WORLDS = 24
"""Histories side by side, where there are several."""


def history(
    number: int, inputs: Mapping[str, Sequence[pa.Field]], keys: Mapping[str, tuple[str, ...]], *, worlds: bool
) -> list[Pull]:
    """Return the pulls of a history.

    Args:
        number: names it.
        inputs: columns by input; `w` separates parallel histories.
        keys: primary keys of inputs, where the state has one.
        worlds: whether there are several parallel histories.
    """
    random = Random(number)
    start = random.choice(_STARTS)
    step = timedelta(hours=random.choice((1, 1, 6)))
    count = random.choice((2, 3, 3, 4))
    closed_from = count - random.choice((1, 1, 2))
    inside = [
        _World(random, inputs, keys, world if worlds else None, start, step) for world in range(WORLDS if worlds else 1)
    ]
    marks = dict.fromkeys(inputs, 0)
    known: dict[str, str] = {}
    pulls = []
    for at in range(count):
        rows: dict[str, list[Row]] = {alias: [] for alias in inputs}
        for alias in inputs:
            for world in inside:
                rows[alias] += world.arrive(alias, is_last=at == count - 1)
        for alias in inputs:
            marks[alias] += random.choice((0, 1, 4, 9))
            mark = (start + (marks[alias] - 1) * step).strftime("%Y-%m-%dT%H:%M")
            known[alias] = END if at >= closed_from else mark
        pulls.append(Pull(rows, dict(known)))
    return pulls


class _World:
    """The events of one history."""

    def __init__(
        self,
        random: Random,
        inputs: Mapping[str, Sequence[pa.Field]],
        keys: Mapping[str, tuple[str, ...]],
        world: int | None,
        start: datetime,
        step: timedelta,
    ) -> None:
        self._random = random
        self._inputs = inputs
        self._keys = {alias: [_position(inputs[alias], name) for name in names] for alias, names in keys.items()}
        self._world = world
        self._start, self._step = start, step
        self._there: dict[str, list[Row]] = {alias: [] for alias in inputs}
        self._owed: dict[str, list[Row]] = {alias: [] for alias in inputs}

    def arrive(self, alias: str, *, is_last: bool) -> list[Row]:
        """Return new rows of an input; at the end, also all rows that were retracted before they arrived."""
        random, there, found = self._random, self._there[alias], []
        if is_last or random.random() < 0.5:
            found += [("+A", *row) for row in self._owed[alias]]
            self._owed[alias].clear()
        for _ in range(random.choice((0, 1, 2, 2, 3, 4) if self._world is None else (0, 1, 1, 2))):
            what = random.choice(_KINDS_OF_ROWS)
            row = self._row(alias)
            if what == "early" and not is_last and alias not in self._keys:
                self._owed[alias].append(row)
                found.append(("-R", *row))
            elif what in ("retract", "correct") and there:
                old = there.pop(random.randrange(len(there)))
                if what == "retract":
                    found.append(("-R", *old))
                    continue
                row = self._corrected(alias, old, row)
                found += [("-C", *old), ("+C", *row)]
                there.append(row)
            elif not self._is_taken(alias, row):
                found.append(("+A", *row))
                there.append(row)
        return found

    def _corrected(self, alias: str, old: Row, new: Row) -> Row:
        """Return a correction of a row: of the same key if there is one, or with some of its values."""
        if alias in self._keys:
            kept: set[int] | range = set(self._keys[alias])
        else:
            kept = [at for at in range(len(old)) if self._random.random() < 0.6]
        return tuple(old[at] if at in kept else value for at, value in enumerate(new))

    def _is_taken(self, alias: str, row: Row) -> bool:
        at = self._keys.get(alias)
        return at is not None and any(all(row[i] == other[i] for i in at) for other in self._there[alias])

    def _row(self, alias: str) -> Row:
        random = self._random
        if self._there[alias] and random.random() < 0.1:
            return random.choice(self._there[alias])  # a duplicate
        time = self._start + random.randrange(0, 26) * self._step
        if random.random() < 0.1:
            time += timedelta(minutes=random.choice((10, 20, 59)))
        keyed = [self._inputs[alias][at - 1].name for at in self._keys.get(alias, ())]
        return (time, *(self._value(field, field.name in keyed) for field in self._inputs[alias]))

    def _value(self, field: pa.Field, is_key: bool) -> Any:
        random = self._random
        if field.name == "w":
            return self._world
        if field.nullable and not is_key and random.random() < 0.2:
            return None
        match field.name:
            case "k":
                return random.choice("xyz")
            case "j" | "v":
                return random.randrange(0, 4)
            case "x":
                return random.choice((0.0, 0.5, 1.0, 2.5, -1.5, 0.5, 1.0, float("nan"), -0.0))
            case "n":
                return random.choice((Decimal("1.50"), Decimal("0.25"), Decimal("-2.00")))
            case "d":
                return random.choice((date(2024, 1, 31), date(2024, 2, 29), date(2024, 1, 30)))
            case "f":
                return random.random() < 0.5
            case "l":
                return [random.choice((1, 2, 3, None)) for _ in range(random.choice((0, 1, 2, 3)))]
        raise LookupError(field.name)


def _position(fields: Sequence[pa.Field], name: str) -> int:
    return 1 + next(at for at, field in enumerate(fields) if field.name == name)
