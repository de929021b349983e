"""Endpoints for browser sessions: signing in with a token or a password, and signing out."""

from __future__ import annotations

import json
from typing import Annotated

from fastapi import APIRouter, HTTPException, Request, Response
from pydantic import BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool

from odfpy.serving.callers.access import AnyCaller, Caller, find_caller, registry_of, unauthorized_error
from odfpy.serving.callers.sessions import CSRF_HEADER, begin_session, csrf_token, end_session, session_token
from odfpy.serving.rest.login import PASSWORD, WRONG_LOGIN, LoginModel, is_admin, login
from odfpy.serving.rest.models import answers

router = APIRouter(prefix="/platform", tags=["server"])

_MAX_LENGTH = 1000


class SignInModel(BaseModel):
    """An access token, or name and password."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"accessToken": "odf_..."}, {"login": "ann", "password": "..."}]},
    )

    accessToken: Annotated[str | None, Field(max_length=_MAX_LENGTH, repr=False)] = None  # noqa: N815
    login: Annotated[str | None, Field(max_length=_MAX_LENGTH)] = None
    password: Annotated[str | None, Field(max_length=_MAX_LENGTH, repr=False)] = None


class SessionModel(BaseModel):
    """The session of a browser; without a name, nobody is signed in."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "name": "ann",
                    "scope": "read",
                    "isAdmin": False,
                    "expiresAt": "2027-01-01T00:00:00Z",
                    "csrfToken": "8f0c...",
                }
            ]
        }
    )

    name: str | None = None
    scope: str | None = None
    isAdmin: bool = False  # noqa: N815
    expiresAt: str | None = None  # noqa: N815
    csrfToken: Annotated[  # noqa: N815
        str | None, Field(description=f"Value of the header {CSRF_HEADER} of requests that change something.")
    ] = None


@router.get("/session", responses=answers(401))
def session(request: Request, response: Response, caller: AnyCaller) -> SessionModel:
    """Return the user of the session, and the token that changes need."""
    response.headers["Cache-Control"] = "no-store"
    return _described(request, caller, session_token(request))


@router.post("/session", responses=answers(400, 401, 429))
async def sign_in(request: Request, response: Response, body: SignInModel) -> SessionModel:
    """Start a session: the answer sets a cookie that no script can read and no other site can send."""
    if body.accessToken is not None and body.login is None and body.password is None:
        text = body.accessToken.strip()
    elif body.accessToken is None and body.login is not None and body.password is not None:
        credentials = json.dumps({"login": body.login, "password": body.password})
        asked = LoginModel(loginMethod=PASSWORD, loginCredentialsJson=credentials)
        text = (await login(request, response, asked)).accessToken
    else:
        raise HTTPException(400, "Send either accessToken, or login and password")
    caller = await run_in_threadpool(find_caller, text, registry_of(request).storages)
    if caller is None or caller.token is None:
        raise unauthorized_error("Unknown or expired access token" if body.login is None else WRONG_LOGIN)
    begin_session(request, response, text, is_secure=_is_secure(request))
    response.headers["Cache-Control"] = "no-store"
    request.scope.setdefault("state", {})["token_name"] = caller.token.name
    return _described(request, caller, text)


@router.delete("/session", status_code=204, response_class=Response)
def sign_out(request: Request) -> Response:
    """End the session: the browser deletes the cookie. The token in it stays valid until it expires or is revoked."""
    response = Response(status_code=204)
    end_session(request, response)
    return response


def _described(request: Request, caller: Caller, text: str | None) -> SessionModel:
    if caller.token is None:
        return SessionModel()
    return SessionModel(
        name=caller.token.name,
        scope=caller.token.scope.value,
        isAdmin=is_admin(caller, registry_of(request).storages[0]),
        expiresAt=str(caller.token.expires_at) if caller.token.expires_at else None,
        csrfToken=csrf_token(text) if text is not None else None,
    )


def _is_secure(request: Request) -> bool:
    base = request.app.state.settings.base_url
    return (base or str(request.url)).startswith("https:")
