"""`/platform/tokens`: access tokens of the workspace."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Request, Response
from pydantic import BaseModel, Field

from odfpy.data.timestamp import Timestamp
from odfpy.serving.callers.tokens import AccessToken, Scope, Tokens
from odfpy.serving.rest.administration.admin import AdministrationRoute, AnAdmin
from odfpy.serving.rest.administration.forms import PAGED, APage, IsText, Lifetime, Name, lifetime, like, refusals
from odfpy.serving.sharing.audited import note

router = APIRouter(prefix="/platform/tokens", tags=["administration"], route_class=AdministrationRoute)

_TOKEN = {"name": "ci", "scope": "write", "createdAt": "2026-01-01T00:00:00Z", "expiresAt": None, "isGood": True}


class NewAccessTokenModel(BaseModel):
    """A new access token."""

    model_config = like({"name": "ci", "scope": "write", "expires": "90d"})

    name: Annotated[Name, Field(description="Name of the token; also appears in logs.")]
    scope: Scope = Scope.READ
    expires: Annotated[Lifetime | None, Field(description="How long it is valid; unlimited if absent.")] = None


class AccessTokenModel(BaseModel):
    """An access token, without its secret."""

    model_config = like(_TOKEN)

    name: str
    scope: Scope
    createdAt: str  # noqa: N815
    expiresAt: str | None  # noqa: N815
    isGood: Annotated[bool, Field(description="Whether it is still valid.")]  # noqa: N815


class MadeTokenModel(AccessTokenModel):
    """A new access token. Its text is returned only once."""

    model_config = like({**_TOKEN, "accessToken": "odf_x3b..."})

    accessToken: Annotated[str, Field(repr=False)]  # noqa: N815


@router.get("", responses={**PAGED, **refusals()})
def access_tokens(response: Response, admin: AnAdmin, page: APage) -> list[AccessTokenModel]:
    """List the access tokens of the workspace, by name, including expired ones."""
    listed = page.of(response, Tokens(admin.workspace.odf).list(), lambda token: (token.name, token.scope.value))
    return [_model(token) for token in listed]


@router.post("", responses=refusals(400, 409))
def new_access_token(request: Request, admin: AnAdmin, body: NewAccessTokenModel) -> MadeTokenModel:
    """Create an access token. Its text is returned only once."""
    note(request.scope, path=body.name)
    if body.scope > Scope.READ:
        admin.require_scope(f"A token with the scope {body.scope.value}")
    tokens = Tokens(admin.workspace.odf)
    text = tokens.new(body.name, body.scope, lifetime(body.expires))
    token = tokens.find(text)
    assert token is not None  # noqa: S101 - it was just made
    return MadeTokenModel(**_model(token).model_dump(), accessToken=text)


@router.delete("/{name}", responses=refusals(404))
def revoke_access_token(
    request: Request,
    admin: AnAdmin,
    name: Annotated[str, Path(max_length=255, description="Name of the token."), IsText],
) -> AccessTokenModel:
    """Revoke a token, from the next request on."""
    note(request.scope, path=name)
    return _model(Tokens(admin.workspace.odf).revoke(name))


def _model(token: AccessToken) -> AccessTokenModel:
    return AccessTokenModel(
        name=token.name,
        scope=token.scope,
        createdAt=str(token.created_at),
        expiresAt=str(token.expires_at) if token.expires_at else None,
        isGood=not token.is_over(Timestamp.now()),
    )
