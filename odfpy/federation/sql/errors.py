"""Errors of questions that travel."""

from __future__ import annotations

from odfpy.errors import UsageError


class InvalidFragment(UsageError, code="E777"):
    """A part of a question has something that not every source understands in the same way, or is too large."""


class InvalidTransformation(UsageError, code="E778"):
    """A transformation of a mapping is not one."""
