"""Expected errors of odfpy: one root, and one subclass for each cause.

An error says *what* happened and *where* in its message, and *what to try next* in its hint. Only the command line
turns errors into exit codes: 1 for a job that failed, 2 for an invalid request.
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from copyreg import __newobj__ as new_object  # type: ignore[attr-defined]
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from odfpy.escaping import escape_controls_in_lines

if TYPE_CHECKING:
    from typing_extensions import Self

_CLASSES: dict[str, type[OdfError]] = {}
_Kind = TypeVar("_Kind", bound=Enum)


class OdfError(Exception):
    """Root of all expected errors.

    A subclass declares its own fields in its body, with their types. Declared fields are sent along when an error
    crosses to another process (`odfpy.codec.errors`).

    Attributes:
        message: what happened and where, one sentence or a short paragraph.
        hint: what the person can do next, or None.
        code: identifies the cause; `odf help CODE` explains it. Each class has its own code, which never changes.
    """

    code: ClassVar[str] = "E900"
    exit_code: ClassVar[int] = 1

    def __init_subclass__(cls, *, code: str | None = None) -> None:
        super().__init_subclass__()
        if code is not None:
            _register(cls, code)

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return self.message

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle without the constructor: some subclasses have one with other parameters."""
        return new_object, (type(self), *self.args), self.__dict__

    def with_message(self, message: str, *, hint: str | None) -> Self:
        """Return a copy with another message and hint."""
        error = copy(self)
        error.args = (message,)
        error.message, error.hint = message, hint
        return error

    def with_context(self, context: object, *, hint: str | None = None) -> Self:
        """Return a copy whose message begins with a context: `raise error.with_context(name) from error`.

        Args:
            context: where it happened; a colon follows it.
            hint: what to do next, if the error has no hint of its own.
        """
        return self.with_message(f"{context}: {self.message}", hint=self.hint or hint)

    def _render_traceback_(self) -> list[str]:
        """Return the lines that IPython and notebooks show instead of a traceback, as the command line prints them."""
        lines = [f"error: {self.message} ({self.code})", *([f"  hint: {self.hint}"] if self.hint else [])]
        return [escape_controls_in_lines(line) for line in lines]


def _register(kind: type[OdfError], code: str) -> None:
    """Assign a code to a class. Two classes with one code are a bug, but a module may be reloaded."""
    known = _CLASSES.get(code, kind)
    if (known.__module__, known.__qualname__) != (kind.__module__, kind.__qualname__):
        raise InternalError(f"{kind.__qualname__} takes code {code}, which is that of {known.__qualname__}")
    kind.code = code
    _CLASSES[code] = kind


def known_class(code: str) -> type[OdfError] | None:
    """Return the class with a code if its module is loaded; `odfpy.codec.errors.error_class` finds the others too."""
    return _CLASSES.get(code)


_register(OdfError, OdfError.code)


class InternalError(OdfError, code="E999"):
    """An internal invariant was violated: a bug to report."""


class UsageError(OdfError, code="E100"):
    """The request is invalid: a wrong argument, option, name or combination."""

    exit_code = 2


class InvalidValue(UsageError, code="E101"):
    """A piece of text is not a valid name, reference, id, hash or time."""


# --- Not there, or already there -------------------------------------------------------------------------------------


class NotFound(OdfError, code="E110"):
    """A named object does not exist."""


class WorkspaceNotFound(NotFound, code="E111"):
    """Neither the folder nor any of its parents contains a workspace."""

    exit_code = 2


class DatasetNotFound(NotFound, code="E112"):
    """No dataset has that name or id."""


class RepositoryNotFound(NotFound, code="E113"):
    """No repository has that name."""


class ReferenceNotFound(NotFound, code="E114"):
    """A chain has no such reference (for example, no head)."""


class ObjectNotFound(NotFound, code="E115"):
    """A block, data file or checkpoint is missing from a store."""


class AlreadyExists(OdfError, code="E116"):
    """An object of that name already exists."""


# --- Bytes, documents and chains -------------------------------------------------------------------------------------


class MalformedData(OdfError, code="E200"):
    """Bytes or text do not match their format."""


class MalformedBlock(MalformedData, code="E201"):
    """Bytes are not a metadata block."""


class MalformedManifest(MalformedData, code="E202"):
    """A YAML or JSON document is not a valid manifest."""


class TooManyNodes(MalformedManifest, code="E470"):
    """A text has more documents or values than any manifest needs."""


class UnsupportedVersion(MalformedData, code="E204"):
    """The format is known, but its version is not supported by this release."""


class SchemaError(OdfError, code="E210"):
    """A schema is invalid, unsupported or may not change in this way."""


class NoDataYet(SchemaError, code="E211"):
    """A dataset has no data yet, and so no columns."""


class IntegrityError(OdfError, code="E220"):
    """Stored or received bytes do not match their hash or their chain."""


class HashMismatch(IntegrityError, code="E221"):
    """Bytes do not have the hash in their name."""


class ReplayMismatch(IntegrityError, code="E223"):
    """A replay of a transform gives a different result than recorded."""


class BatchMismatch(IntegrityError, code="E224"):
    """A derivative differs from its query run once over the current state of its inputs."""


class ChainRuleViolation(IntegrityError, code="E300"):
    """A block may not follow the blocks before it; each rule has a subclass in `odfpy.chain.rules`."""


# --- Concurrency -----------------------------------------------------------------------------------------------------


class ConcurrentUpdate(OdfError, code="E121"):
    """A reference was moved concurrently by another client."""


class DatasetLocked(OdfError, code="E120"):
    """Another process is writing to the dataset."""


