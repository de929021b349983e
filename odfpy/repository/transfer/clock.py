"""Blocks of the future: their writer's clock was ahead, or ours is behind.

System time never goes back in a chain, so that whatever follows such a block has its time, until the clocks have caught
up. Questions about now leave it out, and nothing can mend it later. So it is not taken in unasked.
"""

from __future__ import annotations

from typing import Final

from odfpy.data.duration import Duration
from odfpy.data.timestamp import Timestamp
from odfpy.errors import TransferError

TOLERANCE: Final = Duration(5 * 60)
"""By how much clocks may differ before anything is said."""

MAX_AHEAD: Final = Duration(24 * 60 * 60)
"""By how much they may differ before anything is refused."""


class FromTheFuture(TransferError, code="E661"):
    """A dataset has blocks whose system time is more than a day ahead of this clock."""


def ahead(time: Timestamp | None, now: Timestamp) -> Duration | None:
    """By how much a system time is ahead of a clock, None where that is no more than clocks may differ."""
    if time is None:
        return None
    found = Duration.between(now, time)
    return found if found > TOLERANCE else None


def require_past(time: Timestamp | None, known: Timestamp | None, clock: Timestamp | None, where: str) -> None:
    """Check that the blocks that are to come are not of the future.

    Args:
        time: of the last of them, which is the greatest.
        known: of the last block that already exists: if that is of the future too, it was taken in on purpose.
        clock: the time here; None where any time is allowed.
        where: the place that they come from, for the message.

    Raises:
        FromTheFuture: they are, by more than a day.
    """
    if clock is None or time is None or (known is not None and time <= known):
        return
    difference = Duration.between(clock, time)
    if difference > MAX_AHEAD:
        raise FromTheFuture(
            f"{where}: the last block is of {time}, which is {difference.in_words} ahead of the clock here ({clock})",
            hint="See which of the clocks is wrong; `date` shows this one. --allow-future takes such blocks: all that"
            " follows them has their time, until the clocks have caught up.",
        )
