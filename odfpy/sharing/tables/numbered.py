"""Tables whose versions are numbered consecutively."""

from __future__ import annotations

import bisect
from abc import abstractmethod

from odfpy.data.timestamp import Timestamp
from odfpy.sharing.tables.contract import NoSuchVersion, ReadableTable, TableVersion


class NumberedTable(ReadableTable):
    """Base class of tables with consecutive version numbers: looks up versions by number or time."""

    @property
    @abstractmethod
    def _numbers(self) -> range:
        """The numbers of all versions, at least one."""

    @abstractmethod
    def _time(self, number: int) -> Timestamp:
        """Return the time of an existing version."""

    def _block(self, number: int) -> str | None:
        """Return the hash of the block of a version, for datasets."""
        del number
        return None

    @property
    def latest(self) -> TableVersion:
        return self.version(self._numbers[-1])

    def version(self, number: int) -> TableVersion:
        if number not in self._numbers:
            first, last = self._numbers[0], self._numbers[-1]
            if number < self.base:
                raise NoSuchVersion(
                    f"The table has no version {number} any more: its history was rewritten, and its versions are"
                    f" {self.base} to {last}",
                    hint="To follow its changes again, first read version"
                    f" {last} as a whole, then the changes from version {last + 1} on.",
                )
            hint = f"Its versions are {first} to {last}." if first < last else f"Its only version is {last}."
            raise NoSuchVersion(f"The table has no version {number}", hint=hint)
        return TableVersion(number, self._time(number), self._block(number))

    def as_of(self, time: Timestamp) -> TableVersion:
        place = bisect.bisect_right(self._numbers, time, key=self._time)
        if not place:
            began = self._time(self._numbers[0])
            raise NoSuchVersion(f"There was no such table yet at {time}", hint=f"It began at {began}.")
        return self.version(self._numbers[place - 1])

    def first_from(self, time: Timestamp) -> TableVersion:
        place = bisect.bisect_left(self._numbers, time, key=self._time)
        if place == len(self._numbers):
            raise NoSuchVersion(f"There is no version from {time} on", hint=f"The newest is of {self.latest.time}.")
        return self.version(self._numbers[place])
