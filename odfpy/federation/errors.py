"""Errors of federation."""

from __future__ import annotations

from odfpy.errors import NotFound, OdfError, UsageError


class InvalidDocument(UsageError, code="E770"):
    """A document of a relay is invalid, or inconsistent with the others."""


class WebObjectNotFound(NotFound, code="E771"):
    """The relay has no such entity, data, peer, user or certificate."""


class ConcurrentApply(OdfError, code="E772"):
    """Another process has changed the relay at the same time."""


class InvalidCertificate(UsageError, code="E773"):
    """A certificate or key cannot be used."""


class NoRelay(NotFound, code="E774"):
    """The workspace has no relay."""

    exit_code = 2


class SourceFailed(OdfError, code="E775"):
    """A source of a relay cannot be read.

    The message may be shown to all requesters: it names the source and the kind of failure, but nothing of the data.

    Attributes:
        detail: the error message of the source, without secrets; for operators only.
    """

    detail = ""  # without annotation, so that it is not a field, and is not sent to other processes


class SourceMismatch(SourceFailed, code="E776"):
    """The columns or types of a source differ from the requested ones."""


class AuthenticationFailed(OdfError, code="E785"):
    """The relay cannot verify the identity that a peer claims."""


class AnswerNotKept(OdfError, code="E798"):
    """An answer of a web is not stored, since it could not be verified afterwards."""
