"""Conversion of errors to responses of an engine, and back."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable
from typing import TypeVar

from odfpy.codec.errors import as_value, error_of
from odfpy.engine.contract import TransformResponseInternalError, TransformResponseInvalidQuery
from odfpy.errors import (
    EngineError,
    IntegrityError,
    InvalidQuery,
    NondeterministicQuery,
    ObjectNotFound,
    OdfError,
    QueryTooDeep,
    QueryTooLong,
    ResultTooLarge,
    UnsupportedQuery,
    UsageError,
)

Response = TypeVar("Response")

_ERRORS: dict[str, type[EngineError]] = {
    "too-long": QueryTooLong,  # subclasses come first
    "too-deep": QueryTooDeep,
    "invalid": InvalidQuery,
    "unsupported": UnsupportedQuery,
    "nondeterministic": NondeterministicQuery,
    "too-large": ResultTooLarge,
}
_OF_FILES: dict[str, type[OdfError]] = {"damaged": IntegrityError, "missing": ObjectNotFound}


def respond(
    work: Callable[[], Response],
) -> Response | TransformResponseInvalidQuery | TransformResponseInternalError:
    """Return the result of an engine's work, or the response that explains its failure.

    Faults of a query are the user's mistakes; all others are faults of the engine or the disk.
    """
    try:
        return work()
    except OdfError as error:
        return _invalid_query(error) or TransformResponseInternalError(
            error.message, traceback.format_exc(), as_value(error)
        )
    except OSError as error:
        if error.errno is None:
            raise
        message = f"The engine cannot write or read its files: {os.strerror(error.errno)}"
        return TransformResponseInternalError(message, traceback.format_exc())


def with_files(
    work: Callable[[], Response],
) -> Response | TransformResponseInvalidQuery:
    """Return the result of work that reads files for its caller, or a response that names the file at fault.

    Other errors are raised as by the work.
    """
    try:
        return work()
    except (IntegrityError, ObjectNotFound) as error:
        fault = next(name for name, kind in _OF_FILES.items() if isinstance(error, kind))
        return TransformResponseInvalidQuery(error.message, fault, error.hint, as_value(error))


def as_error(response: TransformResponseInvalidQuery | TransformResponseInternalError) -> OdfError:
    """Return the error of a response: the original error, or one that is made from the engine's message."""
    if response.error is not None:
        return error_of(response.error)
    if isinstance(response, TransformResponseInternalError):
        return EngineError(response.message)
    kind = _OF_FILES.get(response.fault) or _ERRORS.get(response.fault, InvalidQuery)
    return kind(response.message, hint=response.hint)


def _invalid_query(error: OdfError) -> TransformResponseInvalidQuery | None:
    for fault, subclass in _ERRORS.items():
        if isinstance(error, subclass):
            return TransformResponseInvalidQuery(error.message, fault, error.hint, as_value(error))
    if isinstance(error, UsageError):  # the transform itself is invalid: no steps, for example
        return TransformResponseInvalidQuery(error.message, "invalid", error.hint, as_value(error))
    return None
