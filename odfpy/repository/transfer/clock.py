"""Blocks with a time in the future: their writer's clock was ahead, or the local one is behind.

System time never decreases in a chain, so that all blocks after such a block have its time until the clocks catch up.
Queries as of now exclude it, and it cannot be repaired later. So it is only accepted if forced.
"""

from __future__ import annotations

from typing import Final

from odfpy.data.duration import Duration
from odfpy.data.timestamp import Timestamp
from odfpy.errors import TransferError

TOLERANCE: Final = Duration(5 * 60)
"""Clock difference that is tolerated silently."""

MAX_AHEAD: Final = Duration(24 * 60 * 60)
"""By how much they may differ before anything is refused."""


class FromTheFuture(TransferError, code="E661"):
    """A dataset has blocks whose system time is more than a day ahead of this clock."""


def ahead(time: Timestamp | None, now: Timestamp) -> Duration | None:
    """Return how far a system time is ahead of a clock, None if that is within the tolerance."""
    if time is None:
        return None
    found = Duration.between(now, time)
    return found if found > TOLERANCE else None


def require_past(time: Timestamp | None, known: Timestamp | None, clock: Timestamp | None, where: str) -> None:
    """Check that received blocks are not from the future.

    Args:
        time: time of the last block, which is the greatest.
        known: time of the last existing block: if that is in the future, too, it was accepted deliberately.
        clock: current time; None to accept any time.
        where: the remote that they come from, for the message.

    Raises:
        FromTheFuture: they are more than a day ahead.
    """
    if clock is None or time is None or (known is not None and time <= known):
        return
    difference = Duration.between(clock, time)
    if difference > MAX_AHEAD:
        raise FromTheFuture(
            f"{where}: the last block is of {time}, which is {difference.in_words} ahead of the local clock ({clock})",
            hint="Check which of the clocks is wrong; `date` shows the local one. --allow-future accepts such blocks:"
            " all later blocks get their time, until the clocks have caught up.",
        )
