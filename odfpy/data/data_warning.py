"""Warnings about data of an operation that succeeded."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Final

from odfpy.data.scalars import U64
from odfpy.values import dataclass

MAX_EXAMPLES: Final = 10
"""Maximum number of examples per warning."""

_MAX_TOLD: Final = 3


class WarningKind(Enum):
    """The subject of a warning; programs identify it by the value."""

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
        kind: subject of the warning.
        message: one sentence for the user.
        count: number of rows, keys, files or columns concerned; None if they are not counted.
        examples: up to ten of them, as text.
    """

    kind: WarningKind
    message: str
    count: U64 | None = None
    examples: tuple[str, ...] = ()


def such_as(examples: Sequence[str]) -> str:
    """Return the first examples as the end of a sentence; empty if there are none."""
    return f", such as {'; '.join(examples[:_MAX_TOLD])}" if examples else ""
