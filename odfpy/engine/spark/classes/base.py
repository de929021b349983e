"""The interface of query classes without state: one function to classify, one to run (ADR 0013, "Steps")."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from odfpy.engine.spark.plan.catalyst import Catalyst, Node
from odfpy.engine.spark.plan.step import RESERVED_PREFIX as RESERVED_PREFIX  # noqa: PLC0414
from odfpy.engine.spark.plan.step import Step as Step  # noqa: PLC0414

CARRIED = ("__odf_input", "__odf_branch", "__odf_offset", "__odf_op")
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
        branches: by the number in the column `__odf_branch`.
    """

    plan: Node
    branches: tuple[Branch, ...]


class QueryClass(Protocol):
    """A class of queries that the engine processes without state: from the new rows alone."""

    @property
    def name(self) -> str:
        """Return the name that `odf inspect query` shows."""
        ...

    def classify(self, step: Step) -> str | None:
        """Why the step is of this class, in words, or None when it is not."""
        ...

    def run(self, catalyst: Catalyst, step: Step, leaves: Leaves | None = None) -> Delta:
        """The rows that the step adds for the new rows of its inputs, or for what `leaves` has in their places.

        Args:
            catalyst: access to Catalyst.
            step: the step.
            leaves: makes the plan of each source, None for the rows of this run.
        """
        ...
