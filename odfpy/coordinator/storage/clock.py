"""Detection of clocks that are ahead: wrong times written by this machine would stay in the chain permanently.

A server sends its time in each response, and the last block of a dataset has the time of its commit. Both are compared
with the clock of this machine.
"""

from __future__ import annotations

from odfpy.data.data_warning import DataWarning, WarningKind
from odfpy.data.duration import Duration
from odfpy.data.timestamp import Timestamp
from odfpy.errors import IngestError
from odfpy.repository.transfer.clock import MAX_AHEAD, TOLERANCE, ahead


class ClockAhead(IngestError, code="E409"):
    """The clock of this machine is more than a day ahead of the source's."""


class SourceClock:
    """The clock of a source, as reported by its responses.

    Attributes:
        ahead: difference by which the local clock was ahead at the last response.
    """

    def __init__(self, *, any_time: bool = False) -> None:
        """Create a clock with unknown time; with `any_time`, `require` never fails."""
        self.ahead = Duration()
        self._any_time = any_time
        self._source_time: Timestamp | None = None

    def note_time(self, time: Timestamp) -> None:
        """Record the time reported by the source."""
        self._source_time = time
        self.ahead = Duration.between(time, Timestamp.now())

    def require(self) -> None:
        """Check that blocks may be written with the time of the local clock.

        Raises:
            ClockAhead: the time would be in the future by the clock of the source.
        """
        if self.ahead > MAX_AHEAD and not self._any_time:
            raise ClockAhead(
                f"The local clock is {self.ahead.in_words} ahead of that of the source, which has {self._source_time}",
                hint="Set the clock: blocks written now would have a time in the future permanently. If the clock of"
                " the source is wrong: --allow-future.",
            )

    def warnings(self) -> tuple[DataWarning, ...]:
        """Return a warning if the local clock is ahead."""
        if self.ahead <= TOLERANCE:
            return ()
        message = f"the local clock is {self.ahead.in_words} ahead of that of the source ({self._source_time})"
        return (DataWarning(WarningKind.CLOCK, message),)


def warnings_of_last_block(system_time: Timestamp | None) -> tuple[DataWarning, ...]:
    """Return a warning if the previous block has a time in the future.

    Args:
        system_time: system time of the previous block, None if there is none.
    """
    difference = ahead(system_time, Timestamp.now())
    if difference is None:
        return ()
    message = (
        f"the last block is of {system_time}, {difference.in_words} ahead of the local clock: system time never"
        " decreases, so blocks that are written until then get the same time"
    )
    return (DataWarning(WarningKind.CLOCK, message),)


def warnings_of_copy(system_time: Timestamp | None) -> tuple[DataWarning, ...]:
    """Return a warning if the last block of a copied dataset has a time in the future."""
    difference = ahead(system_time, Timestamp.now())
    if difference is None:
        return ()
    message = f"the last block is of {system_time}, {difference.in_words} ahead of the local clock"
    return (DataWarning(WarningKind.CLOCK, message),)


def warnings_of_given_time(name: str, time: Timestamp, rows: int, now: Timestamp) -> tuple[DataWarning, ...]:
    """Return a warning if rows get their event time from a file whose time is in the future.

    Args:
        name: name of the file.
        time: the event time of rows without one.
        rows: number of such rows.
        now: time of the commit.
    """
    difference = ahead(time, now)
    if difference is None or not rows:
        return ()
    message = f"{name} is of {time}, {difference.in_words} ahead of the local clock, and gives its rows that event time"
    return (DataWarning(WarningKind.CLOCK, message, rows),)
