"""Intervals of rows by offset, as in events and messages of engines."""

from __future__ import annotations

from odfpy.data.scalars import U64
from odfpy.values import dataclass


@dataclass(frozen=True, slots=True)
class OffsetInterval:
    """Rows `start` to `end`, both inclusive.

    https://github.com/open-data-fabric/open-data-fabric/blob/master/open-data-fabric.md#offsetinterval

    Attributes:
        start: offset of the first row.
        end: offset of the last row.
    """

    start: U64
    end: U64

    @property
    def num_rows(self) -> int:
        """The number of rows."""
        return self.end - self.start + 1
