"""Thresholds for arrangements: the numbers of rows or groups for which looking them up by key pays.

Looking up a row costs more than reading it, so lookups pay for a few rows out of many. After a pull that has looked up
too many rows, pulls read all of them again until there are twice as many.
"""

from __future__ import annotations

from typing import Final

MIN_ROWS: Final = 50_000
"""With fewer rows or groups, reading (and rewriting) all of them is as fast as looking some of them up."""

WORTH: Final = 4
"""A pull that looks up more than one row in so many is slower than one that reads them all."""

MAX_TIMES: Final = 2
"""When stored rows exceed the useful ones by this factor, the run is rewritten without the unused rows."""


def are_most(looked_up: int, count: int) -> bool:
    """Return whether a pull looks up so large a part of all rows that reading them all is faster."""
    return looked_up > MIN_ROWS and looked_up * WORTH > count


def pays(count: int, too_many: int) -> bool:
    """Return whether it pays to arrange rows.

    Args:
        count: the number of rows.
        too_many: the number of rows when a pull last looked up too many of them, 0 for never; arranging pays again when
            there are twice as many.
    """
    return count >= max(MIN_ROWS, 2 * too_many)
