"""Errors of scheduled runs, and of the scheduler."""

from __future__ import annotations

from odfpy.errors import OdfError


class RunDied(OdfError, code="E780"):
    """The process of a run has ended without a result."""


class RunTimeout(OdfError, code="E781"):
    """A run has taken longer than it may, and was ended."""


class StateUnusable(OdfError, code="E782"):
    """The file in which the scheduler remembers cannot be read or written."""


class JobImpossible(OdfError, code="E783"):
    """A job cannot be done for a dataset now, without harm to others."""
