"""`/platform/repositories` and `/platform/servers`: remote repositories of datasets, and servers with a login."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Request, Response
from pydantic import BaseModel, Field

from odfpy.errors import InvalidValue
from odfpy.repository.credentials import Credentials, server_of
from odfpy.repository.registry import Repository
from odfpy.serving.rest.administration.admin import AdministrationRoute, AnAdmin
from odfpy.serving.rest.administration.forms import PAGED, APage, IsText, Name, like, refusals
from odfpy.serving.sharing.audited import note

router = APIRouter(prefix="/platform", tags=["administration"], route_class=AdministrationRoute)

_REPOSITORY = {"name": "node", "url": "odf+https://data.example.com"}


class NewRepositoryModel(BaseModel):
    """A new named repository."""

    model_config = like(_REPOSITORY)

    name: Name
    url: Annotated[str, Field(max_length=2000, description="URL, or path on the machine of the server."), IsText]


class RepositoryModel(BaseModel):
    """A repository."""

    model_config = like({**_REPOSITORY, "hasLogin": True})

    name: str
    url: Annotated[str, Field(description="Without user and password.")]
    hasLogin: Annotated[  # noqa: N815
        bool, Field(description="Whether this server has an access token for it (`odf login`).")
    ]


class KnownServerModel(BaseModel):
    """A server for which an access token is stored; the token is never returned."""

    model_config = like({"url": "https://data.example.com"})

    url: str


@router.get("/repositories", responses={**PAGED, **refusals()})
def repositories(response: Response, admin: AnAdmin, page: APage) -> list[RepositoryModel]:
    """List the repositories, by name."""
    known = frozenset(Credentials().servers())
    listed = page.of(
        response,
        admin.workspace.remotes.repositories.list(),
        lambda repository: (str(repository.name), repository.public_url),
    )
    return [_model(repository, known) for repository in listed]


@router.post("/repositories", responses=refusals(400, 409))
def add_repository(request: Request, admin: AnAdmin, body: NewRepositoryModel) -> RepositoryModel:
    """Add a named repository."""
    note(request.scope, path=body.name)
    admin.require_scope("A new repository")
    repository = admin.workspace.remotes.repositories.add(body.name, body.url)
    return _model(repository, frozenset(Credentials().servers()))


@router.delete("/repositories/{name}", status_code=204, response_class=Response, responses=refusals(400, 404))
def remove_repository(
    request: Request,
    admin: AnAdmin,
    name: Annotated[str, Path(max_length=255, description="Name of the repository."), IsText],
) -> Response:
    """Remove the name of a repository; its datasets stay."""
    note(request.scope, path=name)
    admin.require_scope("To forget a repository")
    admin.workspace.remotes.repositories.delete(name)
    return Response(status_code=204)


@router.get("/servers", responses=refusals())
def servers(admin: AnAdmin) -> list[KnownServerModel]:
    """List the servers for which the operator of this server has stored a token."""
    del admin
    return [KnownServerModel(url=url) for url in Credentials().servers()]


def _model(repository: Repository, known: frozenset[str]) -> RepositoryModel:
    try:
        has_login = server_of(repository.url) in known
    except InvalidValue:  # a folder or a bucket
        has_login = False
    return RepositoryModel(name=str(repository.name), url=repository.public_url, hasLogin=has_login)
