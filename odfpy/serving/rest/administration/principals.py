"""`/platform/recipients`, `/platform/users`, `/platform/groups`: the principals that can receive grants.

All three are principals, and most endpoints accept any of them. So the kind is a path parameter, `{kind}`, with exactly
these three values.
"""

from __future__ import annotations

from enum import Enum
from typing import Annotated, Final

from fastapi import APIRouter, Depends, Path, Request, Response
from pydantic import BaseModel, Field, SecretStr
from starlette.convertors import StringConvertor, register_url_convertor

from odfpy.data.timestamp import Timestamp
from odfpy.errors import UsageError
from odfpy.serving.rest.administration.admin import AdministrationRoute, AnAdmin
from odfpy.serving.rest.administration.forms import PAGED, APage, Line, Name, PrincipalName, like, refusals
from odfpy.serving.rest.administration.grants import GrantModel, grant_model
from odfpy.serving.sharing.audited import note
from odfpy.sharing.model import Principal, PrincipalKind
from odfpy.sharing.sharing import Sharing
from odfpy.sharing.store.principals import PrincipalToken

_MAX_ATTRIBUTES: Final = 100
_ACME = {
    "name": "acme",
    "kind": "recipient",
    "attributes": {"country": "DE"},
    "isDisabled": False,
    "isAdmin": False,
    "createdAt": "2026-01-01T00:00:00Z",
    "members": None,
}
_TOKEN = {"number": 7, "createdAt": "2026-01-01T00:00:00Z", "expiresAt": None, "revokedAt": None, "isGood": True}


class Kinds(Enum):
    """The kinds of principals, as paths have them."""

    RECIPIENTS = "recipients"
    USERS = "users"
    GROUPS = "groups"

    @property
    def one(self) -> PrincipalKind:
        """Return the singular."""
        return PrincipalKind(self.value.removesuffix("s"))


class _KindConvertor(StringConvertor):
    """Matches a path segment only with one of the three kinds, so that other paths are not affected."""

    regex = "|".join(kind.value for kind in Kinds)


register_url_convertor("principals", _KindConvertor())

KIND: Final = "{kind:principals}"
Kind = Annotated[Kinds, Path(description="recipients, users or groups.")]


router = APIRouter(prefix="/platform", tags=["administration"], route_class=AdministrationRoute)

Attributes = Annotated[
    dict[Name, Line], Field(max_length=_MAX_ATTRIBUTES, description="Attributes for row conditions of grants.")
]


class NewPrincipalModel(BaseModel):
    """A new recipient, user or group."""

    model_config = like({"name": "acme", "attributes": {"country": "DE"}})

    name: Name
    attributes: Attributes = {}


class ChangesModel(BaseModel):
    """Changes of a recipient, user or group; absent fields stay unchanged."""

    model_config = like({"attributes": {"country": "FR"}, "isDisabled": False})

    attributes: Annotated[Attributes | None, Field(description="Replaces all attributes.")] = None
    isDisabled: Annotated[bool | None, Field(description="Whether to disable the principal.")] = None  # noqa: N815
    isAdmin: Annotated[bool | None, Field(description="For users: whether they may administer the workspace.")] = None  # noqa: N815


class PrincipalModel(BaseModel):
    """A recipient, user or group."""

    model_config = like(_ACME)

    name: str
    kind: PrincipalKind
    attributes: dict[str, str]
    isDisabled: bool  # noqa: N815
    isAdmin: bool  # noqa: N815
    createdAt: str | None  # noqa: N815
    members: Annotated[list[str] | None, Field(description="Of a group.")] = None


class PrincipalTokenModel(BaseModel):
    """A token of a recipient or user, without its secret."""

    model_config = like(_TOKEN)

    number: int
    createdAt: str  # noqa: N815
    expiresAt: str | None  # noqa: N815
    revokedAt: str | None  # noqa: N815
    isGood: Annotated[bool, Field(description="Whether it has neither expired nor been revoked.")]  # noqa: N815


class PrincipalDetailModel(PrincipalModel):
    """A recipient, user or group, with tokens, groups and grants."""

    model_config = like({**_ACME, "hasPassword": False, "groups": ["partners"], "tokens": [_TOKEN], "grants": []})

    hasPassword: bool  # noqa: N815
    groups: Annotated[list[str], Field(description="The groups that it is a member of.")]
    tokens: Annotated[list[PrincipalTokenModel], Field(description="The oldest first.")]
    grants: Annotated[list[GrantModel], Field(description="Its own grants, without those of its groups.")]


class PasswordModel(BaseModel):
    """A password for a user."""

    model_config = like({"password": "four words of mine"})

    password: Annotated[SecretStr, Field(max_length=1000)]


def _principal(request: Request, admin: AnAdmin, kind: Kind, name: PrincipalName) -> Principal:
    """Return the principal that the path names.

    Raises:
        SharedObjectNotFound: it does not exist; the message suggests a similar name.
    """
    principal = admin.sharing.principals.get(name, kind.one)
    if request.method != "GET":
        note(request.scope, path=principal.name)
    return principal


APrincipal = Annotated[Principal, Depends(_principal)]


