"""Steps that the specification has and this release has not."""

from __future__ import annotations

from odfpy.chain.sources import FetchStep, PrepStep, ReadStep
from odfpy.errors import UnsupportedStep

LATER_RELEASE = "0.2"


def unsupported(step: FetchStep | PrepStep | ReadStep, what: str | None = None) -> UnsupportedStep:
    """The error for a step that is kept in the chain but cannot be carried out yet.

    Args:
        step: any step of a source.
        what: the part of the step that is not supported, if it is not the whole.
    """
    phase = type(step).__name__.removesuffix(step.KIND).lower()
    names = {"fetch": "Fetch step", "prep": "Prepare step", "read": "Read step"}
    subject = f"{names[phase]} {step.KIND}" + (f" with {what}" if what else "")
    return UnsupportedStep(
        f"{subject} is part of a later release ({LATER_RELEASE})",
        hint="The dataset keeps its source as it is. Until then, bring the data as CSV, JSON or Parquet files over "
        "FilesGlob, Url (file, http, https) or `odf ingest`.",
    )
