"""The watermark of a derivative dataset (ODF specification, "Watermark")."""

from __future__ import annotations

from collections.abc import Iterable

from odfpy.data.timestamp import Timestamp
from odfpy.engine.contract import TransformRequestInput


def input_watermark(source: TransformRequestInput) -> Timestamp | None:
    """The latest watermark that is known of an input, or None when it has never had one."""
    return max((watermark.event_time for watermark in source.explicit_watermarks), default=None)


def least_watermark(watermarks: Iterable[Timestamp | None]) -> Timestamp | None:
    """The least of them: later, rows may still come from any of the inputs. None as long as one is unknown."""
    known = list(watermarks)
    if not known or any(watermark is None for watermark in known):
        return None
    return min(watermark for watermark in known if watermark is not None)