@router.get(f"/{KIND}", responses={**PAGED, **refusals()})
def principals(response: Response, admin: AnAdmin, page: APage, kind: Kind) -> list[PrincipalModel]:
    """List recipients, users or groups, by name. The search covers names and attributes."""
    listed = page.of(
        response,
        admin.sharing.principals.all(kind.one),
        lambda principal: (principal.name, *principal.attributes, *principal.attributes.values()),
    )
    return [_model(admin.sharing, principal) for principal in listed]


@router.post(f"/{KIND}", responses=refusals(400, 409))
def add_principal(request: Request, admin: AnAdmin, kind: Kind, body: NewPrincipalModel) -> PrincipalModel:
    """Add a recipient, user or group, without tokens and grants."""
    note(request.scope, path=body.name[:255])
    return _model(admin.sharing, admin.sharing.principals.add(kind.one, body.name, body.attributes))


@router.get(f"/{KIND}/{{name}}", responses=refusals(404))
def show_principal(admin: AnAdmin, principal: APrincipal) -> PrincipalDetailModel:
    """A recipient, user or group, with tokens, groups and grants."""
    sharing, now = admin.sharing, Timestamp.now()
    is_group = principal.kind is PrincipalKind.GROUP
    return PrincipalDetailModel(
        **_model(sharing, principal).model_dump(),
        hasPassword=sharing.passwords.has_one(principal),
        groups=sharing.principals.groups_of(principal.name),
        tokens=[] if is_group else [token_model(token, now) for token in sharing.principals.tokens(principal.name)],
        grants=[grant_model(grant) for grant in sharing.grants.all(principal.name)],
    )


@router.patch(f"/{KIND}/{{name}}", responses=refusals(400, 404))
def change_principal(admin: AnAdmin, principal: APrincipal, body: ChangesModel) -> PrincipalModel:
    """Change attributes, disable or enable a principal, or make a user an admin or not."""
    if body.isAdmin is not None and principal.kind is not PrincipalKind.USER:
        raise UsageError(
            f"{principal.name} is a {principal.kind.value}, and only users are admins", hint="Leave out isAdmin."
        )
    changed = admin.sharing.principals.change(
        principal.name, principal.kind, attributes=body.attributes, is_disabled=body.isDisabled, is_admin=body.isAdmin
    )
    return _model(admin.sharing, changed)


@router.delete(f"/{KIND}/{{name}}", status_code=204, response_class=Response, responses=refusals(404))
def remove_principal(admin: AnAdmin, principal: APrincipal) -> Response:
    """Remove a recipient or user with tokens and grants, or a group with its grants."""
    admin.sharing.principals.remove(principal.name, principal.kind)
    return Response(status_code=204)


@router.put("/groups/{name}/members/{member}", responses=refusals(400, 404))
def add_member(request: Request, admin: AnAdmin, name: PrincipalName, member: PrincipalName) -> PrincipalModel:
    """Add a recipient or user to a group, whose grants then apply to them, too."""
    note(request.scope, path=f"{name}: {member}")
    admin.sharing.principals.join(name, member)
    return _model(admin.sharing, admin.sharing.principals.get(name, PrincipalKind.GROUP))


@router.delete("/groups/{name}/members/{member}", responses=refusals(404))
def remove_member(request: Request, admin: AnAdmin, name: PrincipalName, member: PrincipalName) -> PrincipalModel:
    """Remove a member from a group, from the next request on."""
    note(request.scope, path=f"{name}: {member}")
    admin.sharing.principals.leave(name, member)
    return _model(admin.sharing, admin.sharing.principals.get(name, PrincipalKind.GROUP))


@router.put("/users/{name}/password", status_code=204, response_class=Response, responses=refusals(400, 404))
def set_password(request: Request, admin: AnAdmin, name: PrincipalName, body: PasswordModel) -> Response:
    """Set the password of a user; tokens from logins with the old one are revoked."""
    note(request.scope, path=name)
    admin.sharing.passwords.set(name, body.password.get_secret_value())
    return Response(status_code=204)


@router.delete("/users/{name}/password", status_code=204, response_class=Response, responses=refusals(404))
def remove_password(request: Request, admin: AnAdmin, name: PrincipalName) -> Response:
    """Remove the password of a user; tokens from logins with it are revoked."""
    note(request.scope, path=name)
    admin.sharing.passwords.remove(name)
    return Response(status_code=204)


def token_model(token: PrincipalToken, now: Timestamp) -> PrincipalTokenModel:
    """Convert a token for a response."""
    return PrincipalTokenModel(
        number=token.id,
        createdAt=str(token.created_at),
        expiresAt=str(token.expires_at) if token.expires_at else None,
        revokedAt=str(token.revoked_at) if token.revoked_at else None,
        isGood=not token.is_over(now),
    )


def _model(sharing: Sharing, principal: Principal) -> PrincipalModel:
    return PrincipalModel(
        name=principal.name,
        kind=principal.kind,
        attributes=dict(principal.attributes),
        isDisabled=principal.is_disabled,
        isAdmin=principal.is_admin,
        createdAt=str(principal.created_at) if principal.created_at else None,
        members=sharing.principals.members(principal.name) if principal.kind is PrincipalKind.GROUP else None,
    )
