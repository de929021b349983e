"""Errors of relays that are reported to callers."""

from __future__ import annotations

from odfpy.errors import OdfError, UsageError


class InvalidQuestion(UsageError, code="E779"):
    """A relay received an invalid query."""


class TicketRefused(OdfError, code="E784"):
    """A ticket was issued by another relay or for another caller, has expired, or was already used."""


class RelayUnavailable(OdfError, code="E786"):
    """A relay cannot be reached, or did not respond in time."""


class RelayRefused(OdfError, code="E787"):
    """A relay rejects the request."""


class InvalidAnswer(OdfError, code="E788"):
    """A relay sent an invalid answer."""


class IncompleteAnswer(OdfError, code="E789"):
    """Rows of a relay are missing in an answer that must be complete."""


class ResultNotReady(OdfError, code="E793"):
    """The parts of a result are still being computed."""
