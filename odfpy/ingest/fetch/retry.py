"""Retries after an interruption."""

from __future__ import annotations

from odfpy.errors import FetchError, FetchInterrupted
from odfpy.ingest.fetch.context import FetchContext

MAX_WAIT = 120.0
"""Maximum seconds to wait for a source that states when it will be ready."""

PASSING = (408, 425, 429, 500, 502, 503, 504)
"""Statuses of web servers after which a retry may succeed."""


def wait_or_give_up(error: FetchInterrupted, failures: int, shown: str, context: FetchContext) -> None:
    """Wait before a retry: as long as the source requests, else twice as long after each failure.

    Args:
        error: error of the last attempt.
        failures: number of consecutive failures.
        shown: name of the source in messages.
        context: context of the fetch, with the maximum number of retries.

    Raises:
        FetchError: all attempts failed, or the source requests too long a wait.
    """
    if failures > context.retries:
        times = "" if failures == 1 else f" (tried {failures} times)"
        given_up = FetchInterrupted(f"{error.message}{times}", hint=error.hint or "Try again later.")
        raise given_up from error.__cause__
    if error.retry_after is None:
        context.pause(float(2 ** (failures - 1)))
    elif error.retry_after <= MAX_WAIT:
        context.pause(error.retry_after)
    else:
        hint = f"{shown} requests a retry after {error.retry_after:.0f} seconds."
        raise FetchError(error.message, hint=hint) from error
