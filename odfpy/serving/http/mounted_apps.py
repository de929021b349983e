"""Mounted apps of a server: applications of other packages next to its API, with their own lifetime.

A mounted app is subject to the server's limits on connections and bodies, its log and its metrics. It authenticates
callers itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Protocol, TypeAlias

from fastapi import FastAPI
from starlette.routing import Route
from starlette.types import Receive, Scope, Send


class MountedApp(Protocol):
    """An ASGI application at a path of the server, including all paths below."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""

    def running(self) -> AbstractAsyncContextManager[None]:
        """Run for the lifetime of the server."""


MountedAppFactory: TypeAlias = Callable[[FastAPI], MountedApp]
"""Creates an app, given the application that it is mounted in; its state is complete by then."""


def mount_apps(app: FastAPI, mounted_apps: Mapping[str, MountedAppFactory]) -> list[MountedApp]:
    """Mount apps; their paths take precedence over datasets of the same name.

    Args:
        app: the application of the server.
        mounted_apps: factories of the apps, by path.
    """
    mounted = []
    for path, make in mounted_apps.items():
        endpoint = _Endpoint(make(app))
        app.router.routes.append(Route(path, endpoint, include_in_schema=False))
        app.router.routes.append(Route(f"{path}/{{rest:path}}", endpoint, include_in_schema=False))
        mounted.append(endpoint.mounted)
    return mounted


class _Endpoint:
    """A mounted app as an endpoint object, so that the route passes ASGI calls on unchanged."""

    def __init__(self, mounted: MountedApp) -> None:
        self.mounted = mounted

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.mounted(scope, receive, send)
