"""Tables and columns as the grammar of the search sees them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, TypeVar

from hypothesis import strategies as st

T = TypeVar("T")
Draw = Callable[[st.SearchStrategy[T]], T]

TIME, DATE, TEXT, INT, LONG, DOUBLE, DECIMAL, FLAG, LIST = (
    "timestamp", "date", "string", "int", "bigint", "double", "decimal", "boolean", "array",
)  # fmt: skip
NUMBERS = (INT, LONG, DOUBLE, DECIMAL)
SCALARS = (TEXT, *NUMBERS, FLAG, DATE, TIME)


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes:
        name: unique within its table.
        kind: one of the kinds above.
        nullable: whether it may have NULL, as far as the grammar knows.
    """

    name: str
    kind: str
    nullable: bool = True


@dataclass(frozen=True)
class Table:
    """Something to select from.

    Attributes:
        text: its SQL after FROM.
        columns: columns of the table.
        time: name of the column that has, or may have, the watermark of an input.
        waits: whether some of its rows are emitted only when a watermark has passed them.
        valid: for a temporal table, the columns with the interval of validity.
    """

    text: str
    columns: tuple[Column, ...]
    time: str | None
    waits: bool = False
    valid: tuple[str, str] | None = None

    def of(self, *kinds: str) -> list[Column]:
        """Return the columns of some kinds."""
        return [column for column in self.columns if column.kind in kinds]

    def named(self, name: str) -> Column:
        """Return the column of a name."""
        return next(column for column in self.columns if column.name == name)


@dataclass
class Builder:
    """A query that is being made.

    Attributes:
        draw: hypothesis's draw function.
        world: the column that separates parallel histories in the inputs, if there are several.
        inputs: the tables that the query may read.
        definitions: tables with a name, in the order in which they can be made.
        uses: used features, for statistics.
    """

    draw: Draw[Any]
    world: str | None
    inputs: Sequence[Table]
    definitions: list[tuple[str, str]] = field(default_factory=list)
    uses: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._numbers = count(1)

    def fresh(self, prefix: str) -> str:
        """Return a name that nothing has."""
        return f"{prefix}{next(self._numbers)}"

    def one_of(self, values: Sequence[T]) -> T:
        """One of some values; the simplest first."""
        return self.draw(st.sampled_from(values))

    def chance(self, one_in: int) -> bool:
        """Return whether a rare event occurs; it does not in minimized cases."""
        return self.draw(st.integers(0, one_in - 1)) == one_in - 1

    def some(self, values: Sequence[T], least: int, most: int) -> list[T]:
        """Return some of the values, each at most once, in their order."""
        most = min(most, len(values))
        if not most:
            return []
        chosen = self.draw(
            st.lists(st.sampled_from(range(len(values))), min_size=min(least, most), max_size=most, unique=True)
        )
        return [values[at] for at in sorted(chosen)]

    def named(self, table: Table, name: str | None = None) -> Table:
        """Return a table under a name of its own, as a CTE or a step."""
        name = name or self.fresh("t")
        self.definitions.append((name, table.text.removeprefix("(").removesuffix(")")))
        return replace(table, text=name)
