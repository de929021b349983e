"""`/platform/tables`: the tables of all shares, and their sources."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, Field

from odfpy.coordinator.storage.storage import Storage
from odfpy.errors import OdfError
from odfpy.http.url import without_user
from odfpy.serving.callers.access import registry_of
from odfpy.serving.rest.administration.admin import Admin, AdministrationRoute, AnAdmin
from odfpy.serving.rest.administration.forms import (
    PAGED,
    APage,
    IsText,
    Line,
    Name,
    SchemaName,
    ShareName,
    TableName,
    like,
    refusals,
)
from odfpy.serving.rest.catalog import Catalog
from odfpy.serving.rest.datasets import TOTAL
from odfpy.serving.sharing.audited import note
from odfpy.sharing.checked import shared_files
from odfpy.sharing.model import SharedTable, SharedView, SourceKind, TableSource
from odfpy.sharing.names import SharePath
from odfpy.sharing.tables.opener import shared_dataset

router = APIRouter(prefix="/platform", tags=["administration"], route_class=AdministrationRoute)

TABLE = {
    "path": "sales.eu.orders",
    "kind": "dataset",
    "source": "com.example.orders",
    "shown": "current",
    "at": None,
    "comment": "Orders, without names",
}
_PATH = "SHARE.SCHEMA.TABLE; with slashes if a name has full stops."


class NewTableModel(BaseModel):
    """A new table."""

    model_config = like(TABLE)

    path: Annotated[Name, Field(description=_PATH)]
    kind: SourceKind = SourceKind.DATASET
    source: Annotated[Line, Field(description="The dataset; or the folder, URL or metadata file of other tables.")]
    shown: Annotated[SharedView, Field(description="For a dataset: its current state or its changelog.")] = (
        SharedView.CURRENT
    )
    at: Annotated[Name | None, Field(description="For a dataset: a tag or branch; null for the head.")] = None
    comment: Annotated[Line, Field(description="Description for recipients.")] = ""


class SharedTableModel(BaseModel):
    """A table of a share."""

    model_config = like(
        {
            **TABLE,
            "id": "0f3c6e5e-0b6f-4a57-9c55-b7a2d7e7c3f1",
            "names": ["sales", "eu", "orders"],
            "datasetId": "did:odf:fed01...",
            "isThere": True,
        }
    )

    path: str
    names: Annotated[tuple[str, str, str], Field(description="Share, schema, table: the parts of the path.")]
    kind: SourceKind
    source: Annotated[str, Field(description="Name of the dataset, or the location of another table.")]
    datasetId: str | None  # noqa: N815
    isThere: Annotated[bool, Field(description="False if the dataset is no longer in the workspace.")]  # noqa: N815
    shown: SharedView | None
    at: str | None
    comment: str
    id: str


@router.get("/tables", responses={**PAGED, **refusals(404)})
def shared_tables(
    request: Request,
    response: Response,
    admin: AnAdmin,
    page: APage,
    share: Annotated[str | None, Query(max_length=255, description="Only tables of this share."), IsText] = None,
    schema: Annotated[
        str | None, Query(max_length=255, description="Only tables of this schema of the share."), IsText
    ] = None,
) -> list[SharedTableModel]:
    """List the tables of all shares, by path. The search covers paths, comments, and names of datasets."""
    path = None if share is None else SharePath(share, schema)
    shares, storages = admin.sharing.shares, registry_of(request).storages
    if page.search:
        catalog: Catalog = request.app.state.catalog
        names = {str(entry.dataset.handle.id): entry.name for entry in catalog.entries()}
        wanted = page.of(
            response,
            shares.tables(path),
            lambda table: (str(table.path), table.comment, names.get(table.source.location, table.source.location)),
        )
    else:
        response.headers[TOTAL] = str(shares.num_tables(path))
        wanted = shares.tables(path, offset=page.offset, limit=page.limit)
    return [described(table, storages) for table in wanted]


@router.post("/tables", responses=refusals(400, 404, 409))
def add_table(request: Request, admin: AnAdmin, body: NewTableModel) -> SharedTableModel:
    """Add a table, and its schema if it does not exist. Reading it needs a grant."""
    path = SharePath.parse(body.path)
    note(request.scope, path=str(path))
    source = source_of(admin, body.kind, body.source, body.shown, body.at)
    return described(admin.sharing.shares.add_table(path, source, body.comment), registry_of(request).storages)


@router.delete(
    "/shares/{share}/schemas/{schema}/tables/{table}",
    status_code=204,
    response_class=Response,
    responses=refusals(404),
)
def remove_table(request: Request, admin: AnAdmin, share: ShareName, schema: SchemaName, table: TableName) -> Response:
    """Stop sharing a table, from the next request on; grants on it are removed, the data stays."""
    path = SharePath(share, schema, table)
    note(request.scope, path=str(path))
    admin.sharing.shares.remove(path)
    return Response(status_code=204)


def source_of(admin: Admin, kind: SourceKind, place: str, shown: SharedView, at: str | None) -> TableSource:
    """Return the source of a shared table, after checking that all of it can be shared.

    Args:
        admin: the admin who shares it.
        kind: kind of the source.
        place: name of a dataset, or location of another kind of table.
        shown: for a dataset, its current state or its changelog.
        at: for a dataset, a tag or branch; None for the head.

    Raises:
        DatasetNotFound, BlockNotFound, CannotShare: there is nothing that can be shared.
        HTTPException: 403, it is outside of the workspace, and the admin lacks the permission for that.
    """
    if kind is SourceKind.DATASET:
        return shared_dataset(admin.workspace.storage.get(place), shown, at)
    admin.require_scope("To share a table that is not a dataset")
    return shared_files(kind, place)


def described(table: SharedTable, storages: tuple[Storage, ...]) -> SharedTableModel:
    """Convert a table for a response.

    Args:
        table: the table.
        storages: workspaces in which its dataset is looked up.
    """
    source = table.source
    is_dataset = source.kind is SourceKind.DATASET
    name = dataset_name(source.location, storages) if is_dataset else without_user(source.location)
    return SharedTableModel(
        path=str(table.path),
        names=(table.path.share, table.path.schema or "", table.path.table or ""),
        kind=source.kind,
        source=name or source.location,
        datasetId=source.location if is_dataset else None,
        isThere=name is not None,
        shown=source.shown if is_dataset else None,
        at=source.at,
        comment=table.comment,
        id=table.id,
    )


def dataset_name(dataset_id: str, storages: tuple[Storage, ...]) -> str | None:
    """Return the current name of a dataset, None if it no longer exists here.

    Args:
        dataset_id: id of the dataset.
        storages: the workspaces.
    """
    for storage in storages:
        try:
            return str(storage.get(dataset_id).handle)
        except OdfError:
            continue
    return None
