"""Random queries of outer joins over the inputs `a`, `b`, `c`, `d`, all with `k` and `j`; and random pulls.

Two to four tables in any kinds of joins, by columns, by expressions, by columns that another join made NULL; tables are
inputs, groups, unions or nested joins, with EXISTS, IN, groups, ranks and set operations above them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from random import Random
from typing import Any, Final

from support.queries.cases import Pull

INPUTS: Final = "abcd"
_KINDS: Final = ("LEFT", "LEFT", "RIGHT", "FULL", "INNER", "LEFT SEMI", "LEFT ANTI")
_TABLES: Final = (
    "SELECT k, j FROM {0}",
    "SELECT k, j FROM {0}",
    "SELECT k, j FROM {0}",
    "SELECT k, max(j) AS j FROM {0} GROUP BY k",
    "SELECT DISTINCT k, j FROM {0}",
    "SELECT k, coalesce(j, 0) AS j FROM {0} WHERE k > 0",
    "SELECT k, j FROM {0} UNION ALL SELECT j, k FROM {1}",
    "SELECT k, j FROM (SELECT *, row_number() OVER (PARTITION BY k ORDER BY j, event_time) AS n FROM {0}) WHERE n = 1",
)
_CONDITIONS: Final = (
    "{0} = {2}",
    "{0} = {2}",
    "{0} <=> {2}",
    "coalesce({0}, 0) = coalesce({2}, 0)",
    "coalesce({0}, 0) <=> coalesce({2}, 1)",
    "coalesce({0}, {1}) = {2}",
    "{0} + 1 = {2} + 1",
    "{0} + 1 <=> {2} + 1",
    "{2} = {0} AND {2} = 1",
    "{2} <=> {0} AND {2} IS NULL",
)
_FILTERS: Final = (
    "EXISTS (SELECT 1 FROM {2} e WHERE e.k = {0})",
    "NOT EXISTS (SELECT 1 FROM {2} e WHERE e.k <=> {0})",
    "{0} IN (SELECT k FROM {2})",
    "(EXISTS (SELECT 1 FROM {2} e WHERE e.k = {0}) OR {1} = 5)",
    "{0} IS NOT NULL",
    "coalesce({0}, 0) = 1",
)
_QUERIES: Final = (
    "SELECT {0} AS k, {1} AS j FROM {2}",
    "SELECT {0} AS k, {1} AS j FROM {2}",
    "SELECT {0} AS k, coalesce({1}, 1) AS j FROM {2}",
    "SELECT {0} AS k, count(DISTINCT {1}) AS j FROM {2} GROUP BY {0}",
    "SELECT {0} AS k, count(DISTINCT {1}) AS j FROM {2} GROUP BY ROLLUP ({0})",
    "SELECT DISTINCT {0} AS k, {1} AS j FROM {2}",
    "SELECT {0} AS k, (SELECT max(s.j) FROM {3} s WHERE s.k = {1}) AS j FROM {2}",
    "SELECT {0} AS k, row_number() OVER (PARTITION BY {0} ORDER BY {1}) AS j FROM {2}",
    "SELECT {0} AS k, {1} AS j FROM {2} EXCEPT SELECT k, j FROM {3}",
    "SELECT {0} AS k, {1} AS j FROM {2} INTERSECT ALL SELECT k, j FROM {3}",
    "SELECT {0} AS k, {1} AS j FROM {2} UNION ALL SELECT k, j FROM {3}",
)


@dataclass
class Joins:
    """Generates queries; deterministic for the same random numbers."""

    dice: Random
    _tables: int = 0

    def query(self) -> str:
        """Return all columns of some joins, or a query over them."""
        if self.dice.random() < 0.5:
            return f"SELECT timestamp'2024-01-01' AS event_time, k, j FROM ({self._select(1)})"
        text, tables = self._joins(1)
        shown = ", ".join(f"{table}.{column} AS {table}{column}" for table in tables for column in "kj")
        return f"SELECT timestamp'2024-01-01' AS event_time, {shown} FROM {text}"

    def _select(self, depth: int) -> str:
        """Return columns `k` and `j` of some joins."""
        text, tables = self._joins(depth)
        one, other = self._column(tables), self._column(tables)
        if self.dice.random() < 0.25:
            text += " WHERE " + self.dice.choice(_FILTERS).format(one, other, self.dice.choice(INPUTS))
        return self.dice.choice(_QUERIES).format(one, other, text, self.dice.choice(INPUTS))

    def _joins(self, depth: int) -> tuple[str, list[str]]:
        """Return the FROM clause without the keyword, and the names of its tables."""
        text, name = self._table(0)
        tables = [name]
        for _ in range(self.dice.choice((1, 2, 2, 3))):
            kind = self.dice.choice(_KINDS)
            right, name = self._table(depth if self.dice.random() < 0.25 else 0)
            conditions = [self._condition(tables, name) for _ in range(self.dice.choice((1, 1, 2)))]
            text += f" {kind} JOIN {right} ON {' AND '.join(conditions)}"
            if not kind.startswith("LEFT "):
                tables.append(name)
        return text, tables

    def _table(self, depth: int) -> tuple[str, str]:
        self._tables += 1
        name, one, other = f"t{self._tables}", self.dice.choice(INPUTS), self.dice.choice(INPUTS)
        text = self._select(depth - 1) if depth else self.dice.choice(_TABLES).format(one, other)
        return f"({text}) {name}", name

    def _condition(self, tables: Sequence[str], right: str) -> str:
        return self.dice.choice(_CONDITIONS).format(self._column(tables), self._column(tables), self._column([right]))

    def _column(self, tables: Sequence[str]) -> str:
        return f"{self.dice.choice(tables)}.{self.dice.choice('kj')}"


def random_pulls(dice: Random, count: int = 3) -> list[Pull]:
    """Return changelogs of the inputs: rows, and retractions and corrections of some existing ones."""
    time = datetime(2024, 1, 1, tzinfo=timezone.utc)
    there: dict[str, list[tuple[Any, ...]]] = {alias: [] for alias in INPUTS}
    pulls = []
    for _ in range(count):
        rows: dict[str, list[tuple[Any, ...]]] = {alias: [] for alias in INPUTS}
        for alias in INPUTS:
            for _ in range(dice.randrange(3)):
                row, known = (time, dice.choice((None, 1, 2)), dice.choice((None, 0, 5))), there[alias]
                what = dice.choice(("append", "append", "retract", "correct")) if known else "append"
                if what == "append":
                    rows[alias].append(("+A", *row))
                else:
                    old = known.pop(dice.randrange(len(known)))
                    rows[alias] += [("-R", *old)] if what == "retract" else [("-C", *old), ("+C", *row)]
                if what != "retract":
                    known.append(row)
        pulls.append(Pull(rows, {}))
    return pulls
