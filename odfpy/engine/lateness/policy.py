"""Policies for late rows: a part of the query, so that they are in the chain and replayed with it.

An entry of an input's changelog is late (`odfpy.data.lateness`) with respect to the watermark that the input had before
the block that brought it. That is a function of the input's chain alone: it is the same for all readers, however they
divide the input into pulls. Since watermarks never go back, whatever retracts or corrects a late entry is late, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from odfpy.data.duration import Duration


class Late(Enum):
    """The treatments of the late entries of an input."""

    CORRECTED = "corrected"
    IGNORED = "ignored"
    ONLY = "only"


@dataclass(frozen=True, slots=True)
class LatePolicy:
    """The treatment of late rows in a transform.

    Attributes:
        inputs: the treatment for each input, in declared order.
        correctable: by how much the watermark may have passed the end of an event-time window for entries to still
            count in it; None for ever.
    """

    inputs: tuple[Late, ...]
    correctable: Duration | None = None

    @classmethod
    def default(cls, num_inputs: int) -> LatePolicy:
        """Return the default policy: late rows correct earlier results, for ever."""
        return cls((Late.CORRECTED,) * num_inputs)

    def in_words(self, names: Sequence[str]) -> str:
        """Return the policy in words, for people.

        Args:
            names: names of the inputs.
        """
        kinds = dict.fromkeys(self.inputs)
        if len(kinds) <= 1:
            text = "".join(kind.value for kind in kinds)
        else:
            pairs = list(zip(names, self.inputs, strict=True))
            text = "; ".join(
                f"{kind.value}: {', '.join(f'`{name}`' for name, found in pairs if found is kind)}" for kind in kinds
            )
        if self.correctable is None:
            return text
        return f"{text}; windows are correctable until the watermark is {self.correctable} past their end"
