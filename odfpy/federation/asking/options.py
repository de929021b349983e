"""Options of a query."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

SECONDS: Final = 60.0
MEMORY: Final = 1 << 30
LARGEST: Final = 64 << 30


@dataclass(frozen=True, slots=True)
class AskOptions:
    """The bounds of a query, and what it wants beside the rows.

    Attributes:
        require_complete: whether an answer without the rows of a relay is an error.
        seconds: for all of it.
        memory: bytes that putting the answer together may take.
        largest: bytes of Arrow data that all parts together may have; a part that goes beyond is missing.
        single_use: whether tickets are to be good for one reading.
        signed: whether relays are to sign what they give.
    """

    require_complete: bool = False
    seconds: float = SECONDS
    memory: int = MEMORY
    largest: int = LARGEST
    single_use: bool = False
    signed: bool = False


DEFAULTS: Final = AskOptions()
