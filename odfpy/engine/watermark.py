"""The watermark of a derivative dataset (ODF specification, "Watermark")."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from odfpy.data.timestamp import Timestamp
from odfpy.engine.contract import TransformRequestInput
from odfpy.errors import InvalidValue


def input_watermark(source: TransformRequestInput) -> Timestamp | None:
    """Return the latest known watermark of an input, or None when it has never had one."""
    return max((watermark.event_time for watermark in source.explicit_watermarks), default=None)


def least_watermark(watermarks: Iterable[Timestamp | None]) -> Timestamp | None:
    """Return the least of several watermarks, as rows may still come from any input; None if one is unknown."""
    known = list(watermarks)
    if not known or any(watermark is None for watermark in known):
        return None
    return min(watermark for watermark in known if watermark is not None)


def watermark_at(millis: int | None) -> Timestamp | None:
    """Return the watermark at a number of milliseconds since the epoch, None where it is not known.

    A function of a watermark may be a time that no dataset can have: after the year 9999 it becomes the last time of
    that year, before the year 1 it is None.
    """
    if millis is None:
        return None
    try:
        return Timestamp.from_millis(millis)
    except InvalidValue:
        return _LAST if millis > 0 else None


_LAST: Final = Timestamp.parse("9999-12-31T23:59:59.999Z")
