"""Errors of relays that answer others."""

from __future__ import annotations

from odfpy.errors import OdfError, UsageError


class InvalidQuestion(UsageError, code="E779"):
    """A relay was asked something that is not a question."""


class TicketRefused(OdfError, code="E784"):
    """A ticket is none of this relay, has ended, was used, or is somebody else's."""


class RelayUnavailable(OdfError, code="E786"):
    """A relay cannot be reached, or has not answered in time."""


class RelayRefused(OdfError, code="E787"):
    """A relay was reached, and does not do what it was asked for."""


class InvalidAnswer(OdfError, code="E788"):
    """A relay sent an invalid answer."""


class IncompleteAnswer(OdfError, code="E789"):
    """Rows of a relay are missing in an answer that was to be complete."""


class ResultNotReady(OdfError, code="E793"):
    """The parts of a result are still being made."""
