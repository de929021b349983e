"""The settings of one dataset. A new setting also needs a row in `docs/cli.md`."""

# No `from __future__ import annotations` here, as in `sections`.

from typing import Annotated

from odfpy.settings.forms import DurationText, Files, Percent
from odfpy.settings.setting import Help, Section


class WatermarkSection(Section):
    """The policy of a root dataset's watermark."""

    NAME = "watermark"

    lag: Annotated[DurationText, Help("Distance of the watermark behind the greatest event time", "Watermark")] = "0s"
    idle: Annotated[
        DurationText | None,
        Help(
            "Time without new rows after which pulls advance the watermark with system time, minus the lag",
            "Watermark",
        ),
    ] = None


class RetractionsSection(Section):
    """Limits on the retractions of a snapshot."""

    NAME = "retractions"

    share: Annotated[
        Percent,
        Help(
            "Maximum share of rows that a Snapshot may retract without --allow-retractions; 100% for any",
            "MergeStrategy::Snapshot",
        ),
    ] = "50%"


class CopySection(Section):
    """The local copy of a dataset."""

    NAME = "copy"

    files: Annotated[
        Files,
        Help("Linked files that this copy has: all, none, available, or conditions on columns"),
    ] = "all"
