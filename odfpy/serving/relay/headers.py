"""Headers of calls to a relay: `odf-allow-incomplete: true` permits answers without the rows of some relays.

The certificate of the connection identifies the caller. Tools that log in nevertheless are let in, and their user names
and passwords are ignored.
"""

from __future__ import annotations

from typing import Any, Final

import pyarrow.flight as fl

from odfpy.serving.flight.errors import FlightSqlError

ALLOW_INCOMPLETE: Final = "odf-allow-incomplete"
MIDDLEWARE: Final = "headers"

_WORDS: Final = {"": False, "false": False, "true": True}
_LOGIN: Final = {"authorization": "Bearer certificate"}
"""Tools need credentials for their further calls."""


class CallHeaders(fl.ServerMiddleware):  # type: ignore[misc]
    """The headers of a call."""

    def __init__(self, word: str, *, is_login: bool) -> None:
        """
        Args:
            word: value of the header `odf-allow-incomplete`.
            is_login: whether the call is a handshake.
        """
        self._word = word
        self._is_login = is_login

    @property
    def allows_incomplete(self) -> bool:
        """Return whether the rows of some relays may be missing.

        Raises:
            FlightSqlError: the header is neither `true` nor `false`.
        """
        value = _WORDS.get(self._word.strip().lower())
        if value is None:
            raise FlightSqlError(
                f"The header {ALLOW_INCOMPLETE} is {self._word[:50]!r}", hint="It is `true` or `false`."
            )
        return value

    def sending_headers(self) -> dict[str, str]:
        """Return the headers that a handshake expects."""
        return _LOGIN if self._is_login else {}


class CallHeadersFactory(fl.ServerMiddlewareFactory):  # type: ignore[misc]
    """Middleware that reads the headers of every call."""

    def start_call(self, info: Any, headers: dict[str, list[Any]]) -> CallHeaders:
        """Read the relevant headers."""
        values = headers.get(ALLOW_INCOMPLETE) or [""]
        word = values[0].decode("utf-8", "replace") if isinstance(values[0], bytes) else values[0]
        return CallHeaders(word, is_login=info.method == fl.FlightMethod.HANDSHAKE)


def allows_incomplete(context: Any) -> bool:
    """Return whether the headers of a call permit incomplete answers.

    Args:
        context: context of the call.

    Raises:
        FlightSqlError: the header has an invalid value.
    """
    headers: CallHeaders = context.get_middleware(MIDDLEWARE)
    return headers.allows_incomplete
