"""Mounted apps of a server: applications beside its API that other packages bring, with a lifetime of their own.

A mounted app has the limits of the server on connections and bodies, its log and its metrics. It asks by itself who
calls.
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


MountedAppFactory: TypeAlias = Callable[[FastAPI], MountedApp]
"""Makes an app, given the application that it is mounted in, whose state is complete by then."""


def mount_apps(app: FastAPI, mounted_apps: Mapping[str, MountedAppFactory]) -> list[MountedApp]:
    """Mount apps where they are to be; their paths are theirs alone, whatever datasets are called.

    Args:
        app: the application of the server.
        mounted_apps: what makes them, by path.
    """
    found = []
    for path, make in mounted_apps.items():
        endpoint = _Endpoint(make(app))
        app.router.routes.append(Route(path, endpoint, include_in_schema=False))
        app.router.routes.append(Route(f"{path}/{{rest:path}}", endpoint, include_in_schema=False))
        found.append(endpoint.mounted)
    return found


class _Endpoint:
    """A mounted app as an endpoint: an object, so that the route hands requests on as they come."""

    def __init__(self, mounted: MountedApp) -> None:
        self.mounted = mounted

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.mounted(scope, receive, send)
