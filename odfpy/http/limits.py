"""Limits on slow or oversized downloads, for all clients of a process."""

from __future__ import annotations

from odfpy.settings.sections import TransferSection
from odfpy.values import dataclass


@dataclass(frozen=True, slots=True)
class TransferLimits:
    """Limits of transfers.

    Attributes:
        least_speed: minimum bytes per second, averaged over a window; slower connections are closed.
        window: length of the window in seconds.
        most_unpacked: maximum uncompressed bytes of the pages of a data file.
    """

    least_speed: int = TransferSection.least_speed
    window: int = TransferSection.window
    most_unpacked: int = TransferSection.max_unpacked


class Pace:
    """Monitor for the rate of received bytes. Only the time spent waiting for them counts."""

    def __init__(self) -> None:
        self._limits = current_limits()
        self._waited = 0.0
        self._count = 0

    def wait(self, seconds: float, count: int) -> None:
        """Record received bytes and the seconds spent waiting for them.

        Raises:
            TimeoutError: the rate is too low.
        """
        self._waited += seconds
        self._count += count
        if self._waited < self._limits.window:
            return
        if self._count < self._limits.least_speed * self._waited:
            raise TimeoutError(
                f"{self._count} bytes in {self._waited:.0f} s is below the minimum speed of"
                f" {self._limits.least_speed} bytes/s (transfer.leastSpeed)"
            )
        self._waited, self._count = 0.0, 0


class _Current:
    limits = TransferLimits()


def current_limits() -> TransferLimits:
    """Return the limits of this process."""
    return _Current.limits


def set_limits(limits: TransferLimits) -> None:
    """Set the limits of this process."""
    _Current.limits = limits
