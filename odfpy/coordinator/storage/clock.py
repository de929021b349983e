"""Clocks that are ahead: what this machine writes by such a clock stays in the chain for ever.

A server tells the time with each answer, and the last block of a dataset tells when it was written. Both are held
against the clock of this machine.
"""

from __future__ import annotations

from odfpy.data.data_warning import DataWarning, WarningKind
from odfpy.data.duration import Duration
from odfpy.data.timestamp import Timestamp
from odfpy.errors import IngestError
from odfpy.repository.transfer.clock import MAX_AHEAD, TOLERANCE, ahead


class ClockAhead(IngestError, code="E409"):
    """The clock of this machine is more than a day ahead of that of the source."""


class SourceClock:
    """The clock of a source, as far as it tells the time.

    Attributes:
        ahead: how much the clock here was ahead when the source last told the time.
    """

    def __init__(self, *, any_time: bool = False) -> None:
        """A clock that has not told the time yet; with `any_time` nothing is refused."""
        self.ahead = Duration()
        self._any_time = any_time
        self._told: Timestamp | None = None

    def hear(self, time: Timestamp) -> None:
        """Take note of what the source says the time is now."""
        self._told = time
        self.ahead = Duration.between(time, Timestamp.now())

    def require(self) -> None:
        """Check that blocks may be written by the clock here.

        Raises:
            ClockAhead: they would be of the future, by the clock of the source.
        """
        if self.ahead > MAX_AHEAD and not self._any_time:
            raise ClockAhead(
                f"The clock here is {self.ahead.in_words} ahead of that of the source, which has {self._told}",
                hint="Set the clock: what is written now would be of the future, and stay so. If it is the source that"
                " is wrong: --allow-future.",
            )

    def warnings(self) -> tuple[DataWarning, ...]:
        """Return what to say of a clock that is a little ahead, or more than that."""
        if self.ahead <= TOLERANCE:
            return ()
        message = f"the clock here is {self.ahead.in_words} ahead of that of the source ({self._told})"
        return (DataWarning(WarningKind.CLOCK, message),)


def warnings_of_last_block(system_time: Timestamp | None) -> tuple[DataWarning, ...]:
    """Return what to say when blocks follow one that is of the future.

    Args:
        system_time: of the last block so far, None where there is none.
    """
    difference = ahead(system_time, Timestamp.now())
    if difference is None:
        return ()
    message = (
        f"the last block is of {system_time}, {difference.in_words} ahead of the clock here: system time does not go"
        " back, so what is written until then has the same time"
    )
    return (DataWarning(WarningKind.CLOCK, message),)


def warnings_of_copy(system_time: Timestamp | None) -> tuple[DataWarning, ...]:
    """Return what to say of a dataset that was copied and whose last block is of the future."""
    difference = ahead(system_time, Timestamp.now())
    if difference is None:
        return ()
    message = f"the last block is of {system_time}, {difference.in_words} ahead of the clock here"
    return (DataWarning(WarningKind.CLOCK, message),)


def warnings_of_given_time(name: str, time: Timestamp, rows: int, now: Timestamp) -> tuple[DataWarning, ...]:
    """Return what to say when rows get the time of a file, and that is of the future.

    Args:
        name: the file.
        time: the event time that rows without one get.
        rows: how many these are.
        now: time of the commit.
    """
    difference = ahead(time, now)
    if difference is None or not rows:
        return ()
    message = f"{name} is of {time}, {difference.in_words} ahead of the clock here, and gives its rows that event time"
    return (DataWarning(WarningKind.CLOCK, message, rows),)
