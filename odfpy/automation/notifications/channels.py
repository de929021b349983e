"""Channels: how notices are delivered, and how they are batched."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path

from odfpy.automation.notifications.notice import Notice
from odfpy.errors import OdfError


class NotDelivered(OdfError, code="E790"):
    """A receiver of notices could not be reached, or did not accept one."""


class Refused(NotDelivered, code="E792"):
    """A receiver of notices was reached and rejected this one; it may accept others."""


class Channel(ABC):
    """A channel to one receiver; implemented for mail and webhooks."""

    @abstractmethod
    def batches(self, waiting: Mapping[Path, Notice], now: float | None) -> list[list[Path]]:
        """Return batches of waiting notices to deliver now.

        Args:
            waiting: notices by file, oldest first.
            now: current time, in seconds since the epoch; None for the last delivery of this process, which holds
                nothing back.
        """

    @abstractmethod
    def send(self, notices: Sequence[Notice]) -> None:
        """Send a batch; receivers can recognize a repetition by the ids of notices.

        Args:
            notices: at least one notice.

        Raises:
            NotDelivered: the receiver has not confirmed the notices.
        """
