"""Preparing: from the bytes as fetched to those that can be read (ODF specification, "PrepStep")."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from odfpy.chain.sources import PrepStep
from odfpy.ingest.unsupported import unsupported


def prepare(steps: Sequence[PrepStep] | None, path: Path) -> Path:
    """The file to read: without steps, the fetched one itself.

    Raises:
        UnsupportedStep: there are steps; all of them are part of a later release.
    """
    for step in steps or ():
        raise unsupported(step)
    return path
