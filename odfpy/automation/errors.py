"""Errors of scheduled runs, and of the scheduler."""

from __future__ import annotations

from odfpy.errors import OdfError


class RunDied(OdfError, code="E780"):
    """The process of a run exited without a result."""


class RunTimeout(OdfError, code="E781"):
    """A run exceeded its time limit and was terminated."""


class StateUnusable(OdfError, code="E782"):
    """The state file of the scheduler cannot be read or written."""


class JobImpossible(OdfError, code="E783"):
    """A job would affect other datasets, which requires a confirmation by a user."""
