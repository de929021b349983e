"""What a person allows that is refused unless it is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Allowed:
    """What is allowed this time.

    Attributes:
        retractions: a snapshot may retract any number of rows.
        future: blocks may be of the future, by the clock of this machine or of the source.
    """

    retractions: bool = False
    future: bool = False


NOTHING: Final = Allowed()
