"""`/platform/shares` and `/platform/sharing`: shares and their schemas, and declarative files of all of it."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Response
from pydantic import BaseModel, Field

from odfpy.serving.rest.administration.admin import Admin, AdministrationRoute, AnAdmin
from odfpy.serving.rest.administration.forms import (
    PAGED,
    APage,
    IsText,
    Line,
    Name,
    SchemaName,
    ShareName,
    like,
    refusals,
)
from odfpy.serving.rest.administration.shared_tables import source_of
from odfpy.sharing.declared import DeclaredTable, load_declared, steps
from odfpy.sharing.model import Share, TableSource
from odfpy.sharing.names import SharePath

router = APIRouter(prefix="/platform", tags=["administration"], route_class=AdministrationRoute)

_SHARE = {"name": "sales", "comment": "For partners"}
_DECLARED = "kind: Shares\nversion: 1\nshares:\n  sales:\n    tables:\n      eu.orders: {dataset: com.example.orders}\n"


class NewShareModel(BaseModel):
    """A new share."""

    model_config = like(_SHARE)

    name: Name
    comment: Annotated[Line, Field(description="Description for recipients.")] = ""


class ShareModel(BaseModel):
    """A share."""

    model_config = like({**_SHARE, "id": "7f1c6e5e-0b6f-4a57-9c55-b7a2d7e7c3f1", "numTables": 12})

    name: str
    comment: str
    id: str
    numTables: int  # noqa: N815


class NewSchemaModel(BaseModel):
    """A new schema of a share."""

    model_config = like({"name": "eu"})

    name: Name


class SchemaModel(BaseModel):
    """A schema of a share."""

    model_config = like({"name": "eu", "numTables": 4})

    name: str
    numTables: int  # noqa: N815


class DeclarationModel(BaseModel):
    """A file that declares shares, recipients, groups and grants, and what to do with it."""

    model_config = like({"yaml": _DECLARED, "dryRun": True})

    yaml: Annotated[str, Field(max_length=10_000_000, description="The file, as for `odf share apply`."), IsText]
    prune: Annotated[bool, Field(description="Also remove what the file does not declare.")] = False
    dryRun: Annotated[bool, Field(description="Only return the changes.")] = False  # noqa: N815


class StepModel(BaseModel):
    """A change that a file requires."""

    model_config = like({"sign": "+", "text": "share sales"})

    sign: Annotated[str, Field(description="`+` adds, `-` removes, `~` changes.")]
    text: str


@router.get("/shares", responses={**PAGED, **refusals()})
def shares(response: Response, admin: AnAdmin, page: APage) -> list[ShareModel]:
    """List the shares, by name, with the number of their tables."""
    listed = page.of(response, admin.sharing.shares.shares(), lambda share: (share.name, share.comment))
    counts = admin.sharing.shares.num_tables_by_share()
    return [_share(share, counts.get(share.id, 0)) for share in listed]


@router.post("/shares", responses=refusals(400, 409))
def add_share(admin: AnAdmin, body: NewShareModel) -> ShareModel:
    """Add a share without tables. Reading it needs a grant."""
    return _share(admin.sharing.shares.add_share(body.name, body.comment), 0)


@router.delete("/shares/{share}", status_code=204, response_class=Response, responses=refusals(404))
def remove_share(admin: AnAdmin, share: ShareName) -> Response:
    """Remove a share with its tables and grants, from the next request on. The data stays."""
    return _removed(admin, SharePath(share))


@router.get("/shares/{share}/schemas", responses={**PAGED, **refusals(404)})
def schemas(response: Response, admin: AnAdmin, page: APage, share: ShareName) -> list[SchemaModel]:
    """List the schemas of a share, by name, with the number of their tables."""
    names = page.of(response, admin.sharing.shares.schemas(share), lambda schema_name: (schema_name,))
    counts = admin.sharing.shares.num_tables_by_schema(share)
    return [SchemaModel(name=name, numTables=counts[name]) for name in names]


@router.post("/shares/{share}/schemas", responses=refusals(400, 404, 409))
def add_schema(admin: AnAdmin, share: ShareName, body: NewSchemaModel) -> SchemaModel:
    """Add an empty schema; adding a table also adds its schema."""
    admin.sharing.shares.add_schema(SharePath.parse(f"{share}/{body.name}"))
    return SchemaModel(name=body.name, numTables=0)


@router.delete("/shares/{share}/schemas/{schema}", status_code=204, response_class=Response, responses=refusals(404))
def remove_schema(admin: AnAdmin, share: ShareName, schema: SchemaName) -> Response:
    """Remove a schema with its tables and their grants. The data stays."""
    return _removed(admin, SharePath(share, schema))


@router.put("/sharing", responses=refusals(400, 404, 409))
def apply(admin: AnAdmin, body: DeclarationModel) -> list[StepModel]:
    """Apply the shares, recipients, groups and grants that a file declares; returns the changes."""

    def resolve(table: DeclaredTable) -> TableSource:
        kind, place = table.source
        return source_of(admin, kind, place, table.shown, table.at)

    changes = steps(admin.sharing, load_declared(body.yaml.encode(), "the file"), resolve, prune=body.prune)
    for step in changes if not body.dryRun else ():
        step.take()
    return [StepModel(sign=step.sign, text=step.text) for step in changes]


def _share(share: Share, count: int) -> ShareModel:
    return ShareModel(name=share.name, comment=share.comment, id=share.id, numTables=count)


def _removed(admin: Admin, path: SharePath) -> Response:
    admin.sharing.shares.remove(path)
    return Response(status_code=204)
