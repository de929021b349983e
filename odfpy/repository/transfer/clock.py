"""Blocks with a time in the future: the writer's clock was ahead, or the local one is behind.

System time never decreases in a chain, so all blocks after such a block get its time, until the clocks catch up.
Queries as of now exclude these blocks, and they cannot be repaired later. So they are only accepted if forced.
"""

from __future__ import annotations

from typing import Final

from odfpy.data.duration import Duration
from odfpy.data.timestamp import Timestamp
from odfpy.errors import TransferError

TOLERANCE: Final = Duration(5 * 60)
"""Clock difference that is tolerated silently."""

MAX_AHEAD: Final = Duration(24 * 60 * 60)
"""Maximum clock difference; blocks further ahead are rejected."""


class FromTheFuture(TransferError, code="E661"):
    """A dataset has blocks whose system time is more than a day ahead of this clock."""


def ahead(time: Timestamp | None, now: Timestamp) -> Duration | None:
    """Return the difference by which a system time is ahead of a clock, None if it is within the tolerance."""
    if time is None:
        return None
    found = Duration.between(now, time)
    return found if found > TOLERANCE else None


def require_past(time: Timestamp | None, known: Timestamp | None, clock: Timestamp | None, where: str) -> None:
    """Check that received blocks are not too far in the future.

    Args:
        time: time of the last block, which is the greatest.
        known: time of the last existing block; the same time is accepted again.
        clock: current time; None to accept any time.
        where: location of the remote, for the message.

    Raises:
        FromTheFuture: the blocks are more than a day ahead.
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
