"""Channels: the ways by which notices go out, and how many go at once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path

from odfpy.automation.notifications.notice import Notice
from odfpy.errors import OdfError


class NotDelivered(OdfError, code="E790"):
    """A receiver of notices could not be reached, or did not take one."""


class Refused(NotDelivered, code="E792"):
    """A receiver of notices was reached, and refused this one; it may take others."""


class Channel(ABC):
    """A channel to one receiver."""

    @abstractmethod
    def batches(self, waiting: Mapping[Path, Notice], now: float | None) -> list[list[Path]]:
        """Return which of the notices that wait go out now, each batch at once.

        Args:
            waiting: notices by file, the oldest first.
            now: seconds since 1970; None for the last time that this process looks, when nothing is kept for later.
        """

    @abstractmethod
    def send(self, notices: Sequence[Notice]) -> None:
        """Send a batch; when it is repeated, the receiver can tell.

        Args:
            notices: at least one.

        Raises:
            NotDelivered: it has not taken them, as far as anybody knows.
        """
