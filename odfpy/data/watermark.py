"""Watermark policies of root datasets (ODF specification, "Watermark").

A policy is a pure function of the blocks, of the new rows, and of the system time of the commit; it only moves a
watermark forward. The blocks record the result: the policy is not needed to verify them.
"""

from __future__ import annotations

from collections.abc import Iterable

from odfpy.data.duration import ZERO, Duration
from odfpy.data.timestamp import Timestamp
from odfpy.values import dataclass


@dataclass(frozen=True, slots=True)
class WatermarkPolicy:
    """The watermark policy of one dataset.

    Attributes:
        lag: how far the watermark stays behind the greatest event time, so that rows may come that much out of order.
        idle: for how long nothing new must have come before the watermark follows system time; None for never.
    """

    lag: Duration = ZERO
    idle: Duration | None = None

    def after_rows(self, before: Timestamp | None, event_times: Iterable[Timestamp]) -> Timestamp | None:
        """Return the watermark after new rows: the greatest event time less the lag.

        Args:
            before: the watermark so far.
            event_times: event times of the rows; the greatest of each slice is enough.
        """
        return _latest(before, *map(self.lag.before, event_times))

    def when_idle(self, before: Timestamp | None, last_rows: Timestamp | None, now: Timestamp) -> Timestamp | None:
        """Return the watermark when a source had nothing new: system time less the lag, once idle.

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
