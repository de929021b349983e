"""Rows of a query row by row, with what they carry (ADR 0013, "Steps")."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from odfpy.engine.spark.plan.catalyst import Node
from odfpy.engine.spark.plan.step import CARRIED_BRANCH, CARRIED_INPUT, CARRIED_OFFSET, CARRIED_OPERATION

CARRIED = (CARRIED_INPUT, CARRIED_BRANCH, CARRIED_OFFSET, CARRIED_OPERATION)
"""Columns that travel with every row unseen by the query: which input it came from, through which branch of the plan,
and the offset and operation type it had there."""


@dataclass(frozen=True, slots=True)
class Branch:
    """One way through the plan from an input to the result.

    Attributes:
        input: position of the input among those declared.
        fans_out: whether one row of the input may become several.
        is_joined: whether they are its partners in a join, which come in no order.
    """

    input: int
    fans_out: bool
    is_joined: bool = False


Leaves = Callable[[int, Node], Node]
"""Given the number of a source and the plan that stands for it, the plan to read instead; its columns keep their
identities."""


@dataclass(frozen=True, slots=True)
class Delta:
    """The changes that a step adds to its output.

    Attributes:
        plan: its rows, the output columns of the query first, then `CARRIED`, in no particular order.
        branches: by the number in the column `CARRIED_BRANCH`.
    """

    plan: Node
    branches: tuple[Branch, ...]
