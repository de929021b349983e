"""Options of a query."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from odfpy.federation.relay.bounds import RECEIVED

SECONDS: Final = 60.0
MEMORY: Final = 1 << 30


@dataclass(frozen=True, slots=True)
class QueryOptions:
    """The bounds of a query, and what is to come beside the rows.

    Attributes:
        require_complete: whether an answer without the rows of a relay is an error.
        seconds: for all of it.
        memory: bytes that putting the answer together may take.
        received: bytes of Arrow data that all relays together may send; one that sends more is missing.
        single_use: whether tickets are to be good for one reading.
        signed: whether relays are to sign what they give.
    """

    require_complete: bool = False
    seconds: float = SECONDS
    memory: int = MEMORY
    received: int = RECEIVED
    single_use: bool = False
    signed: bool = False


DEFAULTS: Final = QueryOptions()
