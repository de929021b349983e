"""A query of a transform, as Spark has analyzed it: what all that look at queries share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from odfpy.engine.spark.plan.catalyst import Node
from odfpy.engine.spark.plan.operators import Operator
from odfpy.engine.sql.source_text import SourceText

RESERVED_PREFIX: Final = "__odf_"
"""What names of the engine's own columns begin with."""


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
