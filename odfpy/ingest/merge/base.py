"""The interface of merge strategies, and the SQL that they share (ODF specification, "Merge Strategies").

A merge is one SELECT in the common subset of duckdb's and Spark's SQL, over two relations. Columns are named by
their *role*, so that no name needs quoting and no vocabulary is hard-coded; a lane renames its columns accordingly,
and back afterwards:

| relation | column | what it is |
|---|---|---|
| `new` | `pos` | position of the row in the input, unique |
| | `op` | operation type of the row, for strategies that take operations |
| | `t` | event time; that of the source if the row had none |
| | `given` | whether the row has its own event time |
| `state` | `pos` | identifies the old row for the lane, for example by offset; unique |
| | `t` | event time |
| both | `k0`, `k1`... | the primary key |
| | `v0`, `v1`... | other columns to compare |
| | `c0`, `c1`... | columns to carry into the result; the local lane has none and picks rows by `op` and `pos` |

Keys and compared columns are of the same type in both relations.

The result has `op` (0 to 3), `pos` (of the row in `new` for +A and +C, of the row in `state` for -R and -C, except
if all rows come from `new`), the columns to order by, and the carried columns. Equality is that of both engines: NaN
equals NaN and 0.0 equals -0.0, also inside lists and structs.
"""

# ruff: noqa: S608  (SQL is made of roles and quoted names)

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import Protocol

from odfpy.values import dataclass


class StateNeed(Enum):
    """The part of a dataset's history that a strategy may look up."""

    NOTHING = "nothing"
    SEEN_KEYS = "seen keys"
    CURRENT_ROWS = "current rows"


@dataclass(frozen=True, slots=True)
class MergeShape:
    """The number of columns of each role in a merge.

    Attributes:
        keys: columns of the primary key.
        compared: columns to compare besides key and event time.
        compares_event_time: whether a changed event time is a change.
        carried: columns that the result repeats.
    """

    keys: int = 0
    compared: int = 0
    compares_event_time: bool = False
    carried: int = 0

    @property
    def key_columns(self) -> tuple[str, ...]:
        """Names of the key columns: `k0`, `k1`..."""
        return tuple(f"k{i}" for i in range(self.keys))

    @property
    def value_columns(self) -> tuple[str, ...]:
        """Names of the compared columns: `v0`, `v1`..."""
        return tuple(f"v{i}" for i in range(self.compared))

    @property
    def carried_columns(self) -> tuple[str, ...]:
        """Names of the carried columns: `c0`, `c1`..."""
        return tuple(f"c{i}" for i in range(self.carried))


class Merge(Protocol):
    """A merge strategy."""

    @property
    def needs_state(self) -> StateNeed:
        """The part of the state that the query reads."""

    @property
    def takes_operations(self) -> bool:
        """True if the input may state operations, in its `op` column."""

    def sql(self, shape: MergeShape) -> str:
        """Return the merge as a query over `new` and `state`, in no particular order."""

    def order(self, shape: MergeShape) -> tuple[str, ...]:
        """Return the columns that determine the order of new offsets, ascending; together they are unique."""


def select(columns: Iterable[str]) -> str:
    """Return a list of expressions, one per line."""
    return ",\n  ".join(columns)


def equal_keys(shape: MergeShape, left: str, right: str) -> str:
    """Return the join condition of two relations.

    Args:
        shape: the columns of the merge.
        left: name of one relation.
        right: name of the other.
    """
    return " AND ".join(f"({left}.{key} = {right}.{key})" for key in shape.key_columns)


def is_changed(shape: MergeShape) -> str:
    """Return the condition that `new` differs from `state`, in parentheses: precedence differs between engines.

    An event time that was only filled in from the source is not a change.
    """
    changes = [f"(new.{value} IS DISTINCT FROM state.{value})" for value in shape.value_columns]
    if shape.compares_event_time:
        changes.append("(new.given AND (new.t IS DISTINCT FROM state.t))")
    return f"({' OR '.join(changes) or 'FALSE'})"


APPEND, RETRACT, CORRECT = 0, 1, 2
"""Kinds of change: a new row, a removed row, a changed row."""


def changes_to_operations(shape: MergeShape, kind: str, join: str) -> str:
    """Return a query with one row per operation, given one row per changed key: a correction becomes -C and +C.

    Args:
        shape: the columns of the merge.
        kind: expression for the kind of change.
        join: everything from FROM on, with relations `new` and `state`, for the keys that changed.
    """
    both = ("pos", *shape.carried_columns)
    pairs = select(
        (
            f"{kind} AS kind",
            *(f"COALESCE(new.{key}, state.{key}) AS {key}" for key in shape.key_columns),
            *(f"{side}.{column} AS {side}_{column}" for column in both for side in ("new", "state")),
        )
    )
    columns = select(
        (
            "operations.op AS op",
            *(f"changes.{key} AS {key}" for key in shape.key_columns),
            *(
                f"CASE WHEN operations.op IN (0, 3) THEN changes.new_{c} ELSE changes.state_{c} END AS {c}"
                for c in both
            ),
        )
    )
    return f"""SELECT
  {columns}
FROM (
SELECT
  {pairs}
{join}
) AS changes
JOIN (VALUES ({APPEND}, 0), ({RETRACT}, 1), ({CORRECT}, 2), ({CORRECT}, 3)) AS operations(kind, op)
ON changes.kind = operations.kind"""


def order_by_key(shape: MergeShape) -> tuple[str, ...]:
    """Order by key, then operation, so that each -C is just before its +C; ties by position in the input."""
    return (*shape.key_columns, "op", "pos")


def order_by_time() -> tuple[str, ...]:
    """Order by event time; ties by position in the input."""
    return ("t", "pos")


def order_clause(merge: Merge, shape: MergeShape) -> str:
    """Return the ORDER BY clause of new offsets, with explicit null ordering: the default differs between engines."""
    return "ORDER BY " + ", ".join(f"{column} ASC NULLS FIRST" for column in merge.order(shape))


def repeated_keys(shape: MergeShape) -> str:
    """Return a query for keys that occur repeatedly in `new`: position of the first row, and number of rows."""
    keys = ", ".join(f"new.{key}" for key in shape.key_columns)
    return f"SELECT MIN(new.pos) AS first_pos, COUNT(*) AS repeats\nFROM new GROUP BY {keys} HAVING COUNT(*) > 1"
