"""Admins: their authentication, the common behavior of their endpoints, and the audit log of their actions."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Annotated, Any, Final

from fastapi import Depends, HTTPException
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from odfpy.coordinator.workspace import Workspace
from odfpy.errors import AlreadyExists, EngineUnavailable, NotFound, OdfError, UsageError
from odfpy.serving.callers.access import AnyCaller, Caller, unauthorized_error
from odfpy.serving.callers.principals import opened_sharing
from odfpy.serving.callers.tokens import Scope
from odfpy.serving.http.errors import Refused
from odfpy.serving.http.logs import log
from odfpy.serving.rest.login import is_admin
from odfpy.serving.sharing.audited import access_of
from odfpy.serving.sharing.errors import SharingError
from odfpy.sharing.sharing import Sharing
from odfpy.sharing.store.database import ConcurrentChange

_NEEDS: Final = "This needs an admin of the workspace"
_REFUSED: Final = (401, 403)
_INVALID: Final = 422
_BROKEN: Final = 500
_STATUSES: Final[tuple[tuple[type[OdfError], int], ...]] = (
    (NotFound, 404),
    (AlreadyExists, 409),
    (ConcurrentChange, 409),
    (UsageError, 400),
    (EngineUnavailable, 503),
)


@dataclass(frozen=True, slots=True)
class Admin:
    """A caller who may administer the first workspace of a server.

    Attributes:
        name: how logs call them.
        workspace: the workspace.
        has_scope: whether their access token has the scope admin; users who are admins have none.
    """

    name: str
    workspace: Workspace
    has_scope: bool = False

    @property
    def sharing(self) -> Sharing:
        """Return the shares of the workspace.

        Raises:
            SharingDatabaseError: their database cannot be used.
        """
        return opened_sharing(self.workspace.storage)

    def require_scope(self, what: str) -> None:
        """Check that the admin may do what goes beyond reading the datasets of the workspace.

        Args:
            what: the operation, as the subject of a sentence.

        Raises:
            HTTPException: 403, they are an admin by user account, and cannot grant others more than they have.
        """
        if not self.has_scope:
            raise HTTPException(403, f"{what} needs an access token with the scope admin")


def admin(request: Request, caller: AnyCaller) -> Admin:
    """Return the admin who makes the request.

    Raises:
        HTTPException: 401 or 403, they are not an admin.
    """
    workspace: Workspace = request.app.state.workspaces[0]
    return Admin(required_admin(caller, workspace), workspace, caller.may(Scope.ADMIN, workspace.storage))


def required_admin(caller: Caller, workspace: Workspace) -> str:
    """Return the name of an admin.

    Args:
        caller: who makes the request.
        workspace: the workspace to administer.

    Raises:
        HTTPException: 401 or 403, they are not an admin of it.
    """
    if caller.token is None:
        raise unauthorized_error(f"{_NEEDS}: an access token with the scope admin, or of a user who is an admin")
    if not is_admin(caller, workspace.storage):
        raise HTTPException(403, _NEEDS)
    return caller.token.name


AnAdmin = Annotated[Admin, Depends(admin)]


class AdministrationRoute(APIRoute):
    """A route for admins: errors have full details, and all changes and refusals are audited."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler of a request, with audit logging."""
        handle = super().get_route_handler()

        async def handled(request: Request) -> Response:
            status, size = _BROKEN, 0
            try:
                try:
                    response = await handle(request)
                except (OdfError, SharingError) as error:
                    response = _answer(request, error)
                status, size = response.status_code, len(response.body)
            except (HTTPException, Refused) as error:
                status = error.status_code if isinstance(error, HTTPException) else error.status
                raise
            except RequestValidationError:
                status = _INVALID
                raise
            finally:
                if _is_audited(request, status):
                    request.app.state.sharing.audit.record(access_of(request.scope, status, size))
            response.headers.setdefault("Cache-Control", "no-store")
            return response

        return handled


def _is_audited(request: Request, status: int) -> bool:
    """Return whether a request is logged: all except those that only list."""
    is_noted = "audit" in request.scope.get("state", {})
    return is_noted or status in _REFUSED or request.method not in ("GET", "HEAD")


def _answer(request: Request, error: OdfError | SharingError) -> Response:
    if isinstance(error, SharingError):
        return JSONResponse({"detail": error.message, "message": error.message}, error.status)
    status = next((kind_status for kind, kind_status in _STATUSES if isinstance(error, kind)), _BROKEN)
    if status == _BROKEN:
        log("failed", level=logging.ERROR, path=request.scope["path"], code=error.code, problem=error.message)
    message = f"{error.message}\n{error.hint}" if error.hint else error.message
    text = message.encode("utf-8", "replace").decode()
    return JSONResponse({"detail": text, "message": text, "code": error.code}, status)
