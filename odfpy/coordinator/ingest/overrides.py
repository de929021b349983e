"""Exceptions to default checks, as chosen by the user."""

from __future__ import annotations

from typing import Final

from odfpy.values import dataclass


@dataclass(frozen=True, slots=True)
class Overrides:
    """The exceptions for one request.

    Attributes:
        retractions: whether a snapshot may retract any number of rows.
        future: whether blocks may have a system time in the future, by the clock of this machine or of the source.
    """

    retractions: bool = False
    future: bool = False


NOTHING: Final = Overrides()
