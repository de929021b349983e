"""Exceptions that a person makes from what is refused by default."""

from __future__ import annotations

from typing import Final

from odfpy.values import dataclass


@dataclass(frozen=True, slots=True)
class Overrides:
    """The exceptions made this time.

    Attributes:
        retractions: a snapshot may retract any number of rows.
        future: blocks may be of the future, by the clock of this machine or of the source.
    """

    retractions: bool = False
    future: bool = False


NOTHING: Final = Overrides()
