"""Policies by which the watermark of a root dataset moves (ODF specification, "Watermark").

A policy is a pure function of what the blocks say, of the rows that come, and of the system time of the commit; it
only ever moves a watermark forward. The blocks record what came of it: nobody needs the policy to verify them.
"""

from __future__ import annotations

from collections.abc import Iterable

from odfpy.data.duration import ZERO, Duration
from odfpy.data.timestamp import Timestamp
from odfpy.values import dataclass


@dataclass(frozen=True, slots=True)
class WatermarkPolicy:
    """The rule for one dataset.

    Attributes:
        lag: how far the watermark stays behind the greatest event time, so that rows may come that much out of order.
        idle: for how long nothing new must have come, until the watermark follows system time; None for never.
    """

    lag: Duration = ZERO
    idle: Duration | None = None

    def after_rows(self, before: Timestamp | None, event_times: Iterable[Timestamp]) -> Timestamp | None:
        """The watermark when rows have come: the greatest event time less the lag.

        Args:
            before: the watermark so far.
            event_times: of the rows; the greatest of each slice is enough.
        """
        return _latest(before, *map(self.lag.before, event_times))

    def when_idle(self, before: Timestamp | None, last_rows: Timestamp | None, now: Timestamp) -> Timestamp | None:
        """The watermark when a source was looked at and had nothing new: system time less the lag, once idle.

        Args:
            before: the watermark so far.
            last_rows: system time of the last rows; as long as there are none, the watermark stays.
            now: system time of the commit.
        """
        if self.idle is None or last_rows is None or not self.idle.has_passed(last_rows, now):
            return before
        return _latest(before, self.lag.before(now.floor_millis()))


def _latest(*times: Timestamp | None) -> Timestamp | None:
    return max((time for time in times if time is not None), default=None)