# --- Ingest ----------------------------------------------------------------------------------------------------------


class IngestError(OdfError, code="E400"):
    """New data could not be ingested; nothing was committed."""


class FetchError(IngestError, code="E401"):
    """The source could not be reached or read."""


class FetchInterrupted(FetchError, code="E404"):
    """A fetch of the source was interrupted; a retry may succeed.

    Attributes:
        retry_after: seconds to wait, if the source requests it.
    """

    retry_after: float | None

    def __init__(self, message: str, *, hint: str | None = None, retry_after: float | None = None) -> None:
        super().__init__(message, hint=hint)
        self.retry_after = retry_after


class PrepareError(IngestError, code="E405"):
    """A file could not be unpacked, or the command of a Pipe step has failed."""


class BadValue(IngestError, code="E402"):
    """A value does not fit; the message names file, line, column, value and expected type."""


class TooManyRetractions(IngestError, code="E407"):
    """A snapshot would retract more of the current rows than allowed without confirmation."""


class HeaderMissing(IngestError, code="E408"):
    """A CSV file does not begin with the expected header."""


# --- Queries and engines ---------------------------------------------------------------------------------------------


class EngineError(OdfError, code="E500"):
    """An engine could not run a query."""


class InvalidQuery(EngineError, code="E501"):
    """The query does not parse, or names something that does not exist."""


class UnsupportedQuery(EngineError, code="E502"):
    """The query is valid, but the engine cannot process it incrementally."""


class NondeterministicQuery(EngineError, code="E503"):
    """The result of the query is not a function of its inputs."""


class EngineNotFound(EngineError, code="E504"):
    """There is no engine of that name in this release."""


class EngineUnavailable(EngineError, code="E505"):
    """The engine could not be started, or has exited."""


class SandboxRequired(EngineError, code="E440"):
    """An untrusted query would run without a full sandbox."""


# --- Questions -------------------------------------------------------------------------------------------------------


class QueryEnded(EngineError, code="E450"):
    """The process of a query has exited: it exceeded its memory limit, or DataFusion crashed."""


class QueryTooLong(InvalidQuery, code="E451"):
    """A query has more characters or tokens than allowed."""


class QueryTooDeep(InvalidQuery, code="E452"):
    """A query is nested too deeply, or chains too many operators."""

    @classmethod
    def anywhere(cls) -> QueryTooDeep:
        """Return the error for a depth that only shows during execution, without a place in the query."""
        hint = "Write it in several steps, or with fewer operators in a row."
        return cls("The query is nested too deeply", hint=hint)


class NotYetThen(NotFound, code="E701"):
    """A dataset is requested as at a time before its first block."""


class QueryCancelled(OdfError, code="E702"):
    """The query was cancelled."""


class QueryTimedOut(EngineError, code="E703"):
    """The query exceeded its time limit."""


class ResultTooLarge(EngineError, code="E704"):
    """The result exceeds its size limit."""


class WrongProjection(InvalidQuery, code="E705"):
    """A temporal projection is invalid, or the dataset has no such version."""


class BlockOfAnother(NotFound, code="E706"):
    """A block belongs to another dataset than the one to read."""


class UnknownTable(DatasetNotFound, code="E707"):
    """A query names a table that is neither a dataset nor defined in the query."""


# --- Exports, differences, charts ------------------------------------------------------------------------------------


class CannotExport(OdfError, code="E740"):
    """Rows cannot be written in the requested format."""


class ExportDamaged(IntegrityError, code="E741"):
    """Exported files were changed or are missing."""


class NoSuchKey(UsageError, code="E742"):
    """A key column does not exist."""


class NothingToPlot(OdfError, code="E743"):
    """The rows cannot be plotted: they have no numbers."""


# --- Transfer --------------------------------------------------------------------------------------------------------


class TransferError(OdfError, code="E600"):
    """A dataset could not be transferred."""


def did_you_mean(name: str, known: Iterable[str], *, otherwise: str | None = None) -> str | None:
    """Return a hint with the known names closest to a misspelt one, or `otherwise` if none is close.

    Args:
        name: the name that does not exist.
        known: the names that do.
        otherwise: the hint if no known name is close.
    """
    return f"Did you mean {' or '.join(near)}?" if (near := nearest(name, known)) else otherwise


def nearest(name: str, known: Iterable[str]) -> list[str]:
    """Return the known names closest to a misspelt one: three at most, none if none is close.

    Args:
        name: the name that does not exist.
        known: the names that do.
    """
    import difflib  # only errors need it

    if len(name) > 200:
        return []
    by_lower = {candidate.lower(): candidate for candidate in known}
    close = difflib.get_close_matches(name.lower(), by_lower, n=3, cutoff=0.6)
    alike = {candidate: difflib.SequenceMatcher(None, name.lower(), candidate).ratio() for candidate in close}
    return [by_lower[candidate] for candidate in close if alike[candidate] > max(alike.values()) - 0.1]


def member_named(
    kinds: type[_Kind], what: str, text: str, *, otherwise: str | None = None, error: type[OdfError] = InvalidValue
) -> _Kind:
    """Return the member of an enumeration that a user has named, in any case.

    Args:
        kinds: the enumeration.
        what: a noun for a member, for the message.
        text: the name that the user has given.
        otherwise: the hint if no name is close; by default it lists all names.
        error: class of the error for an unknown name.
    """
    words = [kind.value for kind in kinds]
    if text.lower() not in words:
        hint = did_you_mean(text, words, otherwise=otherwise or f"One of: {', '.join(words)}.")
        raise error(f"There is no {what} {text!r}", hint=hint)
    return kinds(text.lower())
