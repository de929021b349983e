"""Errors of relays that answer others."""

from __future__ import annotations

from odfpy.errors import OdfError, UsageError


class InvalidQuestion(UsageError, code="E779"):
    """A relay was asked something that is no question."""


class TicketRefused(OdfError, code="E784"):
    """A ticket is none of this relay, has ended, was used, or is somebody else's."""
