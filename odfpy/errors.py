"""Every error odfpy raises on purpose: one root, one subclass by cause.

An error says *what* happened and *where* in its message, and *what to try next* in its hint. Only the command line
turns errors into exit codes: 1 for a job that failed, 2 for a request that made no sense.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar


class OdfError(Exception):
    """Root of all expected errors.

    Attributes:
        message: what happened and where, one sentence or a short paragraph.
        hint: what the person can do next, or None.
        code: names the cause; `odf help CODE` explains it. Each class has one of its own, which never changes.
    """

    code: ClassVar[str] = "E900"
    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return self.message


class UsageError(OdfError):
    """The request itself is wrong: a bad argument, option, name or combination."""

    code = "E100"
    exit_code = 2


class InvalidValue(UsageError):
    """A piece of text is not a valid name, reference, id, hash or time."""

    code = "E101"


class InternalError(OdfError):
    """A promise inside odfpy was broken: a bug, to be reported."""

    code = "E999"


# --- Not there, or already there -------------------------------------------------------------------------------------


class NotFound(OdfError):
    """Something that was named does not exist."""

    code = "E110"


class WorkspaceNotFound(NotFound):
    """Neither the folder nor any parent of it holds a workspace."""

    code = "E111"
    exit_code = 2


class DatasetNotFound(NotFound):
    """No dataset goes by that name or id."""

    code = "E112"


class RepositoryNotFound(NotFound):
    """No repository goes by that name."""

    code = "E113"


class ReferenceNotFound(NotFound):
    """A chain has no such reference (for example, no head)."""

    code = "E114"


class ObjectNotFound(NotFound):
    """A block, data file or checkpoint is missing from a store."""

    code = "E115"


class AlreadyExists(OdfError):
    """Something of that name is there already."""

    code = "E116"


# --- Bytes, documents and chains -------------------------------------------------------------------------------------


class MalformedData(OdfError):
    """Bytes or text do not have the form that their format prescribes."""

    code = "E200"


class MalformedBlock(MalformedData):
    """Bytes are not a metadata block."""

    code = "E201"


class MalformedManifest(MalformedData):
    """A YAML or JSON document is not a valid manifest."""

    code = "E202"


class UnsupportedVersion(MalformedData):
    """The format is known, but written in a version this release cannot read."""

    code = "E204"


class SchemaError(OdfError):
    """A schema is invalid, unsupported or may not change in this way."""

    code = "E210"


class IntegrityError(OdfError):
    """Stored or received bytes are not what their hash or their chain says."""

    code = "E220"


class HashMismatch(IntegrityError):
    """The hash of some bytes is not the one that they are named by."""

    code = "E221"


class ChainRuleViolation(IntegrityError):
    """A block may not follow the blocks before it; each rule has a subclass in `odfpy.chain.rules`."""

    code = "E300"


# --- Concurrency -----------------------------------------------------------------------------------------------------


class ConcurrentUpdate(OdfError):
    """A reference has been moved by somebody else in the meantime."""

    code = "E121"


class DatasetLocked(OdfError):
    """Another process is writing to the dataset."""

    code = "E120"


# --- Ingest ----------------------------------------------------------------------------------------------------------


class IngestError(OdfError):
    """New data could not be taken in; nothing was committed."""

    code = "E400"


class FetchError(IngestError):
    """The source could not be reached or read."""

    code = "E401"


class BadValue(IngestError):
    """A value does not fit; the message names file, line, column, value and wanted type."""

    code = "E402"


class UnsupportedStep(IngestError):
    """The step is part of the specification but not of this release."""

    code = "E403"


# --- Queries and engines ---------------------------------------------------------------------------------------------


class EngineError(OdfError):
    """An engine could not run a query."""

    code = "E500"


class InvalidQuery(EngineError):
    """The query does not parse, or names what is not there."""

    code = "E501"


class UnsupportedQuery(EngineError):
    """The query is valid but not of a class that the engine can process incrementally."""

    code = "E502"


class NondeterministicQuery(EngineError):
    """The query's result would not be a function of its inputs."""

    code = "E503"


class EngineNotFound(EngineError):
    """No engine of this release goes by that name."""

    code = "E504"


class EngineUnavailable(EngineError):
    """The engine could not be started or has gone away."""

    code = "E505"


# --- Transfer --------------------------------------------------------------------------------------------------------


class TransferError(OdfError):
    """A dataset could not be moved between places."""

    code = "E600"


class DatasetsDiverged(TransferError):
    """Both sides have blocks that the other side lacks."""

    code = "E601"


def did_you_mean(name: str, known: Iterable[str], *, otherwise: str | None = None) -> str | None:
    """A hint with the known names closest to a misspelt one, or `otherwise` when none is close."""
    import difflib  # only errors pay for it

    by_lower = {candidate.lower(): candidate for candidate in known}
    close = difflib.get_close_matches(name.lower(), by_lower, n=3, cutoff=0.6)
    if not close:
        return otherwise
    alike = {candidate: difflib.SequenceMatcher(None, name.lower(), candidate).ratio() for candidate in close}
    close = [candidate for candidate in close if alike[candidate] > max(alike.values()) - 0.1]
    return f"Did you mean {' or '.join(by_lower[c] for c in close)}?"
