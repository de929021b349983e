"""Clocks that run ahead: times that this machine writes by such a clock stay in the chain for ever.

A server states the time in each response, and the last block of a dataset has the time when it was written. Both are
compared with the clock of this machine.
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
    """The clock of a source, as far as its responses state the time.

    Attributes:
        ahead: by how much the clock here was ahead when the source last stated the time.
    """

    def __init__(self, *, any_time: bool = False) -> None:
        """Make a clock that is still unknown; with `any_time`, nothing is refused."""
        self.ahead = Duration()
        self._any_time = any_time
        self._source_time: Timestamp | None = None

    def note_time(self, time: Timestamp) -> None:
        """Note the time that the source states."""
        self._source_time = time
        self.ahead = Duration.between(time, Timestamp.now())

    def require(self) -> None:
        """Check that blocks may be written by the clock here.

        Raises:
            ClockAhead: they would lie in the future, by the clock of the source.
        """
        if self.ahead > MAX_AHEAD and not self._any_time:
            raise ClockAhead(
                f"The local clock is {self.ahead.in_words} ahead of that of the source, which has {self._source_time}",
                hint="Set the clock: blocks written now would have a time in the future permanently. If the clock of"
                " the source is wrong: --allow-future.",
            )

    def warnings(self) -> tuple[DataWarning, ...]:
        """Return warnings about a clock that is ahead."""
        if self.ahead <= TOLERANCE:
            return ()
        message = f"the local clock is {self.ahead.in_words} ahead of that of the source ({self._source_time})"
        return (DataWarning(WarningKind.CLOCK, message),)


def warnings_of_last_block(system_time: Timestamp | None) -> tuple[DataWarning, ...]:
    """Return warnings when blocks follow one that lies in the future.

    Args:
        system_time: system time of the last block so far, None if there is none.
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
    """Return warnings about a copied dataset whose last block lies in the future."""
    difference = ahead(system_time, Timestamp.now())
    if difference is None:
        return ()
    message = f"the last block is of {system_time}, {difference.in_words} ahead of the local clock"
    return (DataWarning(WarningKind.CLOCK, message),)


def warnings_of_given_time(name: str, time: Timestamp, rows: int, now: Timestamp) -> tuple[DataWarning, ...]:
    """Return warnings when rows get the time of a file, which lies in the future.

    Args:
        name: name of the file.
        time: the event time that rows without one get.
        rows: number of such rows.
        now: the time of the commit.
    """
    difference = ahead(time, now)
    if difference is None or not rows:
        return ()
    message = f"{name} is of {time}, {difference.in_words} ahead of the local clock, and gives its rows that event time"
    return (DataWarning(WarningKind.CLOCK, message, rows),)
