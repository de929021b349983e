"""Policies for late rows: a part of the query, so that they are in the chain and replayed with it.

An entry of an input's changelog is late (`odfpy.data.lateness`) by the watermark that the input had before the block
that brought it. That is a function of the input's chain alone: it is the same for all who read the input, however they
cut it into pulls. Since watermarks never go back, whatever takes back or
corrects an entry that was late is late too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from odfpy.data.duration import Duration


class Late(Enum):
    """The treatment of the late entries of an input."""

    CORRECTED = "corrected"
    IGNORED = "ignored"
    ONLY = "only"


@dataclass(frozen=True, slots=True)
class LatePolicy:
    """The treatment of late rows in a transform.

    Attributes:
        inputs: for each input, in declared order.
        correctable: entries of a window of event time count until the watermark is so much past its end; None for ever.
    """

    inputs: tuple[Late, ...]
    correctable: Duration | None = None

    @classmethod
    def default(cls, num_inputs: int) -> LatePolicy:
        """Late rows correct what has been said, for ever."""
        return cls((Late.CORRECTED,) * num_inputs)

    def in_words(self, names: Sequence[str]) -> str:
        """For people.

        Args:
            names: of the inputs.
        """
        kinds = dict.fromkeys(self.inputs)
        if len(kinds) <= 1:
            said = "".join(kind.value for kind in kinds)
        else:
            pairs = list(zip(names, self.inputs, strict=True))
            said = "; ".join(
                f"{kind.value}: {', '.join(f'`{name}`' for name, found in pairs if found is kind)}" for kind in kinds
            )
        if self.correctable is None:
            return said
        return f"{said}; windows are correctable until the watermark is {self.correctable} past their end"
