"""Rows of a row-by-row query, with their carried columns (ADR 0013, "Steps")."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from odfpy.engine.spark.plan.catalyst import Node
from odfpy.engine.spark.plan.step import CARRIED_BRANCH, CARRIED_INPUT, CARRIED_OFFSET, CARRIED_OPERATION

CARRIED = (CARRIED_INPUT, CARRIED_BRANCH, CARRIED_OFFSET, CARRIED_OPERATION)
"""Hidden columns of every row: the input it came from, the branch of the plan, and the offset and operation type in the
input."""


@dataclass(frozen=True, slots=True)
class Branch:
    """One path through the plan from an input to the result.

    Attributes:
        input: position of the input among those declared.
        fans_out: whether one row of the input may become several.
        is_joined: whether these are its partners in a join, which are unordered.
    """

    input: int
    fans_out: bool
    is_joined: bool = False


Leaves = Callable[[int, Node], Node]
"""Given the number of a source and the plan that represents it, returns the plan to read instead; its columns keep
their identities."""


@dataclass(frozen=True, slots=True)
class Delta:
    """The changes that a step adds to its output.

    Attributes:
        plan: its rows, with the output columns of the query first, then `CARRIED`, in no particular order.
        branches: branches by the number in the column `CARRIED_BRANCH`.
    """

    plan: Node
    branches: tuple[Branch, ...]
