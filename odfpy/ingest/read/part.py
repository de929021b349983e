"""Parts of a file, for several concurrent readers."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from odfpy.data.scalars import U64
from odfpy.values import dataclass


@dataclass(frozen=True, slots=True)
class FilePart:
    """A part of a file that begins where a record begins.

    Attributes:
        start: index of its first byte, row group (Parquet) or row (shapefiles); 0 is the first record.
        stop: index of the byte, row group or row after its end; None for the end of the file.
    """

    start: U64 = 0
    stop: U64 | None = None

    @property
    def has_end(self) -> bool:
        """True if it ends before the file does: then an incomplete last record cannot be completed."""
        return self.stop is not None


WHOLE = FilePart()


def parts_between(bounds: Sequence[int]) -> list[FilePart]:
    """Return the parts of a file between given bounds."""
    return [FilePart(start or 0, stop) for start, stop in pairwise([0, *bounds, None])]
