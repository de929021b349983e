"""Sessions: each call is authenticated by its header `authorization`.

    nothing                             anonymous: public datasets
    Bearer <token of `odf token new`>   the owner of that token
    Basic <user>:<that token>           the same; the user name is ignored
    Basic anonymous:                    anonymous
    Bearer <session>                    the caller who began that session

A handshake begins a session, and returns its name. It holds options and prepared statements, and ends when it is closed
or unused for a day. Revoking a token ends the sessions that were begun with it.
"""

from __future__ import annotations

import base64
import binascii
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow.flight as fl

from odfpy.coordinator.storage.storage import Storage
from odfpy.query.dialects import DIALECTS
from odfpy.serving.callers.access import Caller, find_caller
from odfpy.serving.flight.errors import Unauthenticated, as_client_errors
from odfpy.serving.flight.names import CATALOG, DB_SCHEMA

ANONYMOUS: Final = "anonymous"
DIALECT_HEADER: Final = "odf-dialect"
MIDDLEWARE: Final = "session"
_PREFIX: Final = "odfs_"
_IDLE_SECONDS: Final = 86400.0
_MAX_SESSIONS: Final = 20_000
_INVALID_NAME, _INVALID_VALUE, _CANNOT = 1, 2, 3
_HINT: Final = "`odf token new` creates tokens: send one as bearer token, or as password."


@dataclass
class FlightSession:
    """The state of a client between two calls.

    Attributes:
        caller: the authenticated caller.
        name: name of the session; empty without a handshake, in which case nothing is stored.
        options: its options.
        used: time of the latest call, by the monotonic clock.
    """

    caller: Caller
    name: str = ""
    options: dict[str, str] = field(default_factory=dict)
    used: float = 0.0


_OPTIONS: Final = {"dialect": tuple(sorted(DIALECTS)), "catalog": (CATALOG,), "schema": (DB_SCHEMA,)}
"""Valid values of session options; tools set the only existing catalog and schema."""


def set_option(session: FlightSession, name: str, value: str) -> int:
    """Set an option of a session, empty for the default; returns the number of an error, or 0.

    Args:
        session: the session.
        name: name of the option.
        value: its value, as text.
    """
    if name not in _OPTIONS:
        return _INVALID_NAME
    if value not in ("", *_OPTIONS[name]):
        return _INVALID_VALUE
    if name == "dialect" and not session.name:
        return _CANNOT
    session.options[name] = value
    return 0


class Sessions:
    """All sessions; thread-safe."""

    def __init__(
        self,
        storages: Sequence[Storage],
        on_end: Callable[[Collection[str]], object] = lambda _: None,
        *,
        clock: Callable[[], float] = time.monotonic,
        most: int = _MAX_SESSIONS,
    ) -> None:
        """
        Args:
            storages: workspaces whose tokens are valid.
            on_end: called with the names of ended sessions, whatever the reason.
            clock: monotonic clock, in seconds.
            most: maximum number of sessions; the least recently used one is evicted.
        """
        self._storages = storages
        self._on_end = on_end
        self._clock = clock
        self._most = most
        self._lock = threading.Lock()
        self._known: OrderedDict[str, FlightSession] = OrderedDict()

    def begin(self, caller: Caller) -> FlightSession:
        """Begin a new session."""
        session = FlightSession(caller, _PREFIX + secrets.token_urlsafe(32), used=self._clock())
        with self._lock:
            self._known[session.name] = session
        self._forget_old()
        return session

    def end(self, session: FlightSession) -> None:
        """End a session, if it is known."""
        with self._lock:
            was_there = self._known.pop(session.name, None) is not None
        if was_there:
            self._on_end([session.name])

    def _forget_old(self) -> None:
        """Remove sessions that were not used for long; these come first."""
        ended = []
        with self._lock:
            while self._known and (len(self._known) > self._most or self._is_over(next(iter(self._known.values())))):
                ended.append(self._known.popitem(last=False)[0])
        if ended:
            self._on_end(ended)

    def _is_over(self, session: FlightSession) -> bool:
        return self._clock() - session.used > _IDLE_SECONDS

    def who(self, header: str) -> FlightSession:
        """Return the session for a header.

        Raises:
            Unauthenticated: the credentials are invalid, or no longer valid.
        """
        kind, _, text = header.strip().partition(" ")
        match kind.lower():
            case "":
                return FlightSession(Caller())
            case "bearer":
                return self._session(text.strip()) if text.strip().startswith(_PREFIX) else self._of_token(text.strip())
            case "basic":
                user, password = _user_and_password(text.strip())
                return FlightSession(Caller()) if user == ANONYMOUS and not password else self._of_token(password)
        raise Unauthenticated("The header authorization is neither of the kind Bearer nor Basic", hint=_HINT)

    def _session(self, name: str) -> FlightSession:
        self._forget_old()
        with self._lock:
            session = self._known.get(name)
            if session is None:
                raise Unauthenticated("This session has ended", hint="Connect again.")
            session.used = self._clock()
            self._known.move_to_end(name)
        if session.caller.token is not None:
            now = session.caller.renewed()
            if now is None:
                self.end(session)
                raise Unauthenticated("The access token of this session is no longer valid", hint=_HINT)
            session.caller = now
        return session

    def _of_token(self, text: str) -> FlightSession:
        caller = find_caller(text, self._storages)
        if caller is None:
            raise Unauthenticated("Unknown or expired access token", hint=_HINT)
        return FlightSession(caller)


