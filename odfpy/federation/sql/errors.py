"""Errors of questions that travel."""

from __future__ import annotations

from odfpy.errors import UsageError


class InvalidFragment(UsageError, code="E777"):
    """A part of a question has something whose meaning differs between data sources, or is too large."""


class InvalidTransformation(UsageError, code="E778"):
    """A transformation of a mapping is not one."""
