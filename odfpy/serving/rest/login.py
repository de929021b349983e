"""Endpoints for tokens of users: for user name and password, or from an admin.

Paths and field names follow the reference implementation (`kamu login password`); the expiry is an additional field.
"""

from __future__ import annotations

import json
from asyncio import Semaphore
from dataclasses import dataclass, field
from typing import Annotated, Any, Final

from fastapi import APIRouter, HTTPException, Path, Request, Response
from pydantic import BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool

from odfpy.coordinator.storage.storage import Storage
from odfpy.data.duration import DURATION_FORM, Duration
from odfpy.errors import InvalidValue, NotFound, UsageError
from odfpy.serving.callers.access import AnyCaller, Caller, registry_of, unauthorized_error
from odfpy.serving.callers.principals import sharing_of
from odfpy.serving.callers.tokens import Scope
from odfpy.serving.rest.datasets import TokenInfo, token
from odfpy.serving.rest.models import RefusalModel, answers
from odfpy.serving.sharing.failed_attempts import FailedAttempts
from odfpy.sharing.names import folded

router = APIRouter(prefix="/platform", tags=["server"])

PASSWORD: Final = "password"  # noqa: S105 - the name of a method
WRONG_LOGIN: Final = "Wrong name or password"
_NOBODY: Final = "There is no user or recipient of that name"
_OK: Final = 200
_MAX_NAME_LENGTH: Final = 255
_AT_ONCE: Final = 2
"""Maximum passwords verified concurrently: each takes 64 MiB, and a core."""

_REFUSED: Final[dict[int | str, dict[str, Any]]] = {
    **answers(400),
    401: {"description": "The name or the password is wrong.", "model": RefusalModel},
    429: {"description": "Too many wrong passwords from this address, or for this name.", "model": RefusalModel},
}


@dataclass(frozen=True)
class Logins:
    """The state that all logins have in common.

    Attributes:
        guesses: counts failed tokens and passwords.
        lifetime: lifetime of tokens.
        gate: limits concurrent logins.
    """

    guesses: FailedAttempts
    lifetime: Duration
    gate: Semaphore = field(default_factory=lambda: Semaphore(_AT_ONCE))


class LoginModel(BaseModel):
    """A request for a token."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"loginMethod": PASSWORD, "loginCredentialsJson": '{"login": "ann", "password": "..."}'}]
        }
    )

    loginMethod: Annotated[str, Field(max_length=100, description=f"`{PASSWORD}`.")]  # noqa: N815
    loginCredentialsJson: Annotated[  # noqa: N815
        str, Field(max_length=20_000, description="A JSON object with `login` and `password`, as text.", repr=False)
    ]


class TokenModel(BaseModel):
    """A new token."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"accessToken": "odf_x3b...", "expiresAt": "2027-01-01T00:00:00Z"}]}
    )

    accessToken: Annotated[str, Field(repr=False)]  # noqa: N815
    expiresAt: str | None  # noqa: N815


class NewTokenModel(BaseModel):
    """A request for a token of another user."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"expires": "30d"}]})

    expires: Annotated[str, Field(max_length=100, description=f"How long it is valid: {DURATION_FORM[1]}.")]


@router.post("/login", responses=_REFUSED)
async def login(request: Request, response: Response, body: LoginModel) -> TokenModel:
    """Exchange name and password for a token; it expires, and is revoked when the password changes."""
    name, password = _credentials(body)
    logins: Logins = request.app.state.logins
    address = request.client.host if request.client else ""
    whose = f"name {folded(name)[:_MAX_NAME_LENGTH]}"
    shown = f"{folded(name)}/{password}"
    # Failed attempts wait here, too, so that they are counted before the next one is checked.
    async with logins.gate:
        seconds = max(logins.guesses.wait(place, shown) for place in (address, whose))
        if seconds:
            _audit(request, action="login", status=429)
            headers = {"Retry-After": str(int(seconds) + 1)}
            raise HTTPException(429, "Too many wrong passwords; wait a minute", headers)
        logged_in = await run_in_threadpool(_log_in, registry_of(request).storages[0], name, password, logins.lifetime)
    for place in (address, whose):
        if logged_in is None:
            logins.guesses.wrong(place)
        else:
            logins.guesses.right(place, shown)
    if logged_in is None:
        _audit(request, action="login", status=401)  # without the name: users sometimes type passwords there
        raise unauthorized_error(WRONG_LOGIN)
    who, token = logged_in
    _audit(request, who=who, action="login", status=_OK)
    request.scope.setdefault("state", {})["token_name"] = who
    response.headers["Cache-Control"] = "no-store"
    return token


router.get("/token/validate", response_model=TokenInfo, responses=answers(401))(token)


@router.post("/users/{name}/tokens", responses=answers(400, 401, 403, 404))
def new_token(
    request: Request,
    response: Response,
    caller: AnyCaller,
    body: NewTokenModel,
    name: Annotated[str, Path(max_length=255, description="Name of a user or recipient.")],
) -> TokenModel:
    """Create a token for a user or recipient; for admins."""
    storage = registry_of(request).storages[0]
    if caller.token is None:
        raise unauthorized_error("This needs the token of an admin")
    if not is_admin(caller, storage):
        raise HTTPException(403, "Only admins can create tokens for others")
    sharing = sharing_of(storage)
    if sharing is None or not name.isprintable():
        raise HTTPException(404, _NOBODY)
    try:
        text, token = sharing.principals.new_token(name, Duration.parse(body.expires))
    except NotFound as error:
        raise HTTPException(404, _NOBODY) from error
    except (InvalidValue, UsageError) as error:
        raise HTTPException(400, error.message) from error
    _audit(request, who=caller.token.name, action="new token", path=name, status=_OK)
    response.headers["Cache-Control"] = "no-store"
    return TokenModel(accessToken=text, expiresAt=str(token.expires_at))


def is_admin(caller: Caller, storage: Storage) -> bool:
    """Return whether a caller may administer a workspace: by the scope of a token, or as a user who is an admin."""
    if caller.may(Scope.ADMIN, storage):
        return True
    sharing = sharing_of(storage) if caller.granting is storage else None
    user = None if sharing is None else sharing.principals.find(caller.text)
    return user is not None and user.is_admin


def _credentials(body: LoginModel) -> tuple[str, str]:
    if body.loginMethod != PASSWORD:
        raise HTTPException(400, f"The only login method is {PASSWORD}")
    try:
        tree: Any = json.loads(body.loginCredentialsJson)
        name, password = tree["login"], tree["password"]
        if isinstance(name, str) and isinstance(password, str):
            return name, password
    except (ValueError, TypeError, LookupError, RecursionError):
        pass
    raise HTTPException(400, "loginCredentialsJson is not the text of a JSON object with login and password")


def _log_in(storage: Storage, name: str, password: str, lifetime: Duration) -> tuple[str, TokenModel] | None:
    sharing = sharing_of(storage)
    logged_in = None if sharing is None else sharing.passwords.log_in(name, password, lifetime)
    if logged_in is None:
        return None
    user, text, token = logged_in
    return user.name, TokenModel(accessToken=text, expiresAt=str(token.expires_at))


def _audit(request: Request, *, status: int, **what: str) -> None:
    client = request.headers.get("User-Agent")
    address = request.client.host if request.client else None
    is_granted = status == _OK
    request.app.state.sharing.audit.record(
        {**what, "status": status, "granted": is_granted, "address": address, "client": client}
    )
