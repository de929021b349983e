"""Identifiers of rows of the inputs, as they travel with the rows of a plan: sets of numbers in one more column.

An identifier is an offset and the number of its input in one BIGINT, so that sets of them are cheap to collect.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from odfpy.engine.spark.plan.builder import Builder
from odfpy.engine.spark.plan.catalyst import Catalyst, Node, columns

if TYPE_CHECKING:
    from pyspark.sql import Column

IDS: Final = "__odf_ids"
"""The column with the identifiers of a row's input rows; there may be duplicates."""

MAX_INPUTS: Final = 1 << 10


def identifier(offset: Column, source: Column) -> Column:
    """Return the identifier of a row."""
    return offset.cast("bigint") * MAX_INPUTS + source.cast("bigint")


def parts_of(number: int) -> tuple[int, int]:
    """Return the input number and the offset in an identifier."""
    return number % MAX_INPUTS, number // MAX_INPUTS


class Identifiers:
    """Columns of a plan that hold sets of row identifiers."""

    def __init__(self, catalyst: Catalyst) -> None:
        self.catalyst = catalyst
        self.build = Builder(catalyst)
        parsed = catalyst.parse("SELECT cast(array() AS array<bigint>) AS none")
        self.none: Node = catalyst.analyze(parsed).projectList().apply(0).child()

    def of(self, plan: Node) -> Node:
        """Return the identifiers of an annotated plan: its last column of that name."""
        return next(column for column in reversed(columns(plan)) if column.name() == IDS)

    def named(self, value: Node) -> Node:
        """Return an expression as the column with identifiers."""
        return self.catalyst.alias(value, IDS)

    def with_ids(self, shown: Sequence[Node], value: Node, child: Node) -> Node:
        """Return the projection `SELECT shown, value AS identifiers FROM child`.

        Args:
            shown: the columns to show.
            value: the identifiers.
            child: the plan below.
        """
        return self.catalyst.project([*shown, self.named(value)], child)

    def together(self, parts: Sequence[Node]) -> Node:
        """Return the union of several sets; NULL is an empty set."""
        build, seq = self.build, self.catalyst.seq
        sets = [build.expression("Coalesce", seq([part, self.none])) if part.nullable() else part for part in parts]
        return sets[0] if len(sets) == 1 else build.expression("Concat", seq(sets))

    def collected(self, value: Node) -> Node:
        """Return the sets of all rows of a group as one."""
        build = self.build
        return build.expression("Flatten", build.aggregate(build.expression("aggregate.CollectList", value)))


def is_leaf(plan: Node) -> bool:
    """Return whether a plan is one of those that `leaf` makes: below it identifiers are known, above they are not."""
    child_plans = plan.children()
    return bool(child_plans.size() == 1 and any(column.name() == IDS for column in columns(child_plans.apply(0))))


def leaf(catalyst: Catalyst, shown: Sequence[Node], annotated: Node) -> Node:
    """Return rows with identifiers as a plan that does not show these, and in which they are found again.

    Args:
        catalyst: access to Catalyst.
        shown: the columns to show.
        annotated: the plan with identifiers.
    """
    return catalyst.project(shown, annotated)
