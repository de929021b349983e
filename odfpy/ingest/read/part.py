"""Parts of a file, which several readers take in side by side."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from odfpy.data.scalars import U64
from odfpy.values import dataclass


@dataclass(frozen=True, slots=True)
class FilePart:
    """A part of a file that begins where a record begins.

    Attributes:
        start: its first byte, row group (Parquet) or row (shapefiles); 0 is where the records begin.
        stop: the first byte, row group or row after it; None for the end of the file.
    """

    start: U64 = 0
    stop: U64 | None = None

    @property
    def has_end(self) -> bool:
        """True if it ends before the file does: what it ends with cannot be read together with what follows."""
        return self.stop is not None


WHOLE = FilePart()


def parts_between(bounds: Sequence[int]) -> list[FilePart]:
    """Return the parts of a file that is cut at some places."""
    return [FilePart(start or 0, stop) for start, stop in pairwise([0, *bounds, None])]
