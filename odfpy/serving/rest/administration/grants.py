"""`/platform/grants`: which columns and rows of shared tables principals may read."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, Field

from odfpy.serving.rest.administration.admin import AdministrationRoute, AnAdmin
from odfpy.serving.rest.administration.forms import PAGED, APage, IsText, Long, Name, Number, like, refusals
from odfpy.serving.sharing.audited import note
from odfpy.sharing.checked import check_grant
from odfpy.sharing.conditions import check_condition
from odfpy.sharing.model import Grant
from odfpy.sharing.names import SharePath

router = APIRouter(prefix="/platform/grants", tags=["administration"], route_class=AdministrationRoute)

_GRANT = {
    "principal": "acme",
    "path": "sales.eu.orders",
    "columns": ["day", "total"],
    "rows": "country = recipient('country')",
}
_WORDS = "columns day, total of rows where country = recipient('country')"


class NewGrantModel(BaseModel):
    """A new grant."""

    model_config = like(_GRANT)

    principal: Annotated[Name, Field(description="Name of a recipient, user or group.")]
    path: Annotated[Name, Field(description="SHARE, SHARE.SCHEMA or SHARE.SCHEMA.TABLE.")]
    columns: Annotated[
        list[Name] | None, Field(max_length=10_000, description="Only these columns; all if absent.")
    ] = None
    rows: Annotated[Long | None, Field(description="Only rows for which this SQL condition is true.")] = None


class GrantModel(BaseModel):
    """A grant."""

    model_config = like({"number": 3, **_GRANT, "words": _WORDS})

    number: int
    principal: str
    path: str
    columns: tuple[str, ...] | None
    rows: str | None
    words: Annotated[str, Field(description="Description for people.")]


@router.get("", responses={**PAGED, **refusals(404)})
def grants(
    response: Response,
    admin: AnAdmin,
    page: APage,
    principal: Annotated[
        str | None,
        Query(max_length=255, description="Only grants of this principal itself, not of its groups."),
        IsText,
    ] = None,
    path: Annotated[
        str | None, Query(max_length=800, description="Only those on this share, schema or table itself."), IsText
    ] = None,
) -> list[GrantModel]:
    """List the grants, oldest first."""
    all_grants = admin.sharing.grants.all(principal, None if path is None else SharePath.parse(path))
    wanted = page.of(
        response, all_grants, lambda grant: (grant.principal, str(grant.path), grant.rows, *(grant.columns or ()))
    )
    return [grant_model(grant) for grant in wanted]


@router.post("", responses=refusals(400, 404, 409))
def add_grant(request: Request, admin: AnAdmin, body: NewGrantModel) -> GrantModel:
    """Grant read access to a share, a schema or a table, from the next request on. A repeated grant changes nothing."""
    path = SharePath.parse(body.path)
    note(request.scope, path=str(path))
    if body.rows is not None:
        check_condition(body.rows)
    tables = request.app.state.sharing.tables
    check_grant(path, admin.sharing.shares.sources(path), tables.open, body.columns, body.rows)
    return grant_model(admin.sharing.grants.add(body.principal, path, columns=body.columns, rows=body.rows))


@router.delete("/{number}", responses=refusals(404))
def remove_grant(request: Request, admin: AnAdmin, number: Number) -> GrantModel:
    """Remove a grant, from the next request on; URLs of its files become invalid, too."""
    removed = admin.sharing.grants.remove(number)
    note(request.scope, path=str(removed.path))
    return grant_model(removed)


def grant_model(grant: Grant) -> GrantModel:
    """Convert a grant for a response."""
    return GrantModel(
        number=grant.id,
        principal=grant.principal,
        path=str(grant.path),
        columns=grant.columns,
        rows=grant.rows,
        words=words_of(grant),
    )


def words_of(grant: Grant) -> str:
    """Describe the columns and rows of a grant in words."""
    columns = "all columns" if grant.columns is None else f"columns {', '.join(grant.columns)}"
    rows = "all rows" if grant.rows is None else f"rows where {grant.rows}"
    return "everything" if grant.columns is None and grant.rows is None else f"{columns} of {rows}"
