"""Points in time, in the types that programs pass."""

from __future__ import annotations

from typing import TypeAlias

from odfpy.data.multihash import Multihash
from odfpy.data.timestamp import Instant, Timestamp

PointInTime: TypeAlias = Instant | Multihash | int
"""A system time, a block (its hash, a tag, a branch), or an offset."""


def moment_word(moment: PointInTime) -> str:
    """Return a time, block, tag or offset as users write it on the command line.

    Raises:
        InvalidValue: the value is not a point in time.
    """
    if isinstance(moment, str):
        return moment
    if isinstance(moment, Multihash) or (isinstance(moment, int) and not isinstance(moment, bool)):
        return str(moment)
    return str(Timestamp.of(moment))  # type: ignore[arg-type]  # which says so of what is none
