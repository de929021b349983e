"""Callers over Delta Sharing: a recipient or user with their own token, or the holder of an access token."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from fastapi import Depends
from starlette.concurrency import run_in_threadpool
from starlette.requests import HTTPConnection

from odfpy.serving.callers.access import bearer_of, find_caller
from odfpy.serving.callers.tokens import Scope
from odfpy.serving.sharing.errors import SharingError
from odfpy.serving.sharing.state import SharingState, state_of
from odfpy.sharing.decisions import CallerAccess


@dataclass(frozen=True, slots=True)
class SharingCaller:
    """The authenticated sender of a request.

    Attributes:
        name: name in logs.
        reach: permissions on shared tables.
        principal_id: number of the principal, None for an access token of the workspace.
        token: the text of the token.
    """

    name: str
    reach: CallerAccess
    principal_id: int | None = None
    token: str = field(default="", repr=False)


async def caller(connection: HTTPConnection) -> SharingCaller:
    """Return the caller of a request.

    Raises:
        SharingError: 401, the token is missing, unknown or expired; 429, there were too many failed attempts.
    """
    text = bearer_of(connection.headers)
    if text is None:
        raise SharingError(401, "This needs the bearer token of a profile")
    state, address = state_of(connection), connection.client.host if connection.client else ""
    seconds = state.guesses.wait(address, text)
    if seconds:
        raise SharingError(429, "Too many wrong tokens came from your address; wait a minute", retry_after=seconds)
    authenticated = await run_in_threadpool(find, state, text)
    if authenticated is None:
        state.guesses.wrong(address)
        raise SharingError(401, "Unknown or expired token: ask the publisher for a new profile")
    state.guesses.right(address, text)
    connection.scope.setdefault("state", {})["token_name"] = authenticated.name
    return authenticated


def find(state: SharingState, text: str) -> SharingCaller | None:
    """Return the owner of a token, None if it is unknown. A workspace token reads all datasets, so all shares."""
    principal = state.sharing.principals.find(text)
    if principal is not None:
        return SharingCaller(principal.name, state.sharing.reach(principal), principal.id, text)
    known = find_caller(text, state.storages[:1])
    if known is not None and known.storage is not None and known.may(Scope.READ, known.storage):
        return SharingCaller(known.token.name if known.token else "", CallerAccess(None), None, text)
    return None


AnyCaller = Annotated[SharingCaller, Depends(caller)]
