"""A query of a transform, as Spark has analyzed it: what all that look at queries share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from odfpy.engine.spark.plan.catalyst import Node
from odfpy.engine.spark.plan.operators import Operator
from odfpy.engine.sql.source_text import SourceText

RESERVED_PREFIX: Final = "__odf_"
"""What names of the engine's own columns begin with."""

CARRIED_INPUT: Final = f"{RESERVED_PREFIX}input"
"""Column of a plan row by row: the number of the input that a row came from."""

CARRIED_BRANCH: Final = f"{RESERVED_PREFIX}branch"
"""The branch of the plan through which it came."""

CARRIED_OFFSET: Final = f"{RESERVED_PREFIX}offset"
"""Its offset in the input."""

CARRIED_OPERATION: Final = f"{RESERVED_PREFIX}op"
"""Its operation type in the input."""


@dataclass(frozen=True, slots=True)
class Step:
    """One query of a transform, analyzed by Spark.

    Attributes:
        alias: name under which later steps see it.
        source: its text.
        plan: its analyzed plan.
        operators: the operators of the plan, from the result to its inputs.
    """

    alias: str | None
    source: SourceText
    plan: Node
    operators: tuple[Operator, ...]
