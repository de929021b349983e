"""Watermark policies of root datasets (ODF specification, "Watermark").

A policy is a pure function of the blocks, the new rows and the system time of the commit, and only moves a watermark
forward. The blocks record the result: verification does not need the policy.
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
        lag: distance of the watermark to the maximum event time, so that rows may arrive out of order by as much.
        idle: time without new rows after which the watermark follows system time; None for never.
    """

    lag: Duration = ZERO
    idle: Duration | None = None

    def after_rows(self, before: Timestamp | None, event_times: Iterable[Timestamp]) -> Timestamp | None:
        """Return the watermark after new rows: the maximum event time less the lag.

        Args:
            before: the current watermark.
            event_times: event times of the rows; the maximum of each slice suffices.
        """
        return _latest(before, *map(self.lag.before, event_times))

    def when_idle(self, before: Timestamp | None, last_rows: Timestamp | None, now: Timestamp) -> Timestamp | None:
        """Return the watermark after a pull without new rows: system time less the lag once the source is idle, else
        unchanged.

        Args:
            before: the current watermark.
            last_rows: system time of the last rows; None if there are none, and then the watermark stays.
            now: system time of the commit.
        """
        if self.idle is None or last_rows is None or not self.idle.has_passed(last_rows, now):
            return before
        return _latest(before, self.lag.before(now.floor_millis()))


def _latest(*times: Timestamp | None) -> Timestamp | None:
    return max((time for time in times if time is not None), default=None)
