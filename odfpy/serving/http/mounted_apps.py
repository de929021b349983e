"""Guests of a server: applications beside its API that other packages bring, with a lifetime of their own.

A guest has the limits of the server on connections and bodies, its log and its metrics. It asks by itself who calls.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Protocol, TypeAlias

from fastapi import FastAPI
from starlette.routing import Route
from starlette.types import Receive, Scope, Send


class MountedApp(Protocol):
    """An application at a path of the server, and at all paths below it."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""

    def running(self) -> AbstractAsyncContextManager[None]:
        """Live as long as the server."""


MakeGuest: TypeAlias = Callable[[FastAPI], MountedApp]
"""Makes a guest of the application that it is a guest of, whose state is complete by then."""


def add_guests(app: FastAPI, guests: Mapping[str, MakeGuest]) -> list[MountedApp]:
    """Put guests where they are to be; their paths are theirs alone, whatever datasets are called.

    Args:
        app: the application of the server.
        guests: what makes them, by path.
    """
    found = []
    for path, make in guests.items():
        guest = _Endpoint(make(app))
        app.router.routes.append(Route(path, guest, include_in_schema=False))
        app.router.routes.append(Route(f"{path}/{{rest:path}}", guest, include_in_schema=False))
        found.append(guest.guest)
    return found


class _Endpoint:
    """A guest as an endpoint: an object, so that the route hands requests on as they come."""

    def __init__(self, guest: MountedApp) -> None:
        self.guest = guest

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.guest(scope, receive, send)
