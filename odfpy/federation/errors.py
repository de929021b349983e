"""Errors of federation."""

from __future__ import annotations

from odfpy.errors import NotFound, OdfError, UsageError


class InvalidDocument(UsageError, code="E770"):
    """A document of a relay is none, or does not fit the others."""


class WebObjectNotFound(NotFound, code="E771"):
    """The relay has no such entity, data, peer, user or certificate."""


class ConcurrentApply(OdfError, code="E772"):
    """Somebody else has changed the relay at the same time."""


class InvalidCertificate(UsageError, code="E773"):
    """A certificate or key cannot be used."""


class NoRelay(NotFound, code="E774"):
    """The workspace has no relay."""

    exit_code = 2


class SourceFailed(OdfError, code="E775"):
    """A source of a relay cannot be read.

    The message may be shown to whoever asks: it names the source and the kind of failure, and nothing of the data.

    Attributes:
        detail: the words of the source, without secrets; for operators only.
    """

    detail = ""  # without a type, so that it is not a field: it does not cross the border of a process


class SourceMismatch(SourceFailed, code="E776"):
    """A source gives other columns or types than those that are wanted."""


class AuthenticationFailed(OdfError, code="E785"):
    """Somebody is not who they say, as far as this relay can tell."""


class AnswerNotKept(OdfError, code="E798"):
    """An answer of a web cannot be kept, since it could not be verified afterwards."""
