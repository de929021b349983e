"""Profile files, activation links and tokens of recipients and users. A secret is only returned once."""

from __future__ import annotations

import json
from typing import Annotated, Any

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field

from odfpy.data.timestamp import Timestamp
from odfpy.data.token_secret import end_after
from odfpy.errors import UsageError
from odfpy.serving.rest.administration.admin import Admin, AdministrationRoute, AnAdmin
from odfpy.serving.rest.administration.forms import IsText, Lifetime, Number, lifetime, like, refusals
from odfpy.serving.rest.administration.principals import KIND, APrincipal
from odfpy.serving.settings import checked_url
from odfpy.serving.sharing.app import PREFIX
from odfpy.serving.sharing.state import base_of
from odfpy.settings.sections import SharingSection
from odfpy.sharing.model import Principal, PrincipalKind
from odfpy.sharing.profile import check_version, profile

router = APIRouter(prefix="/platform", tags=["administration"], route_class=AdministrationRoute)

_URL = "https://data.example.com"
_PROFILE = {"shareCredentialsVersion": 1, "endpoint": f"{_URL}/delta-sharing/", "bearerToken": "odf_x3b..."}

Url = Annotated[
    str | None,
    Field(max_length=2000, description="URL of the server for recipients; the setting sharing.url by default."),
    IsText,
]
Expires = Annotated[Lifetime | None, Field(description="How long the token is valid; unlimited if absent.")]


class ProfileRequestModel(BaseModel):
    """A request for a profile file."""

    model_config = like({"expires": "90d", "overlap": "7d"})

    expires: Expires = None
    overlap: Annotated[
        Lifetime | None, Field(description="How long earlier tokens stay valid; unchanged if absent.")
    ] = None
    url: Url = None
    version: Annotated[int, Field(ge=1, le=100, description="1, which all clients support, or 2.")] = 1


class ProfileModel(BaseModel):
    """A profile file with a new token. It is returned only once."""

    model_config = like({"profile": _PROFILE, "number": 8, "expiresAt": None})

    profile: Annotated[dict[str, Any], Field(description="Content of the file.", repr=False)]
    number: Annotated[int, Field(description="Number of the token.")]
    expiresAt: str | None  # noqa: N815


class LinkRequestModel(BaseModel):
    """A request for an activation link."""

    model_config = like({"goodFor": "3d", "expires": "90d"})

    goodFor: Annotated[Lifetime, Field(description="How long the link is valid.")] = "3d"  # noqa: N815
    expires: Expires = None
    url: Url = None


class LinkModel(BaseModel):
    """A one-time link to download a profile file. It is returned only once."""

    model_config = like({"url": f"{_URL}/delta-sharing/activate/Zx...", "expiresAt": "2026-01-04T00:00:00Z"})

    url: Annotated[str, Field(repr=False)]
    expiresAt: str  # noqa: N815


class RevokedModel(BaseModel):
    """The number of revoked tokens."""

    model_config = like({"revoked": 2})

    revoked: int


@router.post(f"/{KIND}/{{name}}/profile", responses=refusals(400, 404))
def new_profile(request: Request, admin: AnAdmin, principal: APrincipal, body: ProfileRequestModel) -> ProfileModel:
    """Create a profile file with a new token, which gives access to all that is granted. It is returned only once."""
    endpoint, version = _endpoint(request, admin, body.url), check_version(body.version)
    principals, overlap = admin.sharing.principals, lifetime(body.overlap)
    text, token = principals.new_token(principal.name, lifetime(body.expires))
    data = profile(endpoint, text, token.expires_at, version=version)
    if overlap is not None:
        principals.end_older(principal.name, token.id, overlap)
    return ProfileModel(
        profile=json.loads(data), number=token.id, expiresAt=str(token.expires_at) if token.expires_at else None
    )


@router.post(f"/{KIND}/{{name}}/link", responses=refusals(400, 404))
def new_link(request: Request, admin: AnAdmin, principal: APrincipal, body: LinkRequestModel) -> LinkModel:
    """Create a one-time link to download a profile file. It is returned only once."""
    endpoint = _endpoint(request, admin, body.url)
    good_for = lifetime(body.goodFor)
    assert good_for is not None  # noqa: S101 - the model has one
    _require_tokens(principal)
    end = end_after(Timestamp.now(), good_for)
    secret = admin.sharing.principals.new_activation(principal.name, good_for, lifetime(body.expires))
    return LinkModel(url=f"{endpoint}/activate/{secret}", expiresAt=str(end))


@router.delete(f"/{KIND}/{{name}}/tokens", responses=refusals(404))
def revoke_all(admin: AnAdmin, principal: APrincipal) -> RevokedModel:
    """Revoke all tokens of a principal, from the next request on; URLs of their files become invalid, too."""
    return RevokedModel(revoked=admin.sharing.principals.revoke(principal.name))


@router.delete(f"/{KIND}/{{name}}/tokens/{{number}}", responses=refusals(404))
def revoke(admin: AnAdmin, principal: APrincipal, number: Number) -> RevokedModel:
    """Revoke one token of a principal, from the next request on."""
    return RevokedModel(revoked=admin.sharing.principals.revoke(principal.name, number))


def _require_tokens(principal: Principal) -> None:
    if principal.kind is PrincipalKind.GROUP:
        raise UsageError(f"{principal.name} is a group, and groups have no tokens", hint="Its members have.")


def _endpoint(request: Request, admin: Admin, url: str | None) -> str:
    """Return the URL for a profile file: from the request, from the setting, or the URL of this request."""
    known = url or admin.workspace.config.section(SharingSection).url or base_of(request)
    checked = checked_url(known)
    return checked if checked.endswith(PREFIX) else f"{checked}{PREFIX}"