class Middleware(fl.ServerMiddleware):  # type: ignore[misc]
    """Middleware that holds the session of a call.

    Attributes:
        dialect: SQL dialect that the caller has chosen, if any.
    """

    def __init__(
        self, outcome: FlightSession | fl.FlightUnauthenticatedError, dialect: str | None, *, is_new: bool
    ) -> None:
        self._found = outcome
        self._is_new = is_new
        self.dialect = dialect or (outcome.options.get("dialect") if isinstance(outcome, FlightSession) else None)

    @property
    def session(self) -> FlightSession:
        """Return the session of the caller.

        Raises:
            FlightUnauthenticatedError: the token is not valid.
        """
        if not isinstance(self._found, FlightSession):
            raise self._found
        return self._found

    @property
    def is_known(self) -> bool:
        """True if the caller is authenticated or anonymous."""
        return isinstance(self._found, FlightSession)

    def sending_headers(self) -> dict[str, str]:
        """Return the name of the session in the headers of a handshake."""
        return {"authorization": f"Bearer {self.session.name}"} if self._is_new else {}


class MiddlewareFactory(fl.ServerMiddlewareFactory):  # type: ignore[misc]
    """Middleware that authenticates every call before its handler runs."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    def start_call(self, info: Any, headers: dict[str, list[str]]) -> Middleware:
        """Authenticate the caller, except for actions: with an expired token one can still close statements.

        Raises:
            FlightUnauthenticatedError: the token is not valid.
        """
        try:
            with as_client_errors():
                session = self._sessions.who(_first(headers, "authorization") or "")
        except fl.FlightUnauthenticatedError as error:
            if info.method != fl.FlightMethod.DO_ACTION:
                raise
            return Middleware(error, None, is_new=False)
        is_new = info.method == fl.FlightMethod.HANDSHAKE and not session.name
        session = self._sessions.begin(session.caller) if is_new else session
        return Middleware(session, _first(headers, DIALECT_HEADER), is_new=is_new)


def _first(headers: dict[str, list[Any]], name: str) -> str | None:
    values = headers.get(name)
    value = values[0] if values else None
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def _user_and_password(text: str) -> tuple[str, str]:
    """Parse a Basic header; some clients omit the padding of base64."""
    try:
        decoded = base64.b64decode(text.rstrip("=") + "=" * (-len(text.rstrip("=")) % 4), validate=True).decode()
    except (binascii.Error, ValueError) as error:
        raise Unauthenticated("The header authorization is not base64", hint=_HINT) from error
    user, _, password = decoded.partition(":")
    return user, password
