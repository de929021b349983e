"""Warnings on data that was taken in although nothing has failed."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Final

from odfpy.data.scalars import U64
from odfpy.values import dataclass

MAX_EXAMPLES: Final = 10
"""Of each warning."""

_MAX_TOLD: Final = 3


class WarningKind(Enum):
    """The subject of a warning; programs know it by its value."""

    RETRACTIONS = "retractions"
    EVENT_TIME = "event-time"
    KNOWN_OTHERWISE = "known-otherwise"
    LEFT_OUT = "left-out"
    CHANGED = "changed"
    CLOCK = "clock"
    COLUMNS = "columns"
    CUT_TIMES = "cut-times"


@dataclass(frozen=True, slots=True)
class DataWarning:
    """A warning.

    Attributes:
        kind: what it is about.
        message: one sentence for the person.
        count: how many rows, keys, files or columns are concerned; None where these are not counted.
        examples: some of them, as text; ten at most.
    """

    kind: WarningKind
    message: str
    count: U64 | None = None
    examples: tuple[str, ...] = ()


def such_as(examples: Sequence[str]) -> str:
    """Return the first examples, to follow the warning in a sentence; empty if there are none."""
    return f", such as {'; '.join(examples[:_MAX_TOLD])}" if examples else ""
