"""Thresholds from which on it pays to look up rows, or partial results of groups, by key in an arrangement.

To look up a row costs more than to read it, so it pays for a few of many. After a pull that has looked up too many,
all are read, until it pays again.
"""

from __future__ import annotations

from typing import Final

MIN_ROWS: Final = 50_000
"""Fewer rows or groups are read, and where they are kept written again, as fast as they are looked up."""

WORTH: Final = 4
"""A pull that looks up more than this part of all rows had better read them all."""

MAX_TIMES: Final = 2
"""When stored rows exceed the useful ones by this factor, the run is rewritten without the unused rows."""


def are_most(looked_up: int, count: int) -> bool:
    """Return whether a pull looks up so many of all rows that it had better read them all."""
    return looked_up > MIN_ROWS and looked_up * WORTH > count


def pays(count: int, too_many: int) -> bool:
    """Return whether rows are worth being arranged.

    Args:
        count: how many there are.
        too_many: how many there were when a pull last looked up too many of them, 0 for never: then it pays again when
            they are twice as many.
    """
    return count >= max(MIN_ROWS, 2 * too_many)
