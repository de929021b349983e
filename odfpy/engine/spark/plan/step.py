"""Steps of a transform, as Spark has analyzed them: shared by all code that inspects queries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from odfpy.engine.spark.plan.catalyst import Node
from odfpy.engine.spark.plan.operators import Operator
from odfpy.engine.sql.source_text import SourceText

RESERVED_PREFIX: Final = "__odf_"
"""The prefix of the names of the engine's own columns."""

CARRIED_INPUT: Final = f"{RESERVED_PREFIX}input"
"""Column that row-by-row plans carry: the number of the input that a row came from."""

CARRIED_BRANCH: Final = f"{RESERVED_PREFIX}branch"
"""Column that row-by-row plans carry: the branch of the plan that a row came through."""

CARRIED_OFFSET: Final = f"{RESERVED_PREFIX}offset"
"""Column that row-by-row plans carry: the offset of the row in the input."""

CARRIED_OPERATION: Final = f"{RESERVED_PREFIX}op"
"""Column that row-by-row plans carry: the operation type of the row in the input."""


@dataclass(frozen=True, slots=True)
class Step:
    """One query of a transform, analyzed by Spark.

    Attributes:
        alias: the name under which later steps see it.
        source: its text.
        plan: its analyzed plan.
        operators: the operators of the plan, from the result to its inputs.
    """

    alias: str | None
    source: SourceText
    plan: Node
    operators: tuple[Operator, ...]
