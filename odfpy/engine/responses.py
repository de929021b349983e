"""Our errors as responses of an engine, and back."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable
from typing import TypeVar

from odfpy.engine.contract import TransformResponseInternalError, TransformResponseInvalidQuery
from odfpy.errors import (
    EngineError,
    InvalidQuery,
    NondeterministicQuery,
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


def answered(
    work: Callable[[], Response],
) -> Response | TransformResponseInvalidQuery | TransformResponseInternalError:
    """The result of some work of an engine, or the response that says why there is none.

    What is wrong with a query is the user's mistake; everything else is the engine's, or the disk's.
    """
    try:
        return work()
    except OdfError as error:
        return _invalid_query(error) or TransformResponseInternalError(error.message, traceback.format_exc())
    except OSError as error:
        if error.errno is None:
            raise
        message = f"The engine cannot write or read its files: {os.strerror(error.errno)}"
        return TransformResponseInternalError(message, traceback.format_exc())


def as_error(response: TransformResponseInvalidQuery | TransformResponseInternalError) -> EngineError:
    """The error that a response stands for."""
    if isinstance(response, TransformResponseInternalError):
        return EngineError(response.message)
    return _ERRORS.get(response.fault, InvalidQuery)(response.message, hint=response.hint)


def _invalid_query(error: OdfError) -> TransformResponseInvalidQuery | None:
    for fault, subclass in _ERRORS.items():
        if isinstance(error, subclass):
            return TransformResponseInvalidQuery(error.message, fault, error.hint)
    if isinstance(error, UsageError):  # the transform itself makes no sense: no steps, for example
        return TransformResponseInvalidQuery(error.message, "invalid", error.hint)
    return None
