"""Options of a query."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from odfpy.federation.relay.bounds import RECEIVED

SECONDS: Final = 60.0
MEMORY: Final = 1 << 30


@dataclass(frozen=True, slots=True)
class QueryOptions:
    """The limits of a query, and what is requested in addition to the rows.

    Attributes:
        require_complete: whether the missing rows of any relay are an error.
        seconds: time limit for the whole operation.
        memory: bytes that assembling the answer may use.
        received: maximum bytes of Arrow data from all relays together; a relay that sends too much counts as missing.
        single_use: whether each ticket can be redeemed only once.
        signed: whether relays sign what they return.
    """

    require_complete: bool = False
    seconds: float = SECONDS
    memory: int = MEMORY
    received: int = RECEIVED
    single_use: bool = False
    signed: bool = False


DEFAULTS: Final = QueryOptions()
